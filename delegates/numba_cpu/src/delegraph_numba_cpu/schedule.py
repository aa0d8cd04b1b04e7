"""From the nodes of a partition to the rows of a program: what is fused, and in what order.

A *fuser* looks at a node and its neighbours and may take several nodes as one step, whose values
in between never reach memory as tensors. Nodes that no fuser takes are lowered one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from delegraph_numba_cpu.operators.registry import OPERATORS, Call
from delegraph_numba_cpu.program import ProgramBuilder


class Partition:
    """The nodes of a partition and how they hang together.

    Attributes:
        calls: the nodes, in execution order.
        outputs: tensors that others read.
    """

    def __init__(self, calls: Sequence[Call], outputs: Collection[int]) -> None:
        self.calls = tuple(calls)
        self.outputs = frozenset(outputs)
        self._makers = {t: i for i, call in enumerate(calls) for t in call.node.outputs if t >= 0}
        self._readers: dict[int, list[int]] = {}
        for i, call in enumerate(calls):
            for tensor in call.node.inputs:
                if tensor >= 0:
                    self._readers.setdefault(tensor, []).append(i)

    def maker(self, tensor: int) -> int | None:
        """Return the position of the node that makes a tensor; None when it comes from outside."""
        return self._makers.get(tensor)

    def only_reader(self, tensor: int) -> int | None:
        """Return the position of the one node that reads a tensor, if nobody else does."""
        readers = self._readers.get(tensor, [])
        return readers[0] if len(readers) == 1 and tensor not in self.outputs else None

    def next(self, position: int) -> int | None:
        """Return the one node that reads the only output of a node, if nobody else does."""
        outputs = self.calls[position].node.outputs
        return self.only_reader(outputs[0]) if len(outputs) == 1 else None


@dataclass(frozen=True, slots=True)
class Fusion:
    """Several nodes as one step; it runs where the last of them stood.

    Attributes:
        members: positions of the nodes.
        lower: emits the kernel calls.
    """

    members: tuple[int, ...]
    lower: Callable[[ProgramBuilder], None]


Fuser = Callable[[Partition, int, ProgramBuilder], Fusion | None]
"""Looks at the node at a position, which is to be the first member; None when nothing fits."""

FUSERS: list[Fuser] = []
"""Tried in this order at each node that is not taken yet; modules of ``operators`` add theirs."""


def lower_all(partition: Partition, builder: ProgramBuilder) -> None:
    """Emit the kernel calls of all nodes."""
    fused = _fusions(partition, builder)
    taken = {member for fusion in fused.values() for member in fusion.members}
    for position, call in enumerate(partition.calls):
        if position in fused:
            members = sorted(fused[position].members)
            builder.nodes = tuple(partition.calls[member].node.index for member in members)
            fused[position].lower(builder)
        elif position not in taken:
            builder.nodes = (call.node.index,)
            OPERATORS[call.name].lower(call, builder)


def _fusions(partition: Partition, builder: ProgramBuilder) -> dict[int, Fusion]:
    """Return what is fused, by the position of the last member."""
    found: dict[int, Fusion] = {}
    taken: set[int] = set()
    for position in range(len(partition.calls)):
        for fuser in FUSERS:
            if position in taken:
                break
            fusion = fuser(partition, position, builder)
            if fusion is not None and taken.isdisjoint(fusion.members):
                found[max(fusion.members)] = fusion
                taken.update(fusion.members)
    return found
