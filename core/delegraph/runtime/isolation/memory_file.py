"""Memory that two processes share, as an anonymous file.

The memory is freed as soon as no process uses it, even if a process crashes.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import byte_size
from delegraph.operators.tensor import Tensor

_ALIGNMENT = 64


class MemoryFile:
    """Anonymous file in memory, whose descriptor can be sent to another process.

    Attributes:
        file: the descriptor, valid until :meth:`close`.
        size: number of bytes.
    """

    def __init__(self, file: int, size: int) -> None:
        self.file = file
        self.size = size

    @classmethod
    def of_size(cls, size: int) -> MemoryFile:
        """Return a new memory file of *size* bytes, which no process can shrink."""
        file, size = _new_file(), max(size, 1)
        os.ftruncate(file, size)
        _keep_size(file)
        return cls(file, size)

    @classmethod
    def with_content(cls, content: bytes) -> MemoryFile:
        """Create a memory file that holds *content*."""
        made = cls.of_size(len(content))
        view = memoryview(content)
        written = 0
        while written < len(content):
            written += os.pwrite(made.file, view[written:], written)
        return made

    def mapped(self) -> mmap.mmap:
        """Map the memory; the mapping stays valid after the descriptor is closed."""
        return mmap.mmap(self.file, self.size)

    def close(self) -> None:
        """Close the descriptor; mapped memory stays valid while it is used."""
        file, self.file = self.file, -1
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        self.close()


def _new_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("delegraph", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    file, path = tempfile.mkstemp(prefix="delegraph-")
    os.unlink(path)
    return file


def _keep_size(file: int) -> None:
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):  # an operating system without seals
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)


def offsets(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Return aligned byte offsets for consecutive blocks of *sizes* bytes, and the total size.

    >>> offsets([10, 0, 64])
    ([0, 64, 64], 128)
    """
    found, end = [], 0
    for size in sizes:
        found.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return found, end


def array_at(memory: Any, offset: int, tensor: Tensor) -> NDArray[Any]:
    """Return an array at byte *offset* in *memory*, with dtype and shape of ``tensor.data``."""
    if tensor.is_packed:
        size = byte_size(tensor.type, tensor.shape)
        return np.ndarray((size,), np.uint8, buffer=memory, offset=offset)
    return np.ndarray(tensor.shape, tensor.dtype, buffer=memory, offset=offset)
