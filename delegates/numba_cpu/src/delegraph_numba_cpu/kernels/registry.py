"""The kernels of the family being compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from delegraph_numba_cpu.blocks import Block
from delegraph_numba_cpu.cpu import LEVELS, CpuLevel

KERNELS: dict[str, Callable[..., None]] = {}
"""Kernel name to Python function ``(words, tile, worker) -> None``, all int64."""

_level = LEVELS["generic"]


def set_level(level: CpuLevel) -> None:
    """Say what instructions the kernels may use; before any kernel module is imported."""
    global _level
    _level = level


def level() -> CpuLevel:
    """Return what instructions the kernels may use."""
    return _level


def kernel(block: Block | str) -> Callable[[Any], Any]:
    """Return a decorator that makes a Python function the kernel of a block, or an entry point."""

    def add(function: Any) -> Any:
        KERNELS[block if isinstance(block, str) else block.kernel] = function
        return function

    return add
