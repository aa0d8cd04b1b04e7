"""Errors in the data that kernels report while a program runs."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph_numba_cpu.program.program import Program


@dataclass(frozen=True, slots=True)
class WrongPosition:
    """A position, computed by the model, that is out of range.

    Attributes:
        nodes: indices of the nodes whose row found the position.
        position: the first wrong position.
        size: number of valid positions.
    """

    nodes: tuple[int, ...]
    position: int
    size: int

    def __str__(self) -> str:
        return f"position {self.position} is outside [0, {self.size})"


def wrong_position(program: Program) -> WrongPosition | None:
    """Return the wrong position that ended *program*'s run, and clear it; None if there is none."""
    found = None
    for number, row in enumerate(program.rows):
        if "wrong" not in row.words:
            continue
        record = program.record(number)
        wrong, among = row.instruction.slots("wrong", "among")
        code = int(record[wrong])
        if code:
            found = found or WrongPosition(
                row.nodes, code if code < 0 else code - 1, int(record[among])
            )
            record[wrong] = 0
    return found
