"""Compiled kernels of one level, by address: from memory, from the cache, or compiled now."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

import llvmlite.binding as llvm

from delegraph.delegation.blob_cache import BlobCache
from delegraph.errors import DelegateError
from delegraph_numba_cpu.blocks.executor import END, INVOKE, LOOK, RUN, WORK
from delegraph_numba_cpu.cache import kernel_cache, key_of
from delegraph_numba_cpu.cpu import CpuLevel
from delegraph_numba_cpu.objects import Objects, unpack

if TYPE_CHECKING:
    from delegraph_numba_cpu.building import Progress

_WORDS = (None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_Entry = ctypes.CFUNCTYPE(*_WORDS)
_BriefEntry = ctypes.PYFUNCTYPE(*_WORDS)

_UNUSED = (
    "NRT_Free",
    "NRT_MemInfo_call_dtor",
    "numba_do_raise",
    "numba_gil_ensure",
    "numba_gil_release",
    "numba_runtime_build_excinfo_struct",
    "numba_unpickle",
)
"""What Numba's wrappers call when a kernel raises; kernels never do."""


class Library:
    """The kernels of one level. One a process and level: :func:`library`.

    Nothing is loaded at first; the executor comes with the first family.

    Attributes:
        level: the level.
        run: the executor's entry for one thread; see ``blocks.executor``.
        run_briefly: the same, for what takes microseconds: other Python threads wait meanwhile.
        invoke: its entry for several threads.
        work: its entry for a worker thread.
        end: ends the worker threads.
        look: what a thread does while it waits.
    """

    def __init__(self, level: CpuLevel) -> None:
        self.level = level
        self._addresses: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()
        self._linker = _linker()

    def renew_lock(self) -> None:
        """Forget that another thread was loading when the process forked."""
        self._lock = threading.Lock()

    def address(self, family: str, kernel: str) -> int:
        """Return where a kernel is; its family is loaded, or compiled, when it is not yet.

        Raises:
            DelegateError: it cannot be compiled; the message ends with the compiler's.
        """
        if family not in self._addresses:
            self.load([family])
        return self._addresses[family][kernel]

    def load(
        self,
        families: Iterable[str],
        cache: BlobCache | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Load several families and the executor; what must be compiled is, side by side.

        Args:
            families: which.
            cache: where compiled kernels of the level are kept; None for the user's.
            progress: is told what is compiled; None for a line on a terminal.

        Raises:
            DelegateError: one cannot be compiled; the message ends with the compiler's.
        """
        wanted = dict.fromkeys(["executor", *families])
        missing = [family for family in wanted if family not in self._addresses]
        if not missing:
            return
        cache = cache or kernel_cache(self.level)
        with self._lock:
            known = {f: cache.read(key_of(f)) for f in missing if f not in self._addresses}
            found = {family: packed for family, packed in known.items() if packed is not None}
            if len(found) < len(known):
                from delegraph_numba_cpu.building import build  # not needed by most processes

                to_compile = [family for family in known if family not in found]
                found |= build(to_compile, self.level, cache, progress)
            for family, packed in found.items():
                addresses = self._link(unpack(packed))
                if family == "executor":
                    self._set_entries(addresses)
                self._addresses[family] = addresses  # last, in case of an interrupt

    def _set_entries(self, executor: dict[str, int]) -> None:
        self.run, self.run_briefly = _Entry(executor[RUN]), _BriefEntry(executor[RUN])
        self.invoke, self.work = _Entry(executor[INVOKE]), _Entry(executor[WORK])
        self.end, self.look = _Entry(executor[END]), _Entry(executor[LOOK])

    def _link(self, objects: Objects) -> dict[str, int]:
        for _, code in objects.values():
            self._linker.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
        self._linker.finalize_object()
        addresses = {
            name: self._linker.get_function_address(symbol) for name, (symbol, _) in objects.items()
        }
        missing = sorted(name for name, address in addresses.items() if not address)
        if missing:
            raise DelegateError(f"compiled kernels {', '.join(missing)} have no code")
        return addresses


_libraries: dict[str, Library] = {}
_lock = threading.RLock()


def library(level: CpuLevel) -> Library:
    """Return the library of a level; nothing is loaded yet when it is new."""
    with _lock:
        if level.name not in _libraries:
            _libraries[level.name] = Library(level)
        return _libraries[level.name]


def _renew_locks() -> None:
    """Forget, in a forked child, that another thread of the parent was loading."""
    global _lock
    _lock = threading.RLock()
    for known in _libraries.values():
        known.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _linker() -> llvm.ExecutionEngine:
    """Return an engine that links object code into this process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    never = ctypes.cast(_NEVER_CALLED, ctypes.c_void_p).value
    for name in _UNUSED:
        llvm.add_symbol(name, never)
    if sys.platform == "win32":
        sleep = ctypes.cast(ctypes.WinDLL("kernel32").Sleep, ctypes.c_void_p).value
        llvm.add_symbol("Sleep", sleep)
    machine = llvm.Target.from_default_triple().create_target_machine(
        codemodel="jitdefault", jit=True
    )
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


_NEVER_CALLED = ctypes.CFUNCTYPE(None)(lambda: None)
