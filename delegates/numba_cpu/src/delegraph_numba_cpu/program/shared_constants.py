"""Large constants of a program, each stored once for all nodes that use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Tensor
from delegraph.operators import MemoryLimit
from delegraph_numba_cpu.instructions.memory import Memory

LEAST = 64 << 10
"""Least number of bytes of a constant for which an equal constant is sought."""

_SAMPLE = 256
"""Number of bytes that are compared first."""


def constant_key(tensor: Tensor | None) -> object:
    """Return a key that stands for a tensor's values among the keys of packed constants.

    Constants that share a buffer, with equal type, shape and scales, have one key: the address of
    the values, and these properties. The key of any other tensor is its index.

    Args:
        tensor: the tensor; None for an absent input, whose key is None.
    """
    if tensor is None or not tensor.is_constant or tensor.data is None:
        return None if tensor is None else tensor.index
    quantization = tensor.quantization
    scales = None if quantization is None else quantization.scales.tobytes()
    return tensor.data.ctypes.data, tensor.type, tensor.shape, scales


class SharedConstants:
    """The large constants of one program, without duplicates.

    Args:
        limit: largest total size of the constants.
    """

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._of_tensors: dict[object, Memory] = {}
        self._found: dict[object, list[Memory]] = {}  # by some of the values
        self._bytes = 0

    def memory_of(self, tensor: Tensor, keep: Callable[[NDArray[Any]], Memory]) -> Memory:
        """Return the memory of a constant tensor; tensors that share a buffer are compared once.

        Args:
            tensor: the constant.
            keep: function that stores a new array and returns its memory, which has the array.

        Raises:
            OperatorError: the constants together exceed the limit.
        """
        if tensor.data.nbytes < LEAST:
            return keep(tensor.data)
        key = constant_key(tensor)
        if key not in self._of_tensors:
            self._of_tensors[key] = self.memory(tensor.data, keep)
        return self._of_tensors[key]

    def memory(self, array: NDArray[Any], keep: Callable[[NDArray[Any]], Memory]) -> Memory:
        """Return the memory of a stored constant that equals an array; store the array otherwise.

        Small arrays are always stored, without a comparison.

        Args:
            array: the values.
            keep: function that stores a new array and returns its memory, which has the array.

        Raises:
            OperatorError: the constants together exceed the limit.
        """
        if array.nbytes < LEAST:
            return keep(array)
        content = _bytes_of(array)
        key = array.shape, array.dtype.str, content[:: array.nbytes // _SAMPLE].tobytes()
        similar = self._found.setdefault(key, [])
        for memory in similar:
            if np.array_equal(_bytes_of(memory.array), content):
                return memory
        self._bytes += array.nbytes
        self._limit.require_copies(self._bytes, "what kernels keep of constants")
        similar.append(keep(array))
        return similar[-1]


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
