"""A delegate for the CPU whose kernels are written in Python and compiled by Numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delegraph_numba_cpu.building import Progress

__all__ = ["warmup"]


def warmup(cpu: str = "auto", progress: Progress | None = None) -> None:
    """Fill the cache with all kernels, so that no process has to compile any.

    Takes some seconds where something is to be compiled, and milliseconds where nothing is.

    Args:
        cpu: for which instructions, as in the delegate's option ``cpu``.
        progress: is told how many families of kernels are compiled, of how many, and which was
            last; None for a line on standard error if that is a terminal.

    Raises:
        DelegateError: the processor has no such instructions, or something cannot be compiled.
    """
    from delegraph_numba_cpu.cpu import level_named
    from delegraph_numba_cpu.families import families
    from delegraph_numba_cpu.kernel_library import library

    library(level_named(cpu)).load(families(), progress)
