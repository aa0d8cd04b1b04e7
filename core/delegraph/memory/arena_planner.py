"""Plans where every tensor of a subgraph lies in the arenas, so that tensors share memory.

The gap for each tensor, the best fit, is found in :mod:`delegraph.memory.best_fit`.

Source:
    ArenaPlanner, tflite/arena_planner.cc. Same offsets; among tensors of the same size that come
    into use at the same node, where TFLite's order is unspecified, the lower index goes first.
    Tightening is ours; TFLite counts readers of the tensor overwritten and of the one that had the
    memory first, and overwrites what others that share it have yet to be read for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.memory.arena import BUFFER_ALIGNMENT, Allocation, SimpleMemoryArena
from delegraph.memory.best_fit import NEVER
from delegraph.memory.last_reads import LastReads
from delegraph.memory.planner_graph import PlannerGraph as PlannerGraph
from delegraph.memory.planner_graph import PlanNode as PlanNode
from delegraph.memory.planner_graph import TensorKind as TensorKind
from delegraph.memory.tightening import tightened

# Bits of PlanNode.inplace. Source: TfLiteInPlaceOp, tflite/core/c/common.h.
_DATA_UNMODIFIED = 1
_INPUT_0_SHARED = 4
_MOST_SHAREABLE_INPUTS = 3
_SCALAR_BYTES = 4  # small tensors may yet grow by broadcasting, so they share with no one


class ArenaPlanner:
    """Plans the tensor memory of one subgraph.

    First :meth:`plan_allocations`, which settles lifetimes and sharing; then
    :meth:`execute_allocations` for a range of nodes whose shapes are known, which gives tensors
    their places; :meth:`address` tells them. With dynamic tensors the second step is repeated as
    more shapes become known.

    Args:
        graph: the subgraph.
        preserve_all_tensors: let no tensors share memory.
        alignment: bytes that every tensor's address is a multiple of; 1 to 64.
        tighten: plan as Delegraph's runtime does: nothing is overwritten in place that another
            node reads afterwards, and a smaller plan is searched for where TFLite's takes clearly
            more than it must.

    Attributes:
        allocations: block of each tensor that has its own place, by the tensor's index.
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
        """Bytes of the shared and of the persistent buffer."""
        return self._arena.buffer_size, self._persistent_arena.buffer_size

    @property
    def has_non_persistent_memory(self) -> bool:
        """Whether tensors of the shared arena have memory."""
        return self._arena.committed

    @property
    def graph(self) -> PlannerGraph:
        """The subgraph whose memory is planned."""
        return self._graph

    def placed(self, kind: TensorKind) -> list[Allocation]:
        """Return the present blocks of all tensors of one arena, ordered by tensor."""
        blocks = (self.allocations[tensor] for tensor in sorted(self.allocations))
        return [b for b in blocks if b.size and self._graph.tensor_kind(b.tensor) is kind]

    def reset_allocations(self) -> None:
        """Take every tensor's place away; lifetimes and buffers are kept."""
        self._arena.clear_plan()
        self._persistent_arena.clear_plan()
        self.allocations: dict[int, Allocation] = {}
        self._last_active_node = NEVER

    def plan_allocations(self) -> None:
        """Settle from the plan, and the sizes known now, how long tensors live and which share.

        Inputs live from the first node to the end, other tensors from the node that makes them to
        the last one that reads them; graph outputs, variables and unread tensors to the end.

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
        pinned = [0] * graph.num_tensors
        for tensor in (*_present(graph.outputs), *self._tensors_from_the_start()):
            pinned[tensor] += 1
        if not self._preserve_all:
            self._share_in_place(self._with_reads(pinned))
        self._set_lifetimes(self._with_reads(pinned))

    def execute_allocations(
        self, first: int, last: int, *, limit: int | None = None
    ) -> Collection[int]:
        """Give the tensors of nodes *first* to *last* their places, and the arenas their buffers.

        Tensors that have room enough keep their place.

        Args:
            first: plan position.
            last: plan position, itself included; past the end of the plan does no harm.
            limit: bytes that the buffers may have together; None for no limit.

        Returns:
            The tensors whose address may have changed; all of them if a buffer moved.

        Raises:
            MemoryError: more than *limit* bytes are needed, or there is not that much memory.
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

    def shared_root(self, tensor: int) -> int:
        """Return the tensor whose memory *tensor* uses, or *tensor* itself when it has its own."""
        root = self._planned_root(tensor)
        kind_of = self._graph.tensor_kind
        return root if root == tensor or kind_of(root) is kind_of(tensor) else tensor

    def address(self, tensor: int) -> tuple[NDArray[np.uint8], int, int] | None:
        """Return a tensor's buffer, ``[bytes], uint8``, its offset there and its number of bytes.

        None without memory: not placed yet, grown since, released, of no bytes, or not of an arena.
        """
        kind, size = self._graph.tensor_kind(tensor), self._graph.tensor_bytes(tensor)
        root = self.shared_root(tensor)
        if kind is TensorKind.OTHER or not 0 < size <= self._room(root):
            return None
        arena = self._arena if kind is TensorKind.ARENA_RW else self._persistent_arena
        if not arena.committed:
            return None
        buffer, offset, _ = arena.resolve(self.allocations[root])
        return buffer, offset, size

    def reset_allocations_after(self, node: int) -> list[int]:
        """Remove the blocks of tensors whose lifetime begins after *node*; return these tensors.

        Called when a shape turned out different while invoking. Persistent tensors keep theirs.
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
        """Give the shared arena's memory back; places are kept, contents are lost."""
        self._arena.release_buffer()

    def acquire_non_persistent_memory(self) -> None:
        """Allocate the shared arena's memory again, uninitialised, if it was released."""
        self._arena.commit()

    def _tensors_from_the_start(self) -> list[int]:
        return [*self._graph.variables, *_present(self._graph.inputs)]

    def _planned_root(self, tensor: int) -> int:
        return self._root.get(tensor, tensor)

    def _with_reads(self, pinned: Sequence[int]) -> list[int]:
        """For each tensor, return *pinned* plus the number of times that nodes read its memory."""
        references, root = list(pinned), self._root.get
        for node in self._graph.nodes:
            for tensor in _read(node):
                references[root(tensor, tensor)] += 1
        return references

    def _share_in_place(self, references: Sequence[int]) -> None:
        """Let first outputs use the memory of inputs that their nodes may overwrite.

        The input must be as large and read by no one else, unless the node leaves the data as it
        is. Graph inputs and outputs never share, nor do outputs that are variables: what they hold
        outlives the input.
        """
        graph = self._graph
        inputs = set(graph.inputs)
        kept = {*graph.outputs, *graph.variables}
        roots: set[int] = set()
        reads = self._last_reads()
        for position, node in enumerate(graph.nodes):
            output = node.outputs[0] if node.outputs else -1
            if not node.inplace or output in kept or output == -1:
                continue
            for tensor in self._shareable_inputs(node):
                if tensor not in inputs and self._may_share(node, tensor, output, references):
                    root = self._planned_root(tensor)
                    keeps_data = node.inplace & _DATA_UNMODIFIED
                    only_reader = references[root] <= 1
                    if reads is not None and not keeps_data and reads.forbid(position, tensor):
                        break
                    # In a graph out of order, others may share the output already.
                    if (keeps_data or only_reader) and output != root and output not in roots:
                        self._root[output] = root
                        roots.add(root)
                        if reads is not None:
                            reads.share(root, output)
                    break

    def _last_reads(self) -> LastReads | None:
        """Last reads, which decide when an input may be overwritten; None if reads are counted."""
        nodes = self._graph.nodes
        if not self._tighten and not any(node.held for node in nodes):
            return None
        return LastReads([tuple(_read(node)) for node in nodes], self._root)

    def _shareable_inputs(self, node: PlanNode) -> Iterator[int]:
        for i, tensor in enumerate(node.inputs[:_MOST_SHAREABLE_INPUTS]):
            if tensor != -1 and node.inplace & (_INPUT_0_SHARED << i):
                yield tensor

    def _may_share(
        self, node: PlanNode, tensor: int, output: int, references: Sequence[int]
    ) -> bool:
        graph = self._graph
        if not node.inplace & _DATA_UNMODIFIED:
            size = graph.tensor_bytes(tensor)
            same_size = size == graph.tensor_bytes(output) and size > _SCALAR_BYTES
            if not same_size or references[tensor] > 1:
                return False
        kind = graph.tensor_kind(tensor)
        return kind is TensorKind.ARENA_RW or kind is graph.tensor_kind(output)

    def _set_lifetimes(self, references: list[int]) -> None:
        for position, node in enumerate(self._graph.nodes):
            for tensor in _present(node.outputs):
                if self._alloc_node[tensor] == NEVER:
                    self._alloc_node[tensor] = position
            if self._preserve_all:
                continue
            for tensor in _read(node):
                root = self._root.get(tensor, tensor)
                references[root] -= 1
                if references[root] == 0 and self._alloc_node[root] != NEVER:
                    self._dealloc_node[root] = position

    def _admit_temporaries(self, first: int, last: int) -> None:
        """Settle the lifetimes of tensors that nodes *first* to *last* asked for meanwhile."""
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
        """Place the tensors of nodes *first* to *last*; return the tensors that had no place."""
        tensors = self._tensors_to_place(first, last)
        if tensors and first < self._last_active_node:
            self._arena.reset_allocations()
        elif tensors:
            self._arena.purge_before(first)
        begins = not self.allocations
        for tensor in tensors:
            if not self._shares(tensor):
                self._place_tensor(tensor)
        if self._tighten and begins:
            self._tighten_arena()
        self._last_active_node = last
        return tensors

    def _tensors_to_place(self, first: int, last: int) -> list[int]:
        """Return the tensors of nodes *first* to *last* without room, in order of placement."""
        graph = self._graph
        candidates = dict.fromkeys(self._tensors_from_the_start() if first == 0 else ())
        for position in range(first, min(last + 1, len(graph.nodes))):
            node = graph.nodes[position]
            for tensor in (*_present(node.outputs), *node.temporaries):
                candidates[tensor] = None
        sizes = {tensor: graph.tensor_bytes(tensor) for tensor in candidates}

        def needs_place(tensor: int) -> bool:
            kind = graph.tensor_kind(tensor)
            if kind is TensorKind.ARENA_RW:
                return self._room(tensor) < sizes[tensor]
            return kind is TensorKind.ARENA_RW_PERSISTENT

        def rank(tensor: int) -> tuple[int, int, int, int]:
            """Whole-life tensors first, then large before small, then early before late."""
            if self._alloc_node[tensor] == 0 and self._dealloc_node[tensor] == NEVER:
                return 0, 0, 0, tensor
            return 1, -sizes[tensor], self._alloc_node[tensor], tensor

        return sorted(filter(needs_place, candidates), key=rank)

    def _shares(self, tensor: int) -> bool:
        """Return whether the tensor uses its root's memory; end sharing that is now impossible."""
        root = self._root.get(tensor)
        if root is None:
            return False
        graph = self._graph
        possible = graph.tensor_kind(root) is TensorKind.ARENA_RW
        if possible and graph.tensor_bytes(root) == graph.tensor_bytes(tensor):
            return True
        del self._root[tensor]
        return False

    def _place_tensor(self, tensor: int) -> None:
        size = self._graph.tensor_bytes(tensor)
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
        if smaller := tightened(blocks, self._alignment):
            self._arena.replan(smaller)
            self.allocations.update((block.tensor, block) for block in smaller)

    def _room(self, tensor: int) -> int:
        allocation = self.allocations.get(tensor)
        return 0 if allocation is None else allocation.size


def _read(node: PlanNode) -> Sequence[int]:
    """Tensors read while a node runs, by the node itself or by nodes started before it."""
    return _present((*node.inputs, *node.held) if node.held else node.inputs)


def _present(tensors: Sequence[int]) -> Sequence[int]:
    return tensors if -1 not in tensors else [tensor for tensor in tensors if tensor != -1]
