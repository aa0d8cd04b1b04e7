"""How many bytes a model's tensors may take.

A model file is untrusted: a few changed bytes make a shape that wants all of a machine's memory. So
by default a model may take memory in proportion to its file. Once a user resizes an input, only the
machine's memory is the limit.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass

LEAST = 256 << 20
"""Bytes that every model may take."""

LEAST_COPIES = 96 << 20
"""Bytes that second forms of a model's constants, such as packed weights, may always take."""

TIMES_FILE = 16
"""Factor by which a model may take more memory than its file, above :data:`LEAST`."""

LARGE_MODEL = 20 << 20
"""Size of a file, in bytes, above which kernels save memory rather than time."""


def physical_memory() -> int:
    """Return the bytes of memory of this machine."""
    if sys.platform == "win32":
        return windows_physical_memory()
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def windows_physical_memory() -> int:
    """Bytes of physical memory of this Windows machine; Windows has no ``sysconf``."""
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
    """Number of bytes that one interpreter may allocate.

    Attributes:
        bytes: bytes that the tensors of a subgraph may take, and that a kernel may take in
            addition.
        is_default: whether the user has not chosen it.
        is_large_model: whether kernels keep no second form of the weights that is larger than the
            weights, even if they are slower without it.
        copies: bytes that second forms of the constants of a partition or subgraph may take, with
            what kernels keep for each channel; None means the same as ``bytes``.
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
        """Return the limit that the machine sets."""
        return cls(physical_memory(), is_default=True)

    def trust_shapes(self) -> None:
        """Raise a default limit to the machine's memory, because the user asks for the shapes."""
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
        """Check that copies of constants may take *wanted* bytes; *what* is for the error."""
        limit = self.bytes if self.copies is None else self.copies
        if wanted > limit:
            raise OperatorError(f"{what} needs {wanted} bytes, more than {_advice(limit)}")

    def advice(self) -> str:
        """Text with the limit and how to change it, for the end of an error message."""
        return _advice(self.bytes)


def _advice(limit: int) -> str:
    return f"the limit of {limit} bytes; Interpreter(limits=Limits(memory=...)) sets another"
