"""A delegate for the CPU whose kernels are written in Python and compiled by Numba.

The way from a partition to a running program:

1. ``delegate.py`` asks ``lowering/`` for each node whether it can be taken.
2. At each preparation ``lowering/schedule.py`` fuses nodes (in the order of ``FUSERS``)
   and lowers the others one by one. ``lowering/moves/gather.py`` lowers GATHER, and so on: a module
   for an operator or a family.
3. Lowering emits rows, each a kernel call with its words (``instructions/``), into the builder of
   ``program/program.py``. It plans memory (``program/working_memory.py``), has each row checked
   against its bounds (``bounds/``), and writes the table of rows.
4. ``library/kernel_library.py`` loads the compiled kernels that the rows call, from a prebuilt
   library (``library/prebuilt.py``, made by ``library/linking.py``) or from ``library/cache.py``.
   Missing ones are compiled from ``kernels/`` and ``codegen/`` by processes that
   ``library/building.py`` starts.
5. At each invoke the program follows moved tensors, and ``program/pool.py`` runs the table with
   as many threads as ``program/run_time_estimate.py`` finds worth it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delegraph_numba_cpu.library.compile_processes import Progress

__all__ = ["warmup"]


def warmup(cpu: str = "auto", progress: Progress | None = None) -> None:
    """Compile into the cache all kernels that this package does not contain compiled.

    It takes some seconds if there are kernels to compile, and otherwise milliseconds.

    Args:
        cpu: level of instructions to compile for, a value of the delegate's option ``cpu``.
        progress: function that gets the number of compiled families of kernels, the number of all,
            and the name of the last compiled one; None for lines on standard error if that is a
            terminal.

    Raises:
        DelegateError: the processor has no such instructions, or something cannot be compiled.
    """
    from delegraph_numba_cpu.library.cpu import level_named
    from delegraph_numba_cpu.library.families import families
    from delegraph_numba_cpu.library.kernel_library import library

    library(level_named(cpu)).load(families(), progress=progress)
