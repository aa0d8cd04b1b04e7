"""Compiles families of kernels, in a separate process; see ``library/building.py``.

There are three reasons for a process. LLVM ends the process at an instruction that it does not
support. Numba reads the target processor from the environment. A process that finds all objects
in the cache does not import Numba.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from delegraph_numba_cpu.codegen.cpu_levels import LEVELS
from delegraph_numba_cpu.codegen.object_code import Objects, pack, symbol_of

ANSWER = b"compiled "
"""Start of an answer's first line; the number of bytes that follow the line comes after it."""


def serve(level_name: str, machine: str) -> None:
    """Compile the families of kernels that are named on standard input, one per line.

    For each family, standard output gets a line that starts with :data:`ANSWER`, and the packed
    kernels. Output of compilers goes to standard error. The function returns at the end of the
    input.

    Args:
        level_name: name of the instruction-set level to compile for, such as ``avx2``.
        machine: type of processor, as ``codegen/host_platform.py`` names it.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from delegraph_numba_cpu.codegen import registry
    from delegraph_numba_cpu.codegen.native_code import compile_kernels_only

    registry.set_target(LEVELS[level_name], machine)
    compile_kernels_only(machine)
    for line in sys.stdin:
        family = line.rstrip("\n")
        packed = pack(_compiled(family))
        answers.write(b"\n%b%d\n" % (ANSWER, len(packed)) + packed)
        answers.flush()


def _compiled(family: str) -> Objects:
    from numba import cfunc, types

    from delegraph_numba_cpu.codegen import registry
    from delegraph_numba_cpu.codegen.native_code import object_code

    import_module(f"delegraph_numba_cpu.kernels.{family}")
    signature = types.void(types.int64, types.int64, types.int64)
    objects = {}
    for name, function in registry.KERNELS[family].items():
        compiled = cfunc(signature, error_model="numpy", boundscheck=False)(function)
        objects[name] = object_code(compiled, symbol_of(family, name))
    return objects
