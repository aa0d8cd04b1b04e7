"""TensorFlow's element types, with their NumPy dtypes and their types in a ``.tflite`` file."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph.graph import NUMPY_DTYPES


class DataType(IntEnum):
    """TensorFlow's element types, by their numbers. Source: DataType, framework/types.proto.

    An attribute of kind ``type`` has one of these numbers. The names are those of
    ``tf.DType.name``, in capitals.
    """

    FLOAT32 = 1
    FLOAT64 = 2
    INT32 = 3
    UINT8 = 4
    INT16 = 5
    INT8 = 6
    STRING = 7
    COMPLEX64 = 8
    INT64 = 9
    BOOL = 10
    QINT8 = 11
    QUINT8 = 12
    QINT32 = 13
    BFLOAT16 = 14
    QINT16 = 15
    QUINT16 = 16
    UINT16 = 17
    COMPLEX128 = 18
    FLOAT16 = 19
    RESOURCE = 20
    VARIANT = 21
    UINT32 = 22
    UINT64 = 23
    FLOAT8_E5M2 = 24
    FLOAT8_E4M3FN = 25

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the elements; object for strings, resources and variants."""
        return NUMPY_DTYPES[TensorType[_STORED.get(self.name, self.name)]]

    @property
    def wide(self) -> np.dtype[Any]:
        """NumPy dtype in which the elements are computed: float32 for 16-bit floats."""
        return np.dtype(np.float32) if self in HALVES else self.dtype

    @classmethod
    def of(cls, type: TensorType) -> DataType:
        """Return the TensorFlow type for the type of a tensor in a ``.tflite`` file.

        >>> DataType.of(TensorType.FLOAT16)
        <DataType.FLOAT16: 19>

        Raises:
            KeyError: TensorFlow lacks the type (packed 2- and 4-bit integers).
        """
        return cls[type.name]


_STORED = {
    "QINT8": "INT8",
    "QUINT8": "UINT8",
    "QINT32": "INT32",
    "QINT16": "INT16",
    "QUINT16": "UINT16",
}

HALVES = frozenset({DataType.FLOAT16, DataType.BFLOAT16})
"""Floats of 16 bits."""

HANDLES = frozenset({TensorType.RESOURCE, TensorType.VARIANT})
"""Types in a ``.tflite`` file of tensors that hold a single object."""


def boxed(value: Any) -> NDArray[Any]:
    """Return an object array without dimensions that holds *value*."""
    array = np.empty((), object)
    array[()] = value
    return array


def zeros(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array as TensorFlow initialises it: zeros, or empty strings."""
    return np.full(shape, b"", object) if dtype.hasobject else np.zeros(shape, dtype)


def widened(x: NDArray[Any]) -> NDArray[Any]:
    """Return *x*; 16-bit floats become float32, in which they are computed."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
