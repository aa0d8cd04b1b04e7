"""Cases of the operators that reduce segments."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings

FLOAT, INT, LONG = DataType.FLOAT32, DataType.INT32, DataType.INT64
TYPES = (FLOAT, DataType.FLOAT64, INT, DataType.UINT8, DataType.COMPLEX64, DataType.FLOAT16)


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(4)
    for type in TYPES:
        tolerance = {DataType.FLOAT16: 2e-3, INT: 0.0, DataType.UINT8: 0.0}.get(type, 1e-6)
        x = rng.integers(-9, 9, (6, 2, 3)).astype(type.dtype)
        if tolerance:
            x += rng.normal(0, 1, x.shape).astype(type.dtype)
        kinds = ("Sum", "Mean", "Prod", "Max", "Min")
        for kind in kinds[:3] if type is DataType.COMPLEX64 else kinds:
            for ids in ([0, 0, 0, 1, 1, 2], [1, 1, 1, 3, 6, 6]):
                yield one(
                    f"Segment{kind}", x, np.array(ids, np.int32), T=type, Tindices=INT,
                    tolerance=tolerance,
                )  # fmt: skip
            if kind != "Mean":
                yield from _unsorted(kind, x, type, tolerance)
    data, none = np.ones((0, 2), np.float32), np.zeros(0, np.int64)
    yield one("SegmentSum", data, none, T=FLOAT, Tindices=LONG)
    yield one(
        "SegmentMean", np.array([-3, -2, 1], np.int32), np.zeros(3, np.int64), T=INT, Tindices=LONG
    )
    yield one(
        "UnsortedSegmentMax", data, none, np.int32(2), T=FLOAT, Tindices=LONG, Tnumsegments=INT
    )
    rows, ids = rng.integers(-99, 99, (200, 100)), rng.integers(-1, 4, 200)
    for op in ("Sum", "Max", "Min", "Prod"):  # so many that they are sorted first
        yield one(
            f"UnsortedSegment{op}", rows, ids, np.int32(5), T=LONG, Tindices=LONG, Tnumsegments=INT
        )
        yield one(f"Segment{op}", rows, np.sort(np.abs(ids)), T=LONG, Tindices=LONG)
    words = strings([[b"a", b"b"], [b"", b"cd"], [b"e", b"\xff"]])
    for ids in (np.array([2, 0, 2]), np.array([[0, 0], [3, 2], [2, 0]]), np.array([1, 1, 1])):
        for separator in (b"", b", "):
            yield one(
                "UnsortedSegmentJoin", words, ids, np.int32(4), Tindices=LONG, Tnumsegments=INT,
                separator=separator,
            )  # fmt: skip
    yield from _sparse(rng)


def _unsorted(kind: str, x: np.ndarray, type: DataType, tolerance: float) -> Iterator[Case]:
    for ids in ([3, 0, -1, 0, 3, 1], [[3, 0], [-1, 0], [3, 1], [1, 1], [1, 1], [4, 0]]):
        yield one(
            f"UnsortedSegment{kind}", x, np.array(ids), np.int32(5), T=type, Tindices=LONG,
            Tnumsegments=INT, tolerance=tolerance,
        )  # fmt: skip


def _sparse(rng: np.random.Generator) -> Iterator[Case]:
    indices, ids = np.array([2, 0, 2, 4], np.int64), np.array([0, 0, 2, 2], np.int32)
    for type, tolerance in (
        (FLOAT, 1e-6), (DataType.FLOAT64, 1e-12),
        (DataType.FLOAT16, 1e-3), (DataType.BFLOAT16, 4e-3)
    ):  # fmt: skip
        x = rng.normal(0, 9, (5, 3)).astype(type.dtype)
        for kind in ("Sum", "Mean", "SqrtN"):
            attrs = {"T": type, "Tidx": LONG, "Tsegmentids": INT, "tolerance": tolerance}
            yield one(f"SparseSegment{kind}", x, indices, ids, **attrs)
            yield one(f"SparseSegment{kind}", x, indices[:0], ids[:0], **attrs)
            yield one(
                f"SparseSegment{kind}WithNumSegments", x, indices, ids, np.int64(5),
                Tnumsegments=LONG, **attrs,
            )  # fmt: skip
            yield one(f"SparseSegment{kind}Grad", x, indices, ids, np.int32(6), **attrs)
    whole = rng.integers(-99, 99, (5, 3)).astype(np.int32)
    yield one("SparseSegmentSum", whole, indices, ids, T=INT, Tidx=LONG, Tsegmentids=INT)
