"""Counts reads of tensors, and finds the last read of memory that several tensors share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np


class LastReads:
    """Tracks the last read of shared memory, to decide whether a node may overwrite an input.

    Args:
        reads: tensors that are read while each node of the plan runs, in execution order.
        num_tensors: number of tensors of the graph.
        root: mapping from a tensor that shares memory to the tensor (root) that used it first; it
            may change between calls.

    Attributes:
        counts: number of reads of each tensor, without reads of tensors that share its memory.
    """

    def __init__(
        self, reads: Sequence[Sequence[int]], num_tensors: int, root: Mapping[int, int]
    ) -> None:
        self._reads = reads
        self._root = root
        lengths = np.fromiter(map(len, reads), np.intp, len(reads))
        tensors = np.fromiter(chain.from_iterable(reads), np.intp, int(lengths.sum()))
        own = np.full(num_tensors, -1)  # last read of each tensor
        np.maximum.at(own, tensors, np.repeat(np.arange(len(reads)), lengths))
        self._own: list[int] = own.tolist()
        self._last = list(self._own)
        self.counts: list[int] = np.bincount(tensors, minlength=num_tensors).tolist()

    def share(self, root: int, tensor: int) -> None:
        """Record that *tensor* uses the memory of *root* from now on."""
        last = self._last
        if last[tensor] > last[root]:
            last[root] = last[tensor]

    def forbid(self, position: int, tensor: int) -> bool:
        """Whether the node at *position* must not overwrite the memory of *tensor*.

        It must not if later nodes, or other inputs of this node, read the memory.
        """
        root_of = self._root.get
        root = root_of(tensor, tensor)
        if self._last[root] > position:
            return True
        for other in self._reads[position]:  # a loop, which takes half the time of any()
            if other != tensor and root_of(other, other) == root:
                return True
        return False

    def of_memory(self) -> Sequence[int]:
        """Return the plan position at which each tensor's memory is read last.

        It is -1 for memory that is never read, and for tensors that share another tensor's.
        """
        last = list(self._own)
        for tensor, root in self._root.items():
            last[root] = max(last[root], last[tensor])
            last[tensor] = -1
        return last
