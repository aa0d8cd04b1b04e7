"""Compiles families of kernels, in a process of its own; see ``library/building.py``.

A process of its own, because LLVM ends the process when it meets an instruction that it does not
have, because Numba takes its processor from the environment, and because a process that finds the
objects in the cache then needs no Numba at all.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from delegraph_numba_cpu.codegen.cpu_levels import LEVELS
from delegraph_numba_cpu.codegen.object_code import Objects, pack, symbol_of

ANSWER = b"compiled "
"""What the first line of an answer starts with; the number of bytes that follow comes next."""


def serve(level_name: str, machine: str) -> None:
    """Compile, for a level, the families that standard input names, one a line.

    Args:
        level_name: the level.
        machine: for which family of processors, by the words of ``codegen/host_platform.py``.

    Ends with the input. Each is answered, on standard output, by a line that starts with
    :data:`ANSWER`, and the packed kernels; what compilers print goes to standard error.
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
