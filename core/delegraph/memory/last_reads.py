"""Counts reads of tensors, and finds the last read of memory that several tensors share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain


class LastReads:
    """Tracks the last read of shared memory, to decide whether a node may overwrite an input.

    Args:
        reads: tensors that are read while each node of the plan runs, in execution order.
        root: mapping from a tensor that shares memory to the tensor (root) that used it first; it
            may change between calls.

    Attributes:
        counts: number of reads of each tensor, without reads of tensors that share its memory.
    """

    def __init__(self, reads: Sequence[Sequence[int]], root: Mapping[int, int]) -> None:
        self._reads = reads
        self._root = root
        self._own = {tensor: i for i, read in enumerate(reads) for tensor in read}
        self._last = dict(self._own)
        self.counts: Mapping[int, int] = Counter(chain.from_iterable(reads))

    def share(self, root: int, tensor: int) -> None:
        """Record that *tensor* uses the memory of *root* from now on."""
        if (end := self._last.get(tensor, -1)) > self._last.get(root, -1):
            self._last[root] = end

    def forbid(self, position: int, tensor: int) -> bool:
        """Whether the node at *position* must not overwrite the memory of *tensor*.

        It must not if later nodes, or other inputs of this node, read the memory.
        """
        root = self._root.get(tensor, tensor)
        if self._last.get(root, -1) > position:
            return True
        root_of = self._root.get
        for other in self._reads[position]:  # a loop: it takes half as long as any() does
            if other != tensor and root_of(other, other) == root:
                return True
        return False

    def of_memory(self) -> Mapping[int, int]:
        """Return the plan position of each memory's last read, by the tensor that used it first.

        Memory that is never read is missing.
        """
        last = dict(self._own)
        for tensor, root in self._root.items():
            last[root] = max(last.get(root, -1), last.pop(tensor, -1))
        return last
