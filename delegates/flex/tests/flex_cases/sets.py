"""Cases of operations on sets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings, type_of

OPERATIONS = (b"a-b", b"b-a", b"intersection", b"union")


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(13)
    words = strings([[[b"a", b"b", b"a"], [b"x", b"", b"c"]]])
    pairs = [(words, words[:, ::-1, :2])]
    for dtype in (np.int32, np.int64, np.uint8):
        shapes = (2, 2, 5), (2, 2, 3)
        pairs.append(tuple(rng.integers(0, 7, shape).astype(dtype) for shape in shapes))
    for a, b in pairs:
        type = DataType.of(type_of(a))
        for operation in OPERATIONS:
            attrs = {"T": type, "set_operation": operation, "validate_indices": True}
            attrs["out"] = (TensorType.INT64, type_of(a), TensorType.INT64)
            yield one("DenseToDenseSetOperation", a, b, **attrs)
            yield one("DenseToSparseSetOperation", a, *_sparse(b), **attrs)
            yield one("SparseToSparseSetOperation", *_sparse(a), *_sparse(b), **attrs)
        yield one("SetSize", *_sparse(a), T=type, validate_indices=True, out=TensorType.INT32)
    yield one(
        "DenseToDenseSetOperation", pairs[1][0][:0], pairs[1][1][:0], T=DataType.INT32,
        set_operation=b"union", validate_indices=True,
        out=(TensorType.INT64, TensorType.INT32, TensorType.INT64),
    )  # fmt: skip


def _sparse(x: NDArray[np.generic]) -> tuple[NDArray[np.generic], ...]:
    """Return a tensor in sparse form, with most of its elements."""
    indices = np.argwhere(np.arange(x.size).reshape(x.shape) % 4 != 1)
    return indices, x[tuple(indices.T)], np.array(x.shape)
