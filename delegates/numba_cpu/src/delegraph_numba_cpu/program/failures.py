"""Errors in the data that kernels report while a program runs."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph_numba_cpu.program.program import Program


@dataclass(frozen=True, slots=True)
class WrongPosition:
    """Failure of a run: a position that the model computed is out of range, as in a GATHER.

    Attributes:
        nodes: indices of the nodes whose kernel call found the position.
        position: the first wrong position.
        size: number of valid positions, 0 to *size* - 1.
    """

    nodes: tuple[int, ...]
    position: int
    size: int

    def __str__(self) -> str:
        return f"position {self.position} is outside [0, {self.size})"


def wrong_position(program: Program) -> WrongPosition | None:
    """Return the out-of-range position that ended a program's last run; None if there is none.

    The position's record in the program is cleared.

    Args:
        program: the program, whose run was not completed.
    """
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
