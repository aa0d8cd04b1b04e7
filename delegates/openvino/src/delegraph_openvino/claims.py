"""Claims of the ``openvino`` delegate, read from data that ``tools/ask_openvino.py`` wrote.

The script runs the conformance kit's models of every operator, one by one. It stores the types and
features for which all results were right, and the largest difference of 8-bit results in
quantization steps.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from delegraph import Capabilities, Claim, Tolerance

QUANTIZED = frozenset({"INT8", "UINT8"})
TOLERANCE = {"FLOAT32": Tolerance(relative=1e-3, absolute=1e-4)}


@cache
def record() -> dict[str, Any]:
    """Return the measured facts about OpenVINO: its version, and types and errors by operator."""
    file = files("delegraph_openvino").joinpath("claims.json")
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


@cache
def capabilities(quantized: bool) -> Capabilities:
    """Return the claims; *quantized* includes the claims with 8-bit types."""
    claims = [
        Claim(
            op,
            sorted(set(types.values())),
            *features,
            "dynamic-shapes",  # OpenVINO compiles a partition for each shape
            **types,
            tolerance=_within(units),
        )
        for op, types, features, units in record()["claims"]
        if quantized or QUANTIZED.isdisjoint(types.values())
    ]
    return Capabilities(claims, tolerance=TOLERANCE)


def _within(units: int) -> Tolerance | None:
    return Tolerance(absolute=units) if units else None
