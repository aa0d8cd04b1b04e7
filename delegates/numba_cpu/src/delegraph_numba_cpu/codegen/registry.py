"""The kernels that this process has imported, by family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from delegraph_numba_cpu.codegen.cpu_levels import LEVELS, CpuLevel
from delegraph_numba_cpu.codegen.host_platform import host_machine
from delegraph_numba_cpu.instructions import Instruction

KERNELS: dict[str, dict[str, Callable[..., None]]] = {}
"""Mapping from a family to its kernels, and from a kernel's name to its Python function.

A function is ``(words, tile, worker) -> None``, all int64. Families import one another, and kernels
of two families may have the same name.
"""

_level = LEVELS["generic"]
_machine = host_machine()


def set_target(level: CpuLevel, machine: str) -> None:
    """Set the instruction set that kernels may use; call it before a kernel module is imported.

    Args:
        level: the instruction set, such as ``avx2``.
        machine: type of processor, as ``codegen/host_platform.py`` names it.
    """
    global _level, _machine
    _level, _machine = level, machine


def level() -> CpuLevel:
    """Instruction set that kernels may use, set by :func:`set_target`."""
    return _level


def machine() -> str:
    """Type of the processor for which kernels are compiled; see ``host_platform``."""
    return _machine


def kernel(instruction: Instruction) -> Callable[[Any], Any]:
    """Return a decorator that makes a Python function the compiled kernel of an instruction.

    Args:
        instruction: name of the kernel, and of the operands that it reads.
    """
    return named_kernel(instruction.family, instruction.kernel)


def named_kernel(family: str, name: str) -> Callable[[Any], Any]:
    """Return a decorator that makes a Python function the compiled kernel *name* of a family.

    Args:
        family: name of the kernel's family.
        name: name of the kernel.
    """

    def add(function: Any) -> Any:
        KERNELS.setdefault(family, {})[name] = function
        return function

    return add
