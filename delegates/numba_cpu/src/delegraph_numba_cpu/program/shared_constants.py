"""Large constants of a program, each stored once for all nodes that use it."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Tensor
from delegraph.operators import MemoryLimit
from delegraph_numba_cpu.instructions.memory import Memory
from delegraph_numba_cpu.program.constant_keys import constant_key

LEAST = 64 << 10
"""Least number of bytes of a constant for which an equal one is searched."""


class SharedConstants:
    """The large constants of one program, without duplicates.

    Args:
        limit: largest total size of the constants.
    """

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._found: dict[object, Memory] = {}
        self._bytes = 0

    def memory_of(self, tensor: Tensor, keep: Callable[[NDArray[Any]], Memory]) -> Memory:
        """Return the memory of a constant tensor; tensors that share a buffer are compared once.

        Args:
            tensor: the constant.
            keep: function that stores a new array and returns its memory.

        Raises:
            OperatorError: the constants together exceed the limit.
        """
        if tensor.data.nbytes < LEAST:
            return keep(tensor.data)
        key = constant_key(tensor)
        if key not in self._found:
            self._found[key] = self.memory(tensor.data, keep)
        return self._found[key]

    def memory(self, array: NDArray[Any], keep: Callable[[NDArray[Any]], Memory]) -> Memory:
        """Return the memory of a stored constant that equals an array; store the array otherwise.

        Args:
            array: the values.
            keep: function that stores a new array and returns its memory.

        Raises:
            OperatorError: the constants together exceed the limit.
        """
        if array.nbytes < LEAST:
            return keep(array)
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        key = array.shape, array.dtype.str, blake2b(content.data, digest_size=16).digest()
        if key not in self._found:
            self._bytes += array.nbytes
            self._limit.require_copies(self._bytes, "what kernels keep of constants")
            self._found[key] = keep(array)
        return self._found[key]
