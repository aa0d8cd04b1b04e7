"""NumPy dtypes of TFLite's tensor types, and the packed 2- and 4-bit storage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OF_ML_DTYPES = {
    TensorType.BFLOAT16: "bfloat16",
    TensorType.FLOAT8_E4M3FN: "float8_e4m3fn",
    TensorType.FLOAT8_E5M2: "float8_e5m2",
}
"""Element types that NumPy lacks, with their names in ``ml_dtypes``."""


class _Dtypes(Mapping[TensorType, "np.dtype[Any]"]):
    def __init__(self, known: Mapping[TensorType, Any]) -> None:
        self._known: dict[TensorType, np.dtype[Any]] = {
            type_: np.dtype(dtype) for type_, dtype in known.items()
        }

    def __getitem__(self, type_: TensorType) -> np.dtype[Any]:
        if type_ not in self._known:
            name = _OF_ML_DTYPES[type_]
            self._known[type_] = np.dtype(getattr(import_module("ml_dtypes"), name))
        return self._known[type_]

    def __iter__(self) -> Iterator[TensorType]:
        return iter(TensorType)

    def __len__(self) -> int:
        return len(TensorType)


NUMPY_DTYPES: Mapping[TensorType, np.dtype[Any]] = _Dtypes(
    {
        TensorType.FLOAT32: np.float32,
        TensorType.FLOAT16: np.float16,
        TensorType.INT32: np.int32,
        TensorType.UINT8: np.uint8,
        TensorType.INT64: np.int64,
        TensorType.STRING: object,
        TensorType.BOOL: np.bool_,
        TensorType.INT16: np.int16,
        TensorType.COMPLEX64: np.complex64,
        TensorType.INT8: np.int8,
        TensorType.FLOAT64: np.float64,
        TensorType.COMPLEX128: np.complex128,
        TensorType.UINT64: np.uint64,
        TensorType.RESOURCE: object,
        TensorType.VARIANT: object,
        TensorType.UINT32: np.uint32,
        TensorType.UINT16: np.uint16,
        TensorType.INT4: np.int8,
        TensorType.INT2: np.int8,
        TensorType.UINT4: np.uint8,
    }
)
"""Mapping from an element type to its dtype for users; int8 or uint8 for 2- and 4-bit integers."""

BITS = {TensorType.INT4: 4, TensorType.UINT4: 4, TensorType.INT2: 2}
"""Number of bits of an element, for types with several elements in a byte."""

OBJECT_TYPES = frozenset({TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT})
"""Types whose elements are Python objects, which cannot be in the arena."""


def byte_size(type_: TensorType, shape: Sequence[int]) -> int:
    """Return the number of bytes of a dense tensor; 0 for types whose values are Python objects.

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


def bits_of(type_: TensorType) -> int:
    """Number of bits that a stored element of *type_* takes.

    >>> bits_of(TensorType.INT4), bits_of(TensorType.FLOAT32)
    (4, 32)
    """
    return BITS.get(type_) or 8 * NUMPY_DTYPES[type_].itemsize


def stored_values(data: NDArray[np.uint8], type_: TensorType, shape: Sequence[int]) -> NDArray[Any]:
    """Elements of a dense constant: a view of *data*, or a new array if they are packed.

    Args:
        data: ``[bytes], uint8``; bytes beyond those of *shape* are ignored.
        type_: any type except those whose values are Python objects.
        shape: dimensions of the result.
    """
    data = data[: byte_size(type_, shape)]
    if type_ in BITS:
        return unpack(data, type_, shape)
    return data.view(NUMPY_DTYPES[type_]).reshape(shape)


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
    """Return *values* packed as 2- or 4-bit integers, low bits first: ``[bytes], uint8``.

    *type_* is INT4, UINT4 or INT2.
    """
    bits = BITS[type_]
    per_byte = 8 // bits
    flat = values.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
    flat = np.pad(flat, (0, -len(flat) % per_byte)).reshape(-1, per_byte)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(flat << shifts, axis=1)
    return packed


def has_nan(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype can represent NaN.

    The dtypes of ml_dtypes are of kind "V" or "f".

    >>> has_nan(np.dtype("c8")), has_nan(np.dtype("i4"))
    (True, False)
    """
    return dtype.kind in "fc" or (dtype.kind == "V" and "float" in dtype.name)


def total_bytes(sizes: Iterable[int | None]) -> int | None:
    """Return the sum of *sizes*; None if any size is None.

    >>> total_bytes([4, 8]), total_bytes([4, None])
    (12, None)
    """
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total
