"""Small models and buffers for tests of ``CompiledModel``, official or Delegraph's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.testing import constant, one_op_model, tensor

KEY = "<placeholder signature>"
"""Key of the signature of a model that declares none."""

ONES = np.ones(4, np.float32)


def negating(shape: tuple[int, ...] = (1, 4), **more: Any) -> bytes:
    """Model with one node: ``b = -a``."""
    x, y = (tensor(shape, name=name, **more) for name in "ab")
    return one_op_model("NEG", [x], [y])


def adding() -> bytes:
    """Model with one node: ``c = a + b``."""
    x, y, z = (tensor((1, 4), name=name) for name in "abc")
    return one_op_model("ADD", [x, y], [z])


def open_rows() -> bytes:
    """Model like :func:`negating` with any number of rows."""
    return negating((1, 4), shape_signature=(-1, 4))


def reshaping(dtype: str) -> bytes:
    """Model that reshapes six elements of a type without changing their bytes."""
    x, y = tensor((2, 3), dtype, name="a"), tensor((6,), dtype, name="b")
    return one_op_model("RESHAPE", [x, constant(np.array([6], np.int32))], [y])


def buffers(model: Any, *values: NDArray[Any], index: int = 0) -> tuple[list[Any], list[Any]]:
    """Buffers of all inputs, with *values* written, and of all outputs."""
    inputs = model.create_input_buffers(index)
    for buffer, value in zip(inputs, values, strict=False):
        buffer.write(value)
    return inputs, model.create_output_buffers(index)


def aligned(count: int, dtype: Any = np.float32, offset: int = 0) -> NDArray[Any]:
    """Zeros at an address that is a multiple of 64, plus *offset* bytes."""
    size = count * np.dtype(dtype).itemsize
    raw = np.zeros(size + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return raw[start : start + size].view(dtype)
