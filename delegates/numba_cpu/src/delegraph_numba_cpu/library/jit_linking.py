"""Links object code from the cache into this process by LLVM; compiles missing kernels."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.errors import DelegateError
from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
from delegraph_numba_cpu.codegen.numba_runtime_symbols import UNUSED
from delegraph_numba_cpu.codegen.object_code import symbol_of, unpack
from delegraph_numba_cpu.library.prebuilt import prebuilt_file, prebuilt_objects

try:
    import llvmlite.binding as llvm
except ImportError:
    llvm = None

if TYPE_CHECKING:
    from delegraph_numba_cpu.library.cache import OpensCache
    from delegraph_numba_cpu.library.compile_processes import Progress


class LinkedObjects:
    """Kernels of one instruction-set level that LLVM has linked into this process.

    Args:
        level: the instruction set, such as ``avx2``.
    """

    def __init__(self, level: CpuLevel) -> None:
        self._level = level
        self._addresses: dict[str, int] = {}
        self._linker = _linker(level)

    def address(self, family: str, kernel: str) -> int:
        """Return the address of a compiled kernel, whose family must be loaded.

        Args:
            family: name of the family.
            kernel: name of the kernel.
        """
        return self._addresses[symbol_of(family, kernel)]

    def load(
        self, families: Sequence[str], open_cache: OpensCache, progress: Progress | None
    ) -> None:
        """Link the kernels of some families into the process; compile those that no cache has.

        Args:
            families: names of the families.
            open_cache: function that opens the cache in which compiled kernels are looked up.
            progress: function that gets the progress of compilation, see :func:`.building.build`.
        """
        for family, packed in self._packed(families, open_cache, progress).items():
            try:
                objects = unpack(packed)
            except ValueError as error:
                remedy = "'delegraph cache clear numba_cpu' has them compiled again"
                raise DelegateError(f"{error}; {remedy}") from error
            for code in objects.values():
                self._linker.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
            self._linker.finalize_object()
            symbols = [symbol_of(family, kernel) for kernel in objects]
            found = {symbol: self._linker.get_function_address(symbol) for symbol in symbols}
            missing = [symbol for symbol, address in found.items() if not address]
            if missing:
                raise DelegateError(f"compiled kernels {', '.join(missing)} have no code")
            self._addresses.update(found)

    def _packed(
        self, families: Sequence[str], open_cache: OpensCache, progress: Progress | None
    ) -> dict[str, bytes]:
        prebuilt = prebuilt_objects(self._level)
        if prebuilt is not None:
            return {family: prebuilt[family] for family in families}
        from delegraph_numba_cpu.library.cache import kernel_cache, key_of

        cache = kernel_cache(self._level, open_cache)
        known = {family: cache.read(key_of(family)) for family in families}
        found = {family: packed for family, packed in known.items() if packed is not None}
        if len(found) < len(families):
            # Imported here: most processes compile nothing.
            from delegraph_numba_cpu.library.building import build

            to_compile = [family for family in families if family not in found]
            found |= build(to_compile, self._level, cache, progress)
        return found


def _linker(level: CpuLevel) -> llvm.ExecutionEngine:
    """Return an LLVM engine that links object code into this process.

    Raises:
        DelegateError: llvmlite is not installed.
    """
    if llvm is None:
        raise DelegateError(
            f"there are no kernels for {level.name} ({prebuilt_file(level)}), and no Numba to "
            "compile them; pip install 'delegraph-numba-cpu[jit]' adds it"
        )
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    never = ctypes.cast(_NEVER_CALLED, ctypes.c_void_p).value
    for name in UNUSED:
        llvm.add_symbol(name, never)
    if sys.platform == "win32":
        sleep = ctypes.cast(ctypes.WinDLL("kernel32").Sleep, ctypes.c_void_p).value
        llvm.add_symbol("Sleep", sleep)
    machine = llvm.Target.from_default_triple().create_target_machine(
        codemodel="jitdefault", jit=True
    )
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


_NEVER_CALLED = ctypes.CFUNCTYPE(None)(lambda: None)
