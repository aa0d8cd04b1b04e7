"""Cases of special functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TOLERANCES = {
    DataType.FLOAT32: 1e-6,
    DataType.FLOAT64: 1e-12,
    DataType.FLOAT16: 1e-3,
    DataType.BFLOAT16: 8e-3,
}
EVERYWHERE = np.array([-30, -7.5, -3.25, -1.5, -1, -0.6, -0.1, 0, 0.1, 0.5, 1, 1.7, 3, 8, 25])
POSITIVE = np.array([0.01, 0.2, 0.5, 0.9, 1, 1.5, 2, 2.6, 4, 7.5, 12, 20])
POINTS = {
    "BesselI0": EVERYWHERE[2:-1],
    "BesselI0e": EVERYWHERE,
    "BesselI1": EVERYWHERE[2:-1],
    "BesselI1e": EVERYWHERE,
    "BesselJ0": EVERYWHERE,
    "BesselJ1": EVERYWHERE,
    "BesselK0": POSITIVE,
    "BesselK0e": POSITIVE,
    "BesselK1": POSITIVE,
    "BesselK1e": POSITIVE,
    "BesselY0": POSITIVE,
    "BesselY1": POSITIVE,
    "Dawsn": EVERYWHERE,
    "Digamma": EVERYWHERE[[1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13]],
    "Erf": EVERYWHERE,
    "Erfc": EVERYWHERE,
    "Erfinv": np.array([-1, -0.99, -0.5, -0.01, 0, 0.3, 0.8, 0.97, 1]),
    "Expint": POSITIVE,
    "FresnelCos": EVERYWHERE[1:-1],
    "FresnelSin": EVERYWHERE[1:-1],
    "Lgamma": EVERYWHERE[[1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13]],
    "Ndtri": np.array([0, 0.001, 0.1, 0.4, 0.5, 0.77, 0.9, 0.999, 1]),
    "Spence": POSITIVE,
}

KNOWN = {
    DataType.FLOAT16: {op for op in POINTS if op.startswith("Bessel")}
    | {"Digamma", "Erf", "Erfc", "Lgamma"},
    DataType.BFLOAT16: {"Erf", "Erfc"},
}
"""What TensorFlow has kernels for; where a type is not listed, all."""


def cases() -> Iterator[Case]:
    for type, tolerance in TOLERANCES.items():
        for op, points in POINTS.items():
            if op not in KNOWN.get(type, POINTS):
                continue
            yield one(op, points.astype(type.dtype), T=type, tolerance=tolerance)
            yield one(op, points[5].astype(type.dtype), T=type, tolerance=tolerance)
        if type is DataType.FLOAT32:
            many = np.concatenate((np.linspace(-6, 6, 1500), [np.nan, np.inf, -np.inf, 0, -0.0]))
            yield one("Erf", many.astype(type.dtype), T=type, tolerance=5e-7)
        a, x = (POSITIVE[::3, None].astype(type.dtype), POSITIVE.astype(type.dtype))
        for op in ("Igamma", "Igammac") if type not in KNOWN else ():
            yield one(op, a, x, T=type, tolerance=tolerance)
    yield from _edges()
    for type in (DataType.FLOAT32, DataType.FLOAT64):
        tolerance = TOLERANCES[type]
        x = POSITIVE.astype(type.dtype)
        yield one("Zeta", x[6:] * 0.5 + 0.5, x[:6], T=type, tolerance=tolerance)
        order = np.array([[0], [1], [2], [3]], type.dtype)
        for point in x[1:]:  # each is of another magnitude
            yield one("Polygamma", order, point, T=type, tolerance=tolerance)
        yield one("Polygamma", np.array([0.5, 1.5], type.dtype), x[:2], T=type)
        b = np.array([[[0.3]], [[2.5]]], type.dtype)
        share = np.array([0, 0.1, 0.5, 0.93, 1], type.dtype)
        a, b, share = np.broadcast_arrays(x[2::4, None], b, share)
        of_tensorflow = 5e-6 if type is DataType.FLOAT32 else tolerance  # 2.5e-6 from the truth
        yield one("Betainc", a, b, share, T=type, tolerance=of_tensorflow)


def _edges() -> Iterator[Case]:
    points = np.array([-3, -2, -1, -0.0, 0, 1, 2, np.inf, -np.inf, np.nan, 1e30], np.float32)
    for op in POINTS:
        yield one(op, points, T=DataType.FLOAT32, tolerance=1e-6)
    a = np.array([[-1], [0], [0.5], [2], [np.nan]], np.float32)
    x = np.array([-1, 0, 0.5, 1, np.inf, np.nan], np.float32)
    for op in ("Igamma", "Igammac", "Polygamma"):
        yield one(op, a, x, T=DataType.FLOAT32, tolerance=1e-6)
    yield one("Zeta", a[:4], x, T=DataType.FLOAT32, tolerance=1e-6)
    shares = np.array([-0.1, 0, 0.5, 1, 1.1, np.nan], np.float32)
    for a_, b in ((-1, 1), (0, 1), (0.5, 0), (0.5, 0.5)):
        one_a, one_b = (np.full_like(shares, value) for value in (a_, b))
        yield one("Betainc", one_a, one_b, shares, T=DataType.FLOAT32, tolerance=5e-6)
