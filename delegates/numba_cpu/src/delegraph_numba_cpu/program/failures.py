"""What kernels find wrong with the data while a program runs."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph_numba_cpu.instructions.moves import GATHER
from delegraph_numba_cpu.program.program import Program

_WRONG, _AMONG = GATHER.slots("wrong", "among")


@dataclass(frozen=True, slots=True)
class WrongPosition:
    """A computed position outside of what it is to choose from.

    Attributes:
        nodes: the nodes of the row that met it.
        position: itself, the first that was met.
        size: how many positions there are.
    """

    nodes: tuple[int, ...]
    position: int
    size: int

    def __str__(self) -> str:
        return f"position {self.position} is outside [0, {self.size})"


def can_fail(program: Program) -> bool:
    """Return whether a run of a program may find something wrong with the data."""
    return any(row.block is GATHER for row in program.rows)


def wrong_position(program: Program) -> WrongPosition | None:
    """Wrong position by which a run failed, given once; None when it failed otherwise."""
    found = None
    for number, row in enumerate(program.rows):
        if row.block is not GATHER:
            continue
        block = program.block(number)
        code = int(block[_WRONG])
        if code:
            found = found or WrongPosition(
                row.nodes, code if code < 0 else code - 1, int(block[_AMONG])
            )
            block[_WRONG] = 0
    return found
