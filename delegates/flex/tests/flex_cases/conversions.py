"""Cases of converting element types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import COMPLEX, FLOATS, INTEGERS, NUMBERS
from flex_cases import Case, one

_KNOWN = sorted(NUMBERS | {DataType.BOOL})


def cases() -> Iterator[Case]:
    for source in _KNOWN:
        for target in _KNOWN:
            out = TensorType[target.name]
            yield one("Cast", _values(source, target), SrcT=source, DstT=target, out=out)
    # No subnormal numbers of float32: TensorFlow makes zeros of them.
    hard = [1.00999, 3.14159, -2.71828, 65519, 65520, 1e6, 1e-7, 3e-8, np.nan, np.inf]
    for source in (DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT64):
        for target in (DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64):
            with np.errstate(all="ignore"):
                x = np.array([*hard, 1 + 2**-8, 1 + 3 * 2**-8], source.dtype)
            for truncate in (False, True):
                yield one(
                    "Cast", x, SrcT=source, DstT=target, Truncate=truncate,
                    out=TensorType[target.name],
                )  # fmt: skip
    x = np.zeros((0, 2), np.float32)
    types = {"SrcT": DataType.FLOAT32, "DstT": DataType.INT8}
    yield one("Cast", x, out=TensorType.INT8, name="Cast-empty", **types)
    yield one("Cast", np.float32(-3.7), out=TensorType.INT8, name="Cast-scalar", **types)
    for value in (np.float32([1, 2]), np.bool_(True)):
        type = DataType.FLOAT32 if value.ndim else DataType.BOOL
        yield one("Const", out=TensorType[type.name], value=np.asarray(value), dtype=type)


def _values(source: DataType, target: DataType) -> np.ndarray:
    """Return values of one type; floats that the other type can hold, when it is of integers."""
    if source is DataType.BOOL:
        return np.array([[True, False]])
    if source in INTEGERS:
        info = np.iinfo(source.dtype)
        return np.array([0, 1, 77, info.max, info.min, info.max // 3 * 2], source.dtype)
    values = [0, 0.5, 1.99, 2.5, 100.7]
    if target in FLOATS | COMPLEX:
        values += [np.inf, -np.inf, np.nan, -0.0, 1e5]
    if target not in INTEGERS or target.name[0] != "U":
        values += [-0.5, -3.99, -100]
    if source not in COMPLEX:
        with np.errstate(all="ignore"):
            return np.array(values, source.dtype)
    if target in COMPLEX:
        values = [value for value in values if np.isfinite(value)]
    return np.array(values, source.dtype) + source.dtype.type(2j)
