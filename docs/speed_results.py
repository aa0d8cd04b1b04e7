"""Results that ``speed.md`` shows, as ``speed.json`` has them, and the names of networks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS, NAMES = FOLDER / "speed.json", FOLDER / "speed_networks.json"

BASE = "XNNPACK"

ORDER = ("numba_cpu", "OpenVINO", "ONNX Runtime", "TFLite builtin", "core")
"""Runtimes that are compared with XNNPACK."""

LIMITED, LEVEL = "XNNPACK avx2", "numba_cpu avx2"
"""XNNPACK limited to AVX2, and the level of numba_cpu that is compared with it."""

Entry = dict[str, Any]
"""A network with a number of threads and the results of all runtimes."""

Names = dict[str, dict[str, str]]
"""Mapping from each network to its ``name`` and its ``source``, the address of its file."""


def names_of_networks() -> Names:
    """Return the name and the source of each published network."""
    found: Names = json.loads(NAMES.read_text(encoding="utf-8"))
    return found


def threads_of(entries: Sequence[Entry]) -> list[int]:
    """Return the numbers of threads that were measured, in order."""
    return sorted({entry["threads"] for entry in entries})


def in_words(threads: int) -> str:
    """Return a number of threads in words, such as ``"two threads"``."""
    words = {1: "one", 2: "two", 4: "four", 8: "eight"}
    return f"{words.get(threads, threads)} thread{'s' * (threads != 1)}"


def runtimes_of(entries: Sequence[Entry]) -> list[str]:
    """Return the measured runtimes other than XNNPACK, in a fixed order."""
    found = {result["runtime"] for entry in entries for result in entry["results"]}
    return [name for name in ORDER if name in found]


def kind_of(entry: Entry) -> str:
    """Return the type of a network's first input, such as ``"float32"``."""
    return str(entry["kind"]).lower()


def slowest_first(entries: Sequence[Entry], runtime: str = "numba_cpu") -> list[Entry]:
    """Return the entries in the order of the ratio of *runtime*, the largest first."""
    return sorted(entries, key=lambda entry: (-_ratio_of(entry, runtime), entry["network"]))


def _ratio_of(entry: Entry, runtime: str) -> float:
    """Return the ratio of *runtime*; 0 without one."""
    found = (r["ratio"] for r in entry["results"] if r["runtime"] == runtime)
    ratio = next(found, None)
    return 0.0 if ratio is None else float(ratio["value"])


def counts(result: Entry) -> bool:
    """Whether a result has a ratio and ran on its delegate instead of the core."""
    return result["ratio"] is not None and result["taken"] != 0
