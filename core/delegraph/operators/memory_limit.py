"""Limit on the number of bytes that a model's tensors may take.

A model file is untrusted: a few changed bytes give a shape that needs all of a machine's memory. So
by default, the limit is proportional to the file's size. Once a user resizes an input, the limit is
the machine's memory.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass

LEAST = 256 << 20
"""Number of bytes that tensors of every model may take, whatever the file's size."""

LEAST_COPIES = 96 << 20
"""Number of bytes that copies of constants (such as packed weights) of every model may take."""

TIMES_FILE = 16
"""Allowed ratio of a model's memory to its file's size, above :data:`LEAST`."""

LARGE_MODEL = 20 << 20
"""Size of a file in bytes above which kernels save memory rather than time."""


@cache
def physical_memory() -> int:
    """Number of bytes of this machine's physical memory."""
    if sys.platform == "win32":
        return windows_physical_memory()
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def windows_physical_memory() -> int:
    """Number of bytes of this Windows machine's physical memory, found without ``sysconf``."""
    import ctypes

    class MemoryStatus(ctypes.Structure):  # MEMORYSTATUSEX of sysinfoapi.h
        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("total_physical", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 6),
        )

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    windows: Any = ctypes  # `windll` is there on Windows alone
    windows.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.total_physical)


@dataclass(slots=True)
class MemoryLimit:
    """Limit on the number of bytes that one interpreter may allocate.

    Attributes:
        bytes: maximal number of bytes of a subgraph's tensors, and of a kernel's additional memory.
        is_default: whether the limit is the default, not the user's choice.
        is_large_model: whether kernels must not store a second, larger form of the weights, even if
            they are slower without it.
        copies: maximal number of bytes of second forms of constants in a partition or subgraph,
            including kernels' data for each channel; None means the same as ``bytes``.
    """

    bytes: int
    is_default: bool
    is_large_model: bool = False
    copies: int | None = None

    @classmethod
    def of(cls, chosen: int | None, file_bytes: int) -> MemoryLimit:
        """Return the limit that the user has *chosen*, or the default for a file of *file_bytes*.

        >>> MemoryLimit.of(None, 4_000_000).bytes == LEAST
        True
        """
        is_large = file_bytes > LARGE_MODEL
        if chosen is not None:
            return cls(chosen, is_default=False, is_large_model=is_large)
        machine, wanted = physical_memory(), TIMES_FILE * file_bytes
        most, copies = (min(max(least, wanted), machine) for least in (LEAST, LEAST_COPIES))
        return cls(most, is_default=True, is_large_model=is_large, copies=copies)

    @classmethod
    def of_machine(cls) -> MemoryLimit:
        """Return a limit equal to the machine's memory."""
        return cls(physical_memory(), is_default=True)

    def trust_shapes(self) -> None:
        """Raise a default limit to the machine's memory, because the user chose the shapes."""
        if self.is_default:
            self.bytes = physical_memory()

    def require(self, wanted: int, what: str) -> None:
        """Check that *wanted* bytes are within the limit; called before the allocation.

        Args:
            wanted: number of bytes.
            what: name of the memory, for the error.

        Raises:
            OperatorError: *wanted* is more than the limit.
        """
        if wanted > self.bytes:
            raise OperatorError(f"{what} needs {wanted} bytes, more than {self.advice()}")

    def require_copies(self, wanted: int, what: str) -> None:
        """Check that second forms of constants may take *wanted* bytes: the limit ``copies``.

        Args:
            wanted: number of bytes.
            what: name of the memory, for the error.

        Raises:
            OperatorError: *wanted* is more than the limit.
        """
        limit = self.bytes if self.copies is None else self.copies
        if wanted > limit:
            raise OperatorError(f"{what} needs {wanted} bytes, more than {_advice(limit)}")

    def advice(self) -> str:
        """Text with the limit and advice on changing it, for the end of an error message."""
        return _advice(self.bytes)


def _advice(limit: int) -> str:
    return f"the limit of {limit} bytes; Interpreter(limits=Limits(memory=...)) sets another"
