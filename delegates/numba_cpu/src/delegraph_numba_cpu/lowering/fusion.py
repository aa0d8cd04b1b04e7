"""Partitions as fusers see them, and fusions of several nodes into one step.

A *fuser* looks at a node and its neighbours, and may take several nodes as one step. Values
between these nodes are never stored as tensors. ``lowering/schedule.py`` lists the fusers in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder


class Partition:
    """Nodes of a partition, with the producer and the readers of each tensor.

    Attributes:
        calls: the nodes, in execution order.
        outputs: indices of the tensors that are read outside of the partition.
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
        """Return the position of the node that computes the tensor with index *tensor*.

        The result is None for an input of the partition.
        """
        return self._makers.get(tensor)

    def readers(self, tensor: int) -> Sequence[int]:
        """Return the positions of the nodes that have a tensor as input, in order.

        *tensor* is the tensor's index.
        """
        return self._readers.get(tensor, ())

    def only_reader(self, tensor: int) -> int | None:
        """Return the position of the only node that reads a tensor, whose index is *tensor*.

        The result is None if no node or several nodes of the partition read it, or if it is also
        read outside of the partition.
        """
        readers = self.readers(tensor)
        return readers[0] if len(readers) == 1 and tensor not in self.outputs else None

    def next(self, position: int) -> int | None:
        """Return the position of the node that alone reads the only output of another node.

        *position* is that of the other node. The result is None if that node has several outputs,
        or if :meth:`only_reader` finds no single reader.
        """
        outputs = self.calls[position].node.outputs
        return self.only_reader(outputs[0]) if len(outputs) == 1 else None


@dataclass(frozen=True, slots=True)
class Fusion:
    """Several nodes that are computed together, at the position of the last of them.

    Attributes:
        members: positions of the nodes.
        lower: function that adds the kernel calls of these nodes to the program.
    """

    members: tuple[int, ...]
    lower: Callable[[ProgramBuilder], None]


Fuser = Callable[[Partition, int, ProgramBuilder], Fusion | None]
"""Function that returns a fusion that begins at a given position; None if there is none."""
