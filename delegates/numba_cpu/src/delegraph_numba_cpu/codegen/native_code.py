"""How Numba makes native code of kernels, and of nothing else.

Numba optimises each function with all that it calls and makes native code of it, before those that
call it do the same with a copy. Here only kernels are wanted, in which their helpers are inlined:
a function by itself gets the first, simple passes of LLVM, a kernel as a whole all the others.
That takes two thirds of the time.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.registry import cpu_target

from delegraph_numba_cpu.codegen.targets import initialize, triple_of


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """A function with all that it calls, hardly optimised until somebody asks for native code."""

    def object_code(self, function: str, symbol: str) -> bytes:
        """Return one function, optimised, with all that it calls, as an object file.

        To be called once.

        Args:
            function: its name in this library.
            symbol: what the object file calls it; nothing else in there can be seen from outside.
        """
        self._ensure_finalized()
        module = self._final_module
        for value in (*module.functions, *module.global_variables):
            if value.name == function:
                value.name = symbol
            elif not value.is_declaration:
                value.linkage = "internal"
        super()._optimize_final_module()
        self._verify_declare_only_symbols()
        code: bytes = self._codegen._tm.emit_object(self._final_module)
        return code

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: nothing is made to run here."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        """Leave it to the kernels that this is linked into."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


class KernelCodegen(JITCPUCodegen):  # type: ignore[misc]  # Numba has no types
    """Makes :class:`KernelLibrary` objects, whose code works wherever it is loaded."""

    _library_class = KernelLibrary

    def _customize_tm_options(self, options: dict[str, Any]) -> None:
        """Choose code that works wherever it is loaded."""
        super()._customize_tm_options(options)
        options["reloc"] = "pic"
        options["codemodel"] = "small"

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
    context = cpu_target.target_context
    context._internal_codegen = KernelCodegen("delegraph_numba_cpu")  # Numba has no public way
