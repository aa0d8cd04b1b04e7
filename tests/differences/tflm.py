"""Checks of the section TFLM; its results were kept by `make tflm-record`."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from differences.difference import Sides, attempt, difference
from micro.wheel.goldens import FOLDER, Golden, read, run


def _sides(golden: Golden) -> Sides:
    """Return the results of the micro interpreter and of the wheel for a case."""
    return attempt(lambda: run(golden.model, golden.steps)), golden.outputs


def _check(goldens: list[Golden]) -> Any:
    return lambda: [_sides(golden) for golden in goldens]


GOLDENS: dict[str, list[Golden]] = defaultdict(list)
for each in read(FOLDER / "differences.json.xz"):
    GOLDENS[each.name].append(each)
for name, found in GOLDENS.items():
    difference(name, beside="numpy")(_check(found))
