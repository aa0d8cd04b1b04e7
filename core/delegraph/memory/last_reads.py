"""Last reads of memory that several tensors of a plan share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class LastReads:
    """Tracks the last read of shared memory, to decide whether a node may overwrite an input.

    Args:
        reads: tensors that are read while each node of the plan runs, in execution order.
        root: of each tensor that shares memory the one that had it first; it is looked at anew
            each time.
    """

    def __init__(self, reads: Sequence[Sequence[int]], root: Mapping[int, int]) -> None:
        self._reads = reads
        self._root = root
        self._last = {tensor: i for i, read in enumerate(reads) for tensor in read}

    def share(self, root: int, tensor: int) -> None:
        """Take note that *tensor* uses the memory of *root* from now on."""
        last = self._last
        last[root] = max(last.get(root, -1), last.get(tensor, -1))

    def forbid(self, position: int, tensor: int) -> bool:
        """Return whether later nodes, or other inputs of this node, read the memory of *tensor*."""
        root = self._root_of(tensor)
        if self._last.get(root, -1) > position:
            return True
        return any(t != tensor and self._root_of(t) == root for t in self._reads[position])

    def _root_of(self, tensor: int) -> int:
        return self._root.get(tensor, tensor)
