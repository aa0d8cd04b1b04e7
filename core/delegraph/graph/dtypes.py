"""NumPy dtypes of TFLite's tensor types, and the packed 2- and 4-bit storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from delegraph.schema.enums import TensorType

NUMPY_DTYPES: dict[TensorType, np.dtype] = {
    TensorType.FLOAT32: np.dtype(np.float32),
    TensorType.FLOAT16: np.dtype(np.float16),
    TensorType.INT32: np.dtype(np.int32),
    TensorType.UINT8: np.dtype(np.uint8),
    TensorType.INT64: np.dtype(np.int64),
    TensorType.STRING: np.dtype(object),
    TensorType.BOOL: np.dtype(np.bool_),
    TensorType.INT16: np.dtype(np.int16),
    TensorType.COMPLEX64: np.dtype(np.complex64),
    TensorType.INT8: np.dtype(np.int8),
    TensorType.FLOAT64: np.dtype(np.float64),
    TensorType.COMPLEX128: np.dtype(np.complex128),
    TensorType.UINT64: np.dtype(np.uint64),
    TensorType.RESOURCE: np.dtype(object),
    TensorType.VARIANT: np.dtype(object),
    TensorType.UINT32: np.dtype(np.uint32),
    TensorType.UINT16: np.dtype(np.uint16),
    TensorType.INT4: np.dtype(np.int8),
    TensorType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    TensorType.INT2: np.dtype(np.int8),
    TensorType.UINT4: np.dtype(np.uint8),
    TensorType.FLOAT8_E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    TensorType.FLOAT8_E5M2: np.dtype(ml_dtypes.float8_e5m2),
}
"""Element type as users see it; 2- and 4-bit integers are seen as 8-bit ones."""

BITS = {TensorType.INT4: 4, TensorType.UINT4: 4, TensorType.INT2: 2}
"""Bits an element takes, for the types that pack several into a byte."""

OBJECT_TYPES = frozenset({TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT})
"""Types whose elements are Python objects and which the arena cannot hold."""


def byte_size(type_: TensorType, shape: Sequence[int]) -> int:
    """Return the bytes that a dense tensor takes; 0 for types held as Python objects.

    >>> byte_size(TensorType.INT4, (3, 3))
    5
    """
    if type_ in OBJECT_TYPES:
        return 0
    count = math.prod(shape)
    bits = BITS.get(type_)
    if bits is not None:
        return -(-count * bits // 8)
    return count * NUMPY_DTYPES[type_].itemsize


def unpack(packed: NDArray[np.uint8], type_: TensorType, shape: Sequence[int]) -> NDArray[np.int8]:
    """Return the elements of packed 2- or 4-bit integers, low bits first.

    Args:
        packed: ``[bytes], uint8``.
        type_: INT4, UINT4 or INT2.
        shape: dimensions of the result.

    Returns:
        ``shape``, int8 (uint8 for UINT4); a new array.

    >>> unpack(np.array([0x2F], np.uint8), TensorType.INT4, (2,)).tolist()
    [-1, 2]
    """
    bits = BITS[type_]
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    values = (packed[:, None] >> shifts).reshape(-1)[: math.prod(shape)] & ((1 << bits) - 1)
    if type_ is not TensorType.UINT4:
        sign = 1 << (bits - 1)
        values = (values ^ sign).view(np.int8) - np.int8(sign)
    return values.reshape(shape)


def pack(values: NDArray[np.integer], type_: TensorType) -> NDArray[np.uint8]:
    """Return *values* packed as 2- or 4-bit integers, low bits first: ``[bytes], uint8``."""
    bits = BITS[type_]
    per_byte = 8 // bits
    flat = values.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
    flat = np.pad(flat, (0, -len(flat) % per_byte)).reshape(-1, per_byte)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(flat << shifts, axis=1)
    return packed


def has_nan(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype has NaN; those of ml_dtypes are of kind "V" or "f".

    >>> has_nan(np.dtype("c8")), has_nan(np.dtype("i4"))
    (True, False)
    """
    return dtype.kind in "fc" or (dtype.kind == "V" and "float" in dtype.name)
