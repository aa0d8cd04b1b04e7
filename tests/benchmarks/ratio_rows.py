"""Rows of a table of ratios, which benchmarks write and ``beside_litert.py`` puts together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from delegraph.tools.benchmarking.verdicts import Ratio


@dataclass(frozen=True, slots=True)
class Row:
    """A ratio to the official interpreter.

    Attributes:
        what: what was measured; the same words in each run.
        value: ours by theirs; below 1 ours is less.
        low: where the interval of 95 % begins; None where there is none.
        high: where it ends.
    """

    what: str
    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.3g}"
        return str(Ratio(self.value, self.low, self.high))


def row(what: str, ratio: Ratio) -> Row:
    """Return the row of a ratio that has an interval."""
    return Row(what, ratio.value, ratio.low, ratio.high)


def mean_row(what: str, ratios: Sequence[Ratio]) -> Row:
    """Return the geometric mean of ratios of independent measurements, with its interval."""
    logs = [math.log(ratio.value) for ratio in ratios]
    reaches = [math.log(ratio.high / ratio.low) / 2 for ratio in ratios]
    mean = math.exp(sum(logs) / len(logs))
    # Errors of independent measurements add up by their squares.
    reach = math.exp(math.hypot(*reaches) / len(ratios))
    return Row(what, mean, mean / reach, mean * reach)


def write_rows(path: Path | None, rows: Iterable[Row]) -> None:
    """Write the rows to a file, if there is one."""
    if path is not None:
        path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def read_rows(path: Path) -> list[Row]:
    """Return the rows that a benchmark has written."""
    return [Row(**entry) for entry in json.loads(path.read_text())]
