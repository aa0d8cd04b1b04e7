"""How Numba makes native code of kernels, and of nothing else: all that is patched of Numba.

Numba optimises each function with all that it calls and makes native code of it, before those that
call it do the same with a copy. Here only kernels are wanted, in which their helpers are inlined:
a function by itself gets the first, simple passes of LLVM, a kernel as a whole all the others.
That takes two thirds of the time. Numba has no public way to it, so this module reaches inside:

- ``cpu_target.target_context._internal_codegen`` is replaced: by what compiles ahead of time.
- ``AOTCodeLibrary._optimize_final_module`` waits until a kernel is asked for; its callers read
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
    """A function with all that it calls, hardly optimised until somebody asks for native code."""

    def object_code(self, function: str, symbol: str) -> bytes:
        """Return one function, optimised, with all that it calls, as an object file.

        To be called once.

        Args:
            function: its name in this library.
            symbol: what the object file calls it; nothing else in there can be seen from outside.
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
        """Return 0: nothing is made to run here."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        """Leave it to the kernels that this is linked into."""


class KernelCodegen(AOTCPUCodegen):  # type: ignore[misc]  # Numba has no types
    """Makes :class:`KernelLibrary` objects, whose code works wherever it is loaded."""

    _library_class = KernelLibrary

    def _customize_tm_features(self) -> str:
        """Return the instructions that the environment names; ahead of time Numba takes none."""
        features: str = self._get_host_cpu_features()
        return features

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: what is never run needs no environment."""


def compile_kernels_only(machine: str) -> None:
    """Let Numba compile, in this process and from now on, as described above.

    Args:
        machine: for which family of processors, by the words of ``codegen/host_platform.py``.
    """
    initialize(machine)
    triple = triple_of(machine)
    llvm.get_process_triple = lambda: triple  # where Numba asks what to compile for
    cpu_target.target_context._internal_codegen = KernelCodegen("delegraph_numba_cpu", "host")


def object_code(kernel: Any, symbol: str) -> bytes:
    """Return an object file of a kernel that ``numba.cfunc`` has compiled; to be called once."""
    library: KernelLibrary = kernel._library
    return library.object_code(kernel.native_name, symbol)
