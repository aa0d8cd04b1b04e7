"""Native code of kernels only: all patches of Numba.

Numba optimizes and compiles each function together with all functions that it calls. Each caller
then does the same with a copy. Delegraph needs only kernels, with their helpers inlined. So a
helper gets only the first, simple passes of LLVM, and all other passes run once on the whole
kernel. This takes two thirds of the time. Numba has no public API for it, so this module patches
it:

- ``cpu_target.target_context._internal_codegen`` is replaced by a compiler ahead of time.
- ``AOTCodeLibrary._optimize_final_module`` waits until a kernel is requested; its callers read
  ``_codegen`` and ``_final_module``.
- ``AOTCPUCodegen._customize_tm_features`` returns ``NUMBA_CPU_FEATURES``, as for code that runs.
- ``set_env`` and ``get_pointer_to_function``, which Numba calls for code that runs, do nothing.
- ``llvmlite.binding.get_process_triple`` returns the triple of the machine to compile for.
- ``CFunc._library`` is the library of a compiled kernel.
- Numba's wrapper of a kernel calls the symbols in ``codegen/numba_runtime_symbols.py``.

Tried with Numba 0.68.1 and llvmlite 0.50.0. Each has a test in ``tests/test_native_code.py``.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import AOTCodeLibrary, AOTCPUCodegen
from numba.core.registry import cpu_target

from delegraph_numba_cpu.codegen.targets import initialize, triple_of


class KernelLibrary(AOTCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """A compiled function and all functions that it calls, optimized when its code is requested."""

    def object_code(self, function: str, symbol: str) -> bytes:
        """Return an object file of one function and all that it calls, optimized.

        This method may be called only once.

        Args:
            function: name of the function in this library.
            symbol: name of the function in the object file, the only visible symbol there.
        """
        module = self._final_module
        for value in (*module.functions, *module.global_variables):
            if value.name == function:
                value.name = symbol
            elif not value.is_declaration:
                value.linkage = "internal"
        super()._optimize_final_module()
        code: bytes = self.emit_native_object()
        return code

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, as no code is run in this process."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        """Do nothing; the kernels that link this library optimize it."""


class KernelCodegen(AOTCPUCodegen):  # type: ignore[misc]  # Numba has no types
    """Makes :class:`KernelLibrary` objects, whose code works wherever it is loaded."""

    _library_class = KernelLibrary

    def _customize_tm_features(self) -> str:
        """Return the processor features that the environment names.

        Numba ignores these when it compiles ahead of time.
        """
        features: str = self._get_host_cpu_features()
        return features

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: code that is not run needs no environment."""


def compile_kernels_only(machine: str) -> None:
    """Patch Numba in this process, so that it compiles only whole kernels to native code.

    Args:
        machine: type of processor, as ``codegen/host_platform.py`` names it.
    """
    initialize(machine)
    triple = triple_of(machine)
    llvm.get_process_triple = lambda: triple  # Numba asks it for the target
    cpu_target.target_context._internal_codegen = KernelCodegen("delegraph_numba_cpu", "host")


def object_code(kernel: Any, symbol: str) -> bytes:
    """Return an object file of a kernel that ``numba.cfunc`` has compiled; call this only once.

    Args:
        kernel: the compiled function.
        symbol: name of the kernel in the object file.
    """
    library: KernelLibrary = kernel._library
    return library.object_code(kernel.native_name, symbol)
