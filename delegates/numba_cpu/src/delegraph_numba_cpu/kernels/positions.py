"""Reports of tensor positions that are out of range, in the program's header."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import compare_and_swap, jit, store_i64
from delegraph_numba_cpu.instructions.executor import IS_CANCELLED


@jit
def report_position(wrong, among, header, position, size):
    """Store the first position that is out of range, and mark the run as failed.

    Args:
        wrong: address of the word for the position; one is added if it is not negative.
        among: address of the word for *size*.
        header: address of the program's header.
        position: the position.
        size: number of valid positions.
    """
    if compare_and_swap(wrong, 0, position if position < 0 else position + 1) == 0:
        store_i64(among, size)
    store_i64(header + 8 * IS_CANCELLED, 1)
