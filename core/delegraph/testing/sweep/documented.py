"""Models that Delegraph refuses and LiteRT computes, by the entries of ``docs/differences.md``."""

from __future__ import annotations

import re

REFUSALS: dict[str, str] = {
    "bytes-without-a-scale": r"scale 0\.0, expected a positive one|has no scale|no quantization",
    "scales-that-are-no-positive-numbers": r"scale (-|nan|inf)",
    "scales-too-far-apart": r"ratio of|expected less than 2\*\*31",
    "zero-points-beyond-their-type": r"zero point -?\d+",
}
"""Pattern of the error, by the id of the entry that says why."""

_PATTERNS = {name: re.compile(pattern) for name, pattern in REFUSALS.items()}


def documented_refusal(error: BaseException | None) -> str | None:
    """Id of the entry that says why Delegraph refuses a model alone; None without one."""
    text = str(error or "")
    return next((name for name, pattern in _PATTERNS.items() if pattern.search(text)), None)
