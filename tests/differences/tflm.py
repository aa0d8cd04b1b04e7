"""Checks of the section TFLM; its results were kept by `make tflm-record`."""

from __future__ import annotations

from typing import Any

from differences.difference import Sides, attempt, difference
from micro.wheel.goldens import FOLDER, Golden, read, run


def sides_of(golden: Golden) -> Sides:
    """Return what the micro interpreter and the wheel make of a case."""
    return attempt(lambda: run(golden.model, golden.steps)), golden.outputs


def _check(golden: Golden) -> Any:
    return lambda: sides_of(golden)


for _golden in read(FOLDER / "differences.json.xz"):
    difference(_golden.name, beside="numpy")(_check(_golden))
