"""Allocates a model in an arena of fixed size: structures, variables, tensors, scratch buffers.

Source:
    MicroAllocator, tflite-micro/micro/micro_allocator.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, OperatorError, StateError
from delegraph.graph.dtypes import byte_size
from delegraph.graph.model import Model, TensorSpec
from delegraph.memory.best_fit import align
from delegraph.micro.allocation_info import AllocationInfo, ScratchRequest, allocation_infos
from delegraph.micro.arena_allocators import (
    HeadMemory,
    NonPersistentArenaBufferAllocator,
    PersistentArenaBufferAllocator,
    SingleArenaBufferAllocator,
    too_small,
)
from delegraph.micro.arena_memory import ArenaBuffer, ArenaMemory
from delegraph.micro.offline_plans import offline_plan
from delegraph.micro.planners import (
    ONLINE,
    GreedyMemoryPlanner,
    LinearMemoryPlanner,
    MicroMemoryPlanner,
)
from delegraph.micro.targets import (
    ARENA_ALIGNMENT,
    MOST_SCRATCH_BUFFERS_PER_NODE,
    TARGET_32,
    MicroTarget,
)

PlannerKind: TypeAlias = Literal["greedy", "linear"]

_UNASSIGNED = -1  # value for the node of a scratch request until its node is prepared
_OPTION_ALIGNMENT = 4  # alignment of structures of integers, floats and enums


class Kept(Enum):
    """Purpose of memory that a model uses as long as it exists, named as in TFLM's report."""

    EVAL_TENSORS = ("TfLiteEvalTensor data", "allocations")
    TENSORS = ("Persistent TfLiteTensor data", "tensors")
    QUANTIZATION = ("Persistent TfLiteTensor quantization data", "allocations")
    BUFFERS = ("Persistent buffer data", "allocations")
    VARIABLES = ("TfLiteTensor variable buffer data", "allocations")
    NODES = ("NodeAndRegistration struct", "NodeAndRegistration structs")
    OP_DATA = ("Operator runtime data", "OpData structs")
    OTHER = ("", "")


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """Memory of a model's tensors and scratch buffers in the caller's buffer.

    Attributes:
        tensors: memory of each tensor by subgraph and index, ``[bytes], uint8``; None for tensors
            outside the arena.
        scratch: memory of each scratch buffer by its number, ``[bytes], uint8``.
        planned_bytes: size of the plan for tensors and scratch buffers, in bytes.
    """

    tensors: Sequence[Sequence[NDArray[np.uint8] | None]]
    scratch: Sequence[NDArray[np.uint8]]
    planned_bytes: int


class MicroAllocator:
    """Allocates one or several models in one arena or in two arenas.

    Several models share the head, which is as large as the largest plan. The tail has the
    persistent memory of all models. Create an allocator by :meth:`create` or :meth:`create_split`.

    Attributes:
        target: sizes of the structures that a device would keep in the arena. This memory is
            reserved, so that as many bytes are used as on a device; the contents are in Python
            objects.
    """

    def __init__(
        self,
        persistent: PersistentArenaBufferAllocator | SingleArenaBufferAllocator,
        non_persistent: HeadMemory,
        memories: Sequence[ArenaMemory],
        planner: MicroMemoryPlanner,
        target: MicroTarget,
    ) -> None:
        self.target = target
        self._persistent = persistent
        self._non_persistent = non_persistent
        self._memories = memories
        self._planner = planner
        self._is_allocating = False
        self._requests: list[ScratchRequest] = []
        self._request_head = 0
        self._largest_plan = 0

    @classmethod
    def create(
        cls,
        arena: ArenaBuffer | int,
        *,
        planner: PlannerKind | MicroMemoryPlanner = "greedy",
        target: MicroTarget = TARGET_32,
    ) -> MicroAllocator:
        """Return an allocator over *arena*, whose first bytes are skipped up to a multiple of 16.

        Args:
            arena: the caller's writable memory, used as long as the allocator exists; or a number
                of bytes, for an arena with addresses but without memory.
            planner: name of a planner (``"linear"`` keeps every tensor), or the caller's planner,
                which needs no memory in the arena.
            target: sizes of TFLM's structures.

        Raises:
            ArenaTooSmallError: the arena is too small for the allocator itself.
            ArgumentError: the arena is read-only.
        """
        memory = ArenaMemory(arena)
        single = cls._arena_allocator()(memory.size, memory.start)
        single.allocate_persistent_buffer(target.single_arena, target.pointer)
        chosen = _chosen_planner(planner, single, target)
        single.allocate_persistent_buffer(target.micro_allocator, target.pointer)
        return cls(single, single, [memory], chosen, target)

    @classmethod
    def create_split(
        cls,
        persistent_arena: ArenaBuffer,
        non_persistent_arena: ArenaBuffer,
        *,
        planner: PlannerKind | MicroMemoryPlanner = "greedy",
        target: MicroTarget = TARGET_32,
    ) -> MicroAllocator:
        """Return an allocator with one arena for persistent memory and another for tensors.

        Args:
            persistent_arena: writable memory for everything that stays.
            non_persistent_arena: writable memory for tensors and scratch buffers.
            planner: as in :meth:`create`.
            target: sizes of TFLM's structures.

        Raises:
            ArenaTooSmallError: an arena is too small for the allocator itself.
            ArgumentError: the two arenas are the same, or one is read-only.
        """
        kept, passing = ArenaMemory(persistent_arena), ArenaMemory(non_persistent_arena)
        if kept.start == passing.start:
            raise ArgumentError("both arenas are the same memory, need to be distinct")
        persistent = PersistentArenaBufferAllocator(kept.size, kept.start)
        for size in (target.persistent_arena, target.non_persistent_arena):
            persistent.allocate_persistent_buffer(size, target.pointer)
        chosen = _chosen_planner(planner, persistent, target)
        persistent.allocate_persistent_buffer(target.micro_allocator, target.pointer)
        head = NonPersistentArenaBufferAllocator(passing.size, passing.start)
        return cls(persistent, head, [kept, passing], chosen, target)

    @staticmethod
    def _arena_allocator() -> type[SingleArenaBufferAllocator]:
        return SingleArenaBufferAllocator

    @property
    def used_bytes(self) -> int:
        """Number of used bytes at both ends of the arena, including present temporary memory."""
        return self._non_persistent.non_persistent_used_bytes + self.persistent_used_bytes

    @property
    def persistent_used_bytes(self) -> int:
        """Number of bytes of persistent memory."""
        return self._persistent.persistent_used_bytes

    @property
    def preserves_all_tensors(self) -> bool:
        """Whether every tensor keeps its value after an invoke."""
        return self._planner.preserves_all_tensors

    # -- a model, from start to finish -----------------------------------------------------------

    def start_model_allocation(self, model: Model) -> None:
        """Reserve the structures of *model*, and memory for the first node's scratch requests.

        Raises:
            StateError: the allocation of another model has begun and is not finished.
            ArenaTooSmallError: the arena is too small.
        """
        if self._is_allocating:
            raise StateError(
                "Model allocation started before finishing previously allocated model; "
                "finish_model_allocation() comes first"
            )
        self._is_allocating = True
        target = self.target
        self.keep(Kept.OTHER, target.builtin_data_allocator, target.pointer)
        self._requests = []
        room = target.scratch_request * MOST_SCRATCH_BUFFERS_PER_NODE
        self._request_head = self._non_persistent.allocate_resizable_buffer(room, target.pointer)
        count = len(model.subgraphs)
        self.keep(Kept.OTHER, target.subgraph_allocations * count, target.pointer)
        for subgraph in model.subgraphs:
            tensors = len(subgraph.tensors)
            self.keep(Kept.EVAL_TENSORS, target.eval_tensor * tensors, target.pointer, tensors)
        for subgraph in model.subgraphs:
            nodes = len(subgraph.operators)
            self.keep(Kept.NODES, target.node_and_registration * nodes, target.pointer, nodes)

    def finish_model_allocation(self, model: Model) -> ModelMemory:
        """Plan the head, and return the memory of all tensors and scratch buffers.

        Raises:
            StateError: no model's allocation has begun, or temporary memory is in use.
            ArenaTooSmallError: the arena is too small.
            MalformedModelError: the model's offline plan, or its calls of subgraphs, are invalid.
        """
        if not self._is_allocating:
            raise StateError(
                "Model allocation finished before starting allocating model; "
                "start_model_allocation() comes first"
            )
        offline = offline_plan(model)
        infos = allocation_infos(model, self._requests, offline)
        variables: dict[int, int] = {}
        first = 0
        for subgraph in model.subgraphs:  # TFLM allocates the handles once for each subgraph
            if self._requests:
                size = self.target.scratch_handle * len(self._requests)
                self.keep(Kept.OTHER, size, self.target.pointer)
            for i, tensor in enumerate(subgraph.tensors):
                if tensor.is_variable and infos[first + i].offline_offset == ONLINE:
                    size = byte_size(tensor.type, tensor.shape)
                    variables[first + i] = self.keep(Kept.VARIABLES, size, ARENA_ALIGNMENT)
            first += len(subgraph.tensors)
        addresses = variables | self._commit_plan(infos)
        self._is_allocating = False
        return self._memory(model, infos, addresses)

    def _commit_plan(self, infos: Sequence[AllocationInfo]) -> dict[int, int]:
        """Plan the buffers of *infos*; return the address of each placed buffer, by index."""
        arena, planner = self._non_persistent, self._planner
        planned = [i for i, info in enumerate(infos) if info.needs_allocating]
        table = arena.allocate_temp(self.target.allocation_info * len(infos), self.target.pointer)
        remaining = arena.available_memory(ARENA_ALIGNMENT)
        work = arena.allocate_temp(remaining, ARENA_ALIGNMENT)
        needed = planner.scratch_bytes(len(planned))
        if needed > remaining:
            raise too_small(f"working memory to plan {len(planned)} buffers", needed, remaining)
        planner.init(remaining)
        for info in (infos[i] for i in planned):
            size = align(info.size, ARENA_ALIGNMENT)
            planner.add_buffer(size, info.first_use, info.last_use, info.offline_offset)
        start = arena.overlay_memory_address
        addresses = {i: start + planner.offset_for_buffer(n) for n, i in enumerate(planned)}
        for address in (table, work):
            arena.deallocate_temp(address)
        arena.reset_temp_allocations()
        arena.deallocate_resizable_buffer(self._request_head)
        self._largest_plan = max(self._largest_plan, planner.maximum_memory_size)
        arena.reserve_non_persistent_overlay_memory(self._largest_plan, ARENA_ALIGNMENT)
        return addresses

    def _memory(
        self, model: Model, infos: Sequence[AllocationInfo], addresses: dict[int, int]
    ) -> ModelMemory:
        views = [
            self.view(addresses[i], info.size) if i in addresses else None
            for i, info in enumerate(infos)
        ]
        tensors, first = [], 0
        for subgraph in model.subgraphs:
            tensors.append(views[first : first + len(subgraph.tensors)])
            first += len(subgraph.tensors)
        scratch = [view for view in views[first:] if view is not None]
        return ModelMemory(tensors, scratch, self._planner.maximum_memory_size)

    # -- for kernels -----------------------------------------------------------------------------

    def allocate_persistent_buffer(self, size: int) -> NDArray[np.uint8]:
        """Return ``[size], uint8``: 16-byte aligned memory that a kernel keeps permanently."""
        return self.view(self.keep(Kept.BUFFERS, size, ARENA_ALIGNMENT), size)

    def allocate_builtin_data(self, size: int) -> None:
        """Reserve *size* bytes for the structure of an operator's options."""
        self.keep(Kept.OTHER, size, _OPTION_ALIGNMENT)

    def allocate_persistent_tensor(self, tensor: TensorSpec) -> None:
        """Reserve memory for the struct and quantization of *tensor*, a graph input or output."""
        self.keep(Kept.TENSORS, self.target.tensor, self.target.pointer)
        self._quantization(tensor, lambda *piece: self.keep(Kept.QUANTIZATION, *piece))

    def request_scratch_buffer_in_arena(self, size: int, subgraph: int = 0) -> int:
        """Return the number of a new scratch buffer of *size* bytes for the node being prepared.

        Raises:
            OperatorError: the node has already requested 12 buffers.
        """
        pending = sum(request.node == _UNASSIGNED for request in self._requests)
        if pending >= MOST_SCRATCH_BUFFERS_PER_NODE:
            raise OperatorError(
                f"Scratch buffer request exceeds limit per operator "
                f"({MOST_SCRATCH_BUFFERS_PER_NODE})"
            )
        self._requests.append(ScratchRequest(size, subgraph, _UNASSIGNED))
        return len(self._requests) - 1

    def finish_prepare_node_allocations(self, node: int) -> None:
        """Free temporary memory, and assign the new scratch requests to *node*.

        Raises:
            StateError: temporary memory is in use.
            ArenaTooSmallError: there is no memory for the next node's requests.
        """
        self.reset_temp_allocations()
        self._requests = [
            request._replace(node=node) if request.node == _UNASSIGNED else request
            for request in self._requests
        ]
        count = len(self._requests) + MOST_SCRATCH_BUFFERS_PER_NODE
        self._non_persistent.resize_buffer(
            self._request_head, self.target.scratch_request * count, self.target.pointer
        )

    def allocate_temp_buffer(self, size: int, alignment: int) -> int:
        """Return the address of *size* bytes, aligned to *alignment*, for preparing this node."""
        return self._non_persistent.allocate_temp(size, alignment)

    def deallocate_temp_buffer(self, address: int) -> None:
        """Record that the temporary memory at *address* is no longer used."""
        self._non_persistent.deallocate_temp(address)

    def allocate_temp_tensor(self, tensor: TensorSpec) -> list[int]:
        """Allocate a temporary tensor struct and its quantization; return their addresses."""
        allocate = self._non_persistent.allocate_temp
        structure = allocate(self.target.tensor, self.target.pointer)
        return [structure, *self._quantization(tensor, allocate)]

    def deallocate_temp_tensor(self, addresses: Sequence[int]) -> None:
        """Record that a temporary tensor, with structures at *addresses*, is no longer used."""
        for address in reversed(addresses):
            self._non_persistent.deallocate_temp(address)

    def is_all_temp_deallocated(self) -> bool:
        """Whether no temporary memory is in use."""
        return self._non_persistent.is_all_temp_deallocated()

    def reset_temp_allocations(self) -> None:
        """Free all temporary memory.

        Raises:
            StateError: some temporary memory is in use.
        """
        self._non_persistent.reset_temp_allocations()

    def _quantization(self, tensor: TensorSpec, allocate: Callable[[int, int], int]) -> list[int]:
        quantization = tensor.quantization
        if quantization is None or not len(quantization.scales):
            return []
        zero_points = self.target.zero_points(len(quantization.scales))
        structure = allocate(self.target.affine_quantization, self.target.pointer)
        return [structure, allocate(zero_points, _OPTION_ALIGNMENT)]

    # -- memory ----------------------------------------------------------------------------------

    def keep(self, what: Kept, size: int, alignment: int, count: int = 1) -> int:
        """Return the address of *size* bytes aligned to *alignment*, for *count* items *what*."""
        return self._persistent.allocate_persistent_buffer(size, alignment)

    def view(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return ``[size], uint8``: the caller's bytes at *address*."""
        memory = next((m for m in self._memories if address in m), self._memories[0])
        return memory.view(address, size)


def _chosen_planner(
    planner: PlannerKind | MicroMemoryPlanner,
    arena: PersistentArenaBufferAllocator | SingleArenaBufferAllocator,
    target: MicroTarget,
) -> MicroMemoryPlanner:
    """Return the planner of a name, with memory in *arena* as on *target*; or the caller's own."""
    if planner == "greedy":
        arena.allocate_persistent_buffer(target.greedy_planner, target.pointer)
        return GreedyMemoryPlanner()
    if planner == "linear":
        arena.allocate_persistent_buffer(target.linear_planner, target.pointer)
        return LinearMemoryPlanner()
    if isinstance(planner, str):
        raise ArgumentError(f"no planner {planner!r}; there are 'greedy' and 'linear'")
    return planner
