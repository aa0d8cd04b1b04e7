"""Compiled kernels of one level, by address: from memory, from the cache on disk, or compiled now."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from delegraph.errors import DelegateError
from delegraph_numba_cpu.blocks.executor import INVOKE, RUN, WORK
from delegraph_numba_cpu.compiling import environment
from delegraph_numba_cpu.cpu import CpuLevel
from delegraph_numba_cpu.objects import Objects, read_objects

logger = logging.getLogger(__name__)

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

CACHE_VARIABLE = "DELEGRAPH_NUMBA_CACHE"

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

    Attributes:
        level: the level.
        run: the executor's entry for one thread; see ``blocks.executor``.
        invoke: its entry for several.
        work: its entry for a worker thread. All three let other Python threads run meanwhile.
    """

    def __init__(self, level: CpuLevel) -> None:
        self.level = level
        self._addresses: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()
        self._linker = _linker()
        self.load(["executor"])
        self.run, self.invoke, self.work = (
            _Entry(self.address("executor", name)) for name in (RUN, INVOKE, WORK)
        )

    def address(self, family: str, kernel: str) -> int:
        """Return where a kernel is; its family is loaded, or compiled, when it is not yet.

        Raises:
            DelegateError: it cannot be compiled; the message ends with the compiler's.
        """
        if family not in self._addresses:
            self.load([family])
        return self._addresses[family][kernel]

    def load(self, families: Iterable[str]) -> None:
        """Load several families; those that must be compiled are compiled side by side."""
        with self._lock:
            missing = [f for f in dict.fromkeys(families) if f not in self._addresses]
            folder = cache_folder(self.level)
            found = {f: read_objects(folder / f"{f}.kernels") for f in missing}
            to_compile = [f for f, objects in found.items() if objects is None]
            if to_compile:
                found.update(_compile(to_compile, self.level, folder))
            for family, objects in found.items():
                assert objects is not None
                self._addresses[family] = self._link(objects)

    def _link(self, objects: Objects) -> dict[str, int]:
        for _, code in objects.values():
            self._linker.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
        self._linker.finalize_object()
        return {
            name: self._linker.get_function_address(symbol)
            for name, (symbol, _) in objects.items()
        }


@cache
def library(level: CpuLevel) -> Library:
    """Return the library of a level."""
    return Library(level)


def cache_folder(level: CpuLevel) -> Path:
    """Return the folder for objects that fit this code, these versions and this processor.

    It is under ``$DELEGRAPH_NUMBA_CACHE``, else under the user's cache folder; in a temporary one,
    with a warning, when that cannot be written.
    """
    base = os.environ.get(CACHE_VARIABLE) or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "delegraph", "numba_cpu"
    )
    folder = Path(base, f"{level.name}-{_key()[:16]}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
        reason = "it is read-only"
    except OSError as error:
        reason = str(error)
    return _temporary_folder(str(folder), reason)


@cache
def _temporary_folder(folder: str, reason: str) -> Path:
    temporary = Path(tempfile.mkdtemp(prefix="delegraph-numba-"))
    logger.warning("no cache in %s: %s; kernels are compiled for this process only", folder, reason)
    return temporary


@cache
def _key() -> str:
    """Return a hash of the kernels' sources, the compilers' versions, and the processor."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted([*root.glob("blocks/*.py"), *root.glob("kernels/*.py"), *root.glob("c*.py")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for package in ("numba", "llvmlite"):
        digest.update(version(package).encode() + b"\0")
    digest.update(llvm.get_process_triple().encode() + llvm.get_host_cpu_name().encode())
    digest.update(str(sorted(llvm.get_host_cpu_features().items())).encode())
    return digest.hexdigest()


def _compile(families: list[str], level: CpuLevel, folder: Path) -> dict[str, Objects]:
    """Compile families, each in a process of its own."""
    if sys.stderr.isatty():
        print(
            f"numba_cpu: compiling {len(families)} families of kernels for this processor, once ...",
            file=sys.stderr,
            flush=True,
        )
    running = {
        family: subprocess.Popen(
            [
                sys.executable,
                "-m",
                "delegraph_numba_cpu.compiling",
                family,
                level.name,
                str(folder / f"{family}.kernels"),
            ],
            env=environment(level.name),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for family in families
    }
    found = {}
    for family, process in running.items():
        output, _ = process.communicate()
        objects = read_objects(folder / f"{family}.kernels")
        if process.returncode or objects is None:
            lines = output.strip().splitlines()
            reason = lines[-1] if lines else f"it ended with {process.returncode}"
            raise DelegateError(
                f"the kernels {family!r} cannot be compiled for {level.name}: {reason}"
            )
        found[family] = objects
    return found


def _linker() -> llvm.ExecutionEngine:
    """Return an engine that links object code into this process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    never = ctypes.cast(_NEVER_CALLED, ctypes.c_void_p).value
    for name in _UNUSED:
        llvm.add_symbol(name, never)
    machine = llvm.Target.from_default_triple().create_target_machine(
        codemodel="jitdefault", jit=True
    )
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


_NEVER_CALLED = ctypes.CFUNCTYPE(None)(lambda: None)
