"""Compiles families of kernels, in a process of its own; see ``building``.

A process of its own, because LLVM ends the process when it meets an instruction that it does not
have, because Numba takes its processor from the environment, and because whoever finds the objects
in the cache then needs no Numba at all.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from delegraph_numba_cpu.cpu import LEVELS
from delegraph_numba_cpu.objects import write_objects

DONE = "compiled "
"""What a line of the answer starts with; the family follows."""


def serve(level_name: str) -> None:
    """Compile, for a level, the families that standard input names; a line each: name, tab, file.

    Ends with the input. Each family is answered by a line, when its file is written.
    """
    from delegraph_numba_cpu.kernels import registry
    from delegraph_numba_cpu.native_code import compile_kernels_only

    registry.set_level(LEVELS[level_name])
    compile_kernels_only()
    for line in sys.stdin:
        family, _, path = line.rstrip("\n").partition("\t")
        _compile_family(family, Path(path))
        print(DONE + family, flush=True)


def _compile_family(family: str, path: Path) -> None:
    from numba import cfunc, types

    from delegraph_numba_cpu.kernels import registry

    import_module(f"delegraph_numba_cpu.kernels.{family}")
    signature = types.void(types.int64, types.int64, types.int64)
    objects = {}
    for name, function in registry.KERNELS[family].items():
        compiled = cfunc(signature, error_model="numpy", boundscheck=False)(function)
        objects[name] = (compiled._wrapper_name, compiled._library.object_code())
    write_objects(path, objects)
