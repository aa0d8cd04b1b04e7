"""Arrays in memory from libc's ``malloc``, which C code may reallocate or free."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.native.abi import libc, malloc


class LibcMemory:
    """A block of libc memory, which is freed when no array uses it any more.

    Attributes:
        address: address of the block; None after :meth:`forget`.
        size: size in bytes.
    """

    def __init__(self, address: int, size: int) -> None:
        self.address: int | None = address
        self.size = size

    @classmethod
    def of(cls, size: int) -> LibcMemory:
        """Allocate a new block of *size* bytes, uninitialised.

        Raises:
            MemoryError: there is not enough memory.
        """
        return cls(malloc(size), size)

    def forget(self) -> None:
        """Give up the block's ownership, because C code has freed or reallocated it."""
        self.address = None

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of *dtype* and *shape* on the block, which the array keeps alive."""
        block = np.asarray(self)
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return block[:count].view(dtype).reshape(shape)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.size,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }

    def __del__(self) -> None:
        if self.address is not None:
            libc().free(self.address)
