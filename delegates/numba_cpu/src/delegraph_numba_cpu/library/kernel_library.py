"""Compiled kernels of one level, by address.

The kernels are in a prebuilt library of this package, or in the cache, from which they are linked
into this process. Kernels that are in neither place are compiled.
"""

from __future__ import annotations

import ctypes
import os
from _thread import RLock, allocate_lock  # the locks of ``threading``, whose import takes long
from collections.abc import Iterable
from typing import TYPE_CHECKING

from delegraph.delegation import BlobCache
from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
from delegraph_numba_cpu.instructions.executor import END, INVOKE, LOOK, RUN, WORK
from delegraph_numba_cpu.library.prebuilt import prebuilt_library

if TYPE_CHECKING:
    from delegraph_numba_cpu.library.cache import OpensCache
    from delegraph_numba_cpu.library.compile_processes import Progress
    from delegraph_numba_cpu.library.jit_linking import LinkedObjects

_WORDS = (None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_Entry = ctypes.CFUNCTYPE(*_WORDS)
_BriefEntry = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)  # the result of run() is not used


class Library:
    """The compiled kernels of one instruction-set level, such as ``avx2``.

    :func:`library` returns the single instance for a process and level. A new library has no
    kernels loaded; the executor is loaded with the first family.

    Attributes:
        level: the instruction set.
        run: native function that runs a program in one thread; see ``instructions.executor``.
        run_briefly: like ``run``, but the GIL is held; for runs of some microseconds.
        invoke: native function that runs a program in several threads.
        work: native function that is the loop of a worker thread.
        end: native function that ends the worker threads.
        look: native function by which a waiting thread polls for work.
    """

    def __init__(self, level: CpuLevel) -> None:
        self.level = level
        self._kernels = prebuilt_library(level) or _linked_objects(level)
        self._loaded: set[str] = set()
        self._lock = allocate_lock()

    def renew_lock(self) -> None:
        """Replace the lock, which another thread may have held when the process was forked."""
        self._lock = allocate_lock()

    def address(self, family: str, kernel: str) -> int:
        """Return the address of a compiled kernel; load or compile its family first if necessary.

        Args:
            family: name of the family.
            kernel: name of the kernel.

        Raises:
            DelegateError: the family cannot be compiled; the compiler's message ends the text.
        """
        if family not in self._loaded:
            self.load([family])
        return self._kernels.address(family, kernel)

    def load(
        self,
        families: Iterable[str],
        open_cache: OpensCache = BlobCache,
        progress: Progress | None = None,
    ) -> None:
        """Load the executor and families of kernels; compile missing families in parallel.

        Args:
            families: names of the families.
            open_cache: function that opens a cache, for kernels that did not come prebuilt:
                ``DelegateContext.cache``.
            progress: function that gets the number of compiled families, the number of all, and the
                name of the last compiled one; None for lines on a terminal.

        Raises:
            DelegateError: a family cannot be compiled; the compiler's message ends the text.
        """
        wanted = dict.fromkeys(["executor", *families])
        if self._loaded.issuperset(wanted):
            return
        with self._lock:
            missing = [family for family in wanted if family not in self._loaded]
            if missing:
                self._kernels.load(missing, open_cache, progress)
            if "executor" in missing:
                self._set_entries()
            self._loaded.update(missing)  # last, in case of an interrupt before

    def _set_entries(self) -> None:
        run, invoke, work, end, look = (
            self._kernels.address("executor", name) for name in (RUN, INVOKE, WORK, END, LOOK)
        )
        self.run, self.run_briefly = _Entry(run), _BriefEntry(run)
        self.invoke, self.work = _Entry(invoke), _Entry(work)
        self.end, self.look = _Entry(end), _Entry(look)


def _linked_objects(level: CpuLevel) -> LinkedObjects:
    # Imported here: it imports llvmlite.
    from delegraph_numba_cpu.library.jit_linking import LinkedObjects

    return LinkedObjects(level)


opened_libraries: dict[str, Library] = {}
_lock = RLock()


def library(level: CpuLevel) -> Library:
    """Return the library of compiled kernels for one instruction-set level of the processor.

    A new library has no kernels loaded.

    Args:
        level: the instruction set, such as ``avx2``.
    """
    with _lock:
        if level.name not in opened_libraries:
            opened_libraries[level.name] = Library(level)
        return opened_libraries[level.name]


def _renew_locks() -> None:
    """Replace all locks in a forked child, as other threads of the parent may have held them."""
    global _lock
    _lock = RLock()
    for known in opened_libraries.values():
        known.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
