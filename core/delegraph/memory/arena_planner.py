"""Plans the position of each tensor of a subgraph in the arenas, so that tensors share memory.

:mod:`delegraph.memory.best_fit` chooses the gap for each tensor.

Source:
    ArenaPlanner, tflite/arena_planner.cc. Offsets are the same. For tensors of equal size and first
    use, TFLite's order is unspecified; here the lower index comes first. Tightening is Delegraph's
    own. TFLite counts only the readers of the overwritten tensor and of the memory's first tensor.
    So it may overwrite data that readers of other tensors with this memory still need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import ArgumentError
from delegraph.memory.arena import (
    MOST_TIGHTENED,
    Allocation,
    SimpleMemoryArena,
    is_tight,
)
from delegraph.memory.best_fit import NEVER
from delegraph.memory.buffers import BUFFER_ALIGNMENT
from delegraph.memory.planner_graph import LastReads
from delegraph.memory.planner_graph import PlannerGraph as PlannerGraph
from delegraph.memory.planner_graph import PlanNode as PlanNode
from delegraph.memory.planner_graph import TensorKind as TensorKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Bits of PlanNode.inplace. Source: TfLiteInPlaceOp, tflite/core/c/common.h.
_DATA_UNMODIFIED = 1
_INPUT_0_SHARED = 4
_MOST_SHAREABLE_INPUTS = 3
_SHARED_ARENA = TensorKind.ARENA_RW
_SCALAR_BYTES = 4  # small tensors may grow by broadcasting, so they never share memory


class ArenaPlanner:
    """Plans the tensor memory of one subgraph.

    Call :meth:`plan_allocations` first: it decides lifetimes and sharing. Then call
    :meth:`execute_allocations` for a range of nodes whose shapes are known: it places their
    tensors, whose addresses :meth:`address` returns. With dynamic tensors, the second call is
    repeated as more shapes become known.

    Args:
        graph: the subgraph.
        preserve_all_tensors: whether every tensor gets separate memory.
        alignment: number of bytes, 1 to 64, of which every tensor's address is a multiple.
        tighten: whether to plan like Delegraph's runtime instead of TFLite. Then no node overwrites
            an input that another node reads later, and a smaller plan is searched if TFLite's plan
            is clearly too large.

    Attributes:
        allocations: block of each tensor that does not use another tensor's block, by tensor index.
    """

    def __init__(
        self,
        graph: PlannerGraph,
        *,
        preserve_all_tensors: bool = False,
        alignment: int = BUFFER_ALIGNMENT,
        tighten: bool = False,
    ) -> None:
        self._graph = graph
        self._alignment = alignment
        self._tighten = tighten
        self._preserve_all = preserve_all_tensors
        self._arena = SimpleMemoryArena(alignment)
        self._persistent_arena = SimpleMemoryArena(alignment)
        self._alloc_node: list[int] = []
        self._dealloc_node: list[int] = []
        self._root: dict[int, int] = {}
        self.reset_allocations()

    @property
    def arena_bytes(self) -> tuple[int, int]:
        """Number of bytes of the shared buffer and of the persistent buffer."""
        return self._arena.buffer_size, self._persistent_arena.buffer_size

    @property
    def has_non_persistent_memory(self) -> bool:
        """Whether the shared arena has memory at present."""
        return self._arena.committed

    @property
    def graph(self) -> PlannerGraph:
        """The subgraph whose memory is planned."""
        return self._graph

    def placed(self, kind: TensorKind) -> list[Allocation]:
        """Return the present blocks of all tensors of the arena *kind*, ordered by tensor."""
        blocks = (self.allocations[tensor] for tensor in sorted(self.allocations))
        return [b for b in blocks if b.size and self._graph.tensor_kind(b.tensor) is kind]

    def reset_allocations(self) -> None:
        """Remove the offsets of all tensors; lifetimes and buffers remain."""
        self._arena.clear_plan()
        self._persistent_arena.clear_plan()
        self.allocations: dict[int, Allocation] = {}
        self._last_active_node = NEVER

    def plan_allocations(self) -> None:
        """Decide the lifetimes of all tensors, and which tensors share memory.

        The decision depends on the execution plan and on the sizes known at present. Graph inputs
        live from the first node to the end. Other tensors live from the node that writes them to
        the last node that reads them. Graph outputs, variables and unread tensors live to the end.

        Raises:
            ArgumentError: a variable is absent.
        """
        self.reset_allocations()
        graph = self._graph
        self._alloc_node = [NEVER] * graph.num_tensors
        self._dealloc_node = [NEVER] * graph.num_tensors
        self._root = {}
        if -1 in graph.variables:
            raise ArgumentError("-1 is among the graph's variables; each needs its tensor")
        for tensor in self._tensors_from_the_start():
            self._alloc_node[tensor] = 0
        reads = LastReads(graph.nodes, graph.num_tensors)
        kept = {*_present(graph.outputs), *self._tensors_from_the_start()}
        if not self._preserve_all:
            self._share_in_place(reads, kept)
        self._set_lifetimes(reads, kept)

    def execute_allocations(
        self, first: int, last: int, *, limit: int | None = None
    ) -> Collection[int]:
        """Place the tensors of nodes *first* to *last*, and allocate the arenas' buffers.

        Tensors that still fit in their blocks keep them.

        Args:
            first: plan position.
            last: plan position, included; it may exceed the end of the plan.
            limit: maximal number of bytes of all buffers together; None means no limit.

        Returns:
            The tensors whose address may have changed; all tensors if a buffer moved.

        Raises:
            MemoryError: more than *limit* bytes are needed, or there is not enough memory.
        """
        graph = self._graph
        self._admit_temporaries(first, last)
        placed = self._place(first, last)
        needed = self._arena.high_water_mark + self._persistent_arena.high_water_mark
        if limit is not None and needed > limit:
            raise MemoryError(f"the plan needs {needed} bytes of {limit} allowed")
        moved = self._arena.commit()
        moved |= self._persistent_arena.commit()
        return range(graph.num_tensors) if moved else placed

    @property
    def roots(self) -> Mapping[int, int]:
        """For each tensor that shares memory, the root tensor, whose memory it should use.

        A tensor may have got another place later; :meth:`shared_root` checks this.
        """
        return self._root

    def shared_root(self, tensor: int) -> int:
        """Return the tensor whose memory *tensor* uses; *tensor* itself if it shares none."""
        root = self._root.get(tensor, tensor)
        kind_of = self._graph.tensor_kind
        return root if root == tensor or kind_of(root) is kind_of(tensor) else tensor

    def address(self, tensor: int) -> tuple[NDArray[np.uint8], int, int] | None:
        """Return a tensor's buffer, ``[bytes], uint8``, the tensor's offset and number of bytes.

        The result is None for a tensor without memory: not placed yet, grown since, released,
        empty, or outside of the arenas.
        """
        kind = self._graph.tensor_kind(tensor)
        if kind is TensorKind.OTHER:
            return None
        root, size = self.shared_root(tensor), self._graph.tensor_bytes(tensor)
        if not 0 < size <= self._room(root):
            return None
        arena = self._arena if kind is TensorKind.ARENA_RW else self._persistent_arena
        if not arena.committed:
            return None
        buffer, offset, _ = arena.resolve(self.allocations[root])
        return buffer, offset, size

    def reset_allocations_after(self, node: int) -> list[int]:
        """Remove the blocks of tensors whose lifetime begins after *node*; return these tensors.

        The method is called when a shape differs from the expected shape while invoking. Persistent
        tensors keep their blocks.
        """
        reset = [
            tensor
            for tensor, allocation in self.allocations.items()
            if allocation.first_node > node
            and self._graph.tensor_kind(tensor) is TensorKind.ARENA_RW
        ]
        for tensor in reset:
            del self.allocations[tensor]
        if self._last_active_node > node:  # persistent blocks get in the way here, as in TFLite
            self._arena.activate_at(self.allocations.values(), node)
        else:
            self._arena.purge_after(node)
        self._last_active_node = node
        return reset

    def release_non_persistent_memory(self) -> None:
        """Free the memory of the shared arena; offsets remain, content is lost."""
        self._arena.release_buffer()

    def acquire_non_persistent_memory(self) -> None:
        """Allocate the shared arena's memory again, uninitialised, if it was released."""
        self._arena.commit()

    def _tensors_from_the_start(self) -> list[int]:
        return [*self._graph.variables, *_present(self._graph.inputs)]

    def _share_in_place(self, reads: LastReads, kept: Collection[int]) -> None:
        """Let first outputs of nodes use the memory of inputs that the nodes may overwrite.

        The input must have the same size, and no other node may read it, unless the node leaves the
        data unchanged. Graph inputs and outputs never share memory, nor do variables, whose values
        outlive the input. *reads* has the last reads of each memory; tensors in *kept* are not
        overwritten.
        """
        graph, root_of, last = self._graph, self._root, reads.of_memory
        if not any(node.inplace for node in graph.nodes):
            return
        sizes, kind_of = list(map(graph.tensor_bytes, range(graph.num_tensors))), graph.tensor_kind
        may_go = [  # whether a node may overwrite the tensor
            count <= 1 and size > _SCALAR_BYTES
            for count, size in zip(reads.counts, sizes, strict=True)
        ]
        for tensor in kept:
            may_go[tensor] = False
        inputs = {*graph.inputs, -1}
        unshared = {*graph.outputs, *graph.variables, -1}
        looks_ahead = self._tighten or any(node.held for node in graph.nodes)
        roots: set[int] = set()
        for position, node in enumerate(graph.nodes):
            inplace, outputs = node.inplace, node.outputs
            if not inplace or not outputs or (output := outputs[0]) in unshared:
                continue
            keeps_data, shareable = _sharing(inplace, len(node.inputs))
            for i in shareable:
                tensor = node.inputs[i]
                if tensor in inputs:
                    continue
                if not keeps_data and not (may_go[tensor] and sizes[tensor] == sizes[output]):
                    continue
                if (kind := kind_of(tensor)) is not _SHARED_ARENA and kind is not kind_of(output):
                    continue
                root = root_of.get(tensor, tensor)
                if not keeps_data and looks_ahead and reads.forbid(position, tensor, root_of):
                    break
                # If the graph is out of order, other tensors may share the output already.
                if (keeps_data or may_go[root]) and output != root and output not in roots:
                    root_of[output] = root
                    roots.add(root)
                    if last[output] > last[root]:
                        last[root] = last[output]
                break

    def _set_lifetimes(self, reads: LastReads, kept: Collection[int]) -> None:
        first, last = self._alloc_node, self._dealloc_node
        for position, node in enumerate(self._graph.nodes):
            for tensor in node.outputs:
                if tensor != -1 and first[tensor] == NEVER:
                    first[tensor] = position
        if self._preserve_all:
            return
        for tensor, position in enumerate(reads.of_memory):
            if first[tensor] <= position and tensor not in kept and tensor not in self._root:
                last[tensor] = position

    def _admit_temporaries(self, first: int, last: int) -> None:
        """Set the lifetimes of the temporary tensors that nodes *first* to *last* request."""
        graph = self._graph
        added = graph.num_tensors - len(self._alloc_node)
        self._alloc_node += [NEVER] * added
        self._dealloc_node += [NEVER] * added
        for position in range(first, min(last + 1, len(graph.nodes))):
            for tensor in graph.nodes[position].temporaries:
                self._alloc_node[tensor] = position
                if not self._preserve_all:
                    self._dealloc_node[tensor] = position

    def _place(self, first: int, last: int) -> list[int]:
        """Place the tensors of nodes *first* to *last*; return the newly placed tensors."""
        sizes = self._sizes_to_place(first, last)
        if sizes and first < self._last_active_node:
            self._arena.reset_allocations()
        elif sizes:
            self._arena.purge_before(first)
        begins = not self.allocations
        for tensor in self._in_order(self._unshared(sizes), sizes):
            self._place_tensor(tensor, sizes[tensor])
        if self._tighten and begins:
            self._tighten_arena()
        self._last_active_node = last
        return list(sizes)

    def _sizes_to_place(self, first: int, last: int) -> dict[int, int]:
        """Return tensors of nodes *first* to *last* that need a block, with their byte sizes."""
        graph, places = self._graph, self.allocations
        nodes = graph.nodes[first : last + 1]
        wanted = dict.fromkeys(self._tensors_from_the_start() if first == 0 else ())
        wanted.update(dict.fromkeys(chain.from_iterable(node.outputs for node in nodes)))
        wanted.update(dict.fromkeys(chain.from_iterable(node.temporaries for node in nodes)))
        wanted.pop(-1, None)
        found = {}
        for tensor in wanted:
            kind, size = graph.tensor_kind(tensor), graph.tensor_bytes(tensor)
            if kind is _SHARED_ARENA:
                if size > (places[tensor].size if tensor in places else 0):
                    found[tensor] = size
            elif kind is TensorKind.ARENA_RW_PERSISTENT:
                found[tensor] = size
        return found

    def _in_order(self, tensors: Iterable[int], sizes: Mapping[int, int]) -> list[int]:
        """Sort tensors: live during the whole plan first, then by *sizes*, then by first use."""

        def rank(tensor: int) -> tuple[int, int, int, int]:
            if self._alloc_node[tensor] == 0 and self._dealloc_node[tensor] == NEVER:
                return 0, 0, 0, tensor
            return 1, -sizes[tensor], self._alloc_node[tensor], tensor

        return sorted(tensors, key=rank)

    def _unshared(self, sizes: Mapping[int, int]) -> list[int]:
        """Return the tensors of *sizes* that need a block; end sharing that is impossible now.

        A tensor uses the memory of its root while both have the same size.
        """
        graph, root_of = self._graph, self._root
        roots = {root_of[tensor] for tensor in sizes if tensor in root_of}
        rooms = {r: graph.tensor_bytes(r) for r in roots if graph.tensor_kind(r) is _SHARED_ARENA}
        found = []
        for tensor, size in sizes.items():
            if tensor in root_of:
                if rooms.get(root_of[tensor]) == size:
                    continue
                del root_of[tensor]
            found.append(tensor)
        return found

    def _place_tensor(self, tensor: int, size: int) -> None:
        first = self._alloc_node[tensor]
        if self._graph.tensor_kind(tensor) is TensorKind.ARENA_RW:
            last = self._dealloc_node[tensor]
            self.allocations[tensor] = self._arena.allocate(size, tensor, first, last)
        elif size and not self._room(tensor):
            block = self._persistent_arena.allocate(size, tensor, first, NEVER)
            self.allocations[tensor] = block

    def _tighten_arena(self) -> None:
        kind_of = self._graph.tensor_kind
        blocks = [
            block
            for tensor, block in self.allocations.items()
            if block.size and kind_of(tensor) is TensorKind.ARENA_RW
        ]
        if len(blocks) > MOST_TIGHTENED or is_tight(blocks, self._alignment):
            return
        from delegraph.memory.tightening import tightened  # lazy import: most plans need no search

        if smaller := tightened(blocks, self._alignment):
            self._arena.replan(smaller)
            self.allocations.update((block.tensor, block) for block in smaller)

    def _room(self, tensor: int) -> int:
        allocation = self.allocations.get(tensor)
        return 0 if allocation is None else allocation.size


@cache
def _sharing(inplace: int, num_inputs: int) -> tuple[int, list[int]]:
    """Return a bit, set if the data stays unchanged, and the inputs that output 0 may overwrite.

    *inplace* has a node's bits, as in :class:`PlanNode`; the inputs are positions.
    """
    positions = range(min(num_inputs, _MOST_SHAREABLE_INPUTS))
    shareable = [i for i in positions if inplace & (_INPUT_0_SHARED << i)]
    return int(inplace & _DATA_UNMODIFIED), shareable


def _present(tensors: Sequence[int]) -> Sequence[int]:
    return tensors if -1 not in tensors else [tensor for tensor in tensors if tensor != -1]
