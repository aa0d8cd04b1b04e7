"""Sizes of TFLM's own structures in a device's arena."""

from __future__ import annotations

from dataclasses import dataclass

ARENA_ALIGNMENT = 16
"""Number of bytes to which tensors and persistent buffers are aligned."""

MOST_SCRATCH_BUFFERS_PER_NODE = 12
"""Largest number of scratch buffers that one operator may request."""

_INT = 4


@dataclass(frozen=True, slots=True)
class MicroTarget:
    """Sizes of TFLM's structures in bytes, for one pointer width.

    The sizes are those of a build with ``TF_LITE_STATIC_MEMORY``, as on devices.

    Attributes:
        pointer: a pointer; also the alignment of structures with pointers.
        eval_tensor: TfLiteEvalTensor, one for each tensor.
        tensor: TfLiteTensor, one for each graph input and output, and for temporary tensors while
            preparing.
        affine_quantization: TfLiteAffineQuantization, without its zero points.
        node_and_registration: NodeAndRegistration, one for each operator.
        subgraph_allocations: SubgraphAllocations, one for each subgraph.
        scratch_request: ScratchBufferRequest, used while preparing.
        scratch_handle: ScratchBufferHandle, one for each scratch buffer.
        allocation_info: AllocationInfo, one for each tensor and scratch buffer while planning.
        single_arena: SingleArenaBufferAllocator, which is stored in its own arena.
        persistent_arena: PersistentArenaBufferAllocator.
        non_persistent_arena: NonPersistentArenaBufferAllocator.
        greedy_planner: GreedyMemoryPlanner.
        linear_planner: LinearMemoryPlanner.
        micro_allocator: MicroAllocator.
        builtin_data_allocator: MicroBuiltinDataAllocator.

    Source:
        The structures' declarations in tflite-micro, counted for x86-64 and for 32-bit Arm.
    """

    pointer: int
    eval_tensor: int
    tensor: int
    affine_quantization: int
    node_and_registration: int
    subgraph_allocations: int
    scratch_request: int
    scratch_handle: int
    allocation_info: int
    single_arena: int
    persistent_arena: int
    non_persistent_arena: int
    greedy_planner: int
    linear_planner: int
    micro_allocator: int
    builtin_data_allocator: int

    def zero_points(self, channels: int) -> int:
        """Number of bytes of the zero points of a tensor with *channels* scales."""
        return _INT * (1 + channels)

    @property
    def bits(self) -> int:
        """Width of a pointer in bits."""
        return 8 * self.pointer


TARGET_32 = MicroTarget(
    pointer=4,
    eval_tensor=12,
    tensor=40,
    affine_quantization=12,
    node_and_registration=32,
    subgraph_allocations=8,
    scratch_request=12,
    scratch_handle=4,
    allocation_info=24,
    single_arena=36,
    persistent_arena=16,
    non_persistent_arena=36,
    greedy_planner=44,
    linear_planner=4108,
    micro_allocator=36,
    builtin_data_allocator=8,
)
"""Sizes on microcontrollers with 32-bit pointers, such as Cortex-M."""

TARGET_64 = MicroTarget(
    pointer=8,
    eval_tensor=24,
    tensor=64,
    affine_quantization=24,
    node_and_registration=64,
    subgraph_allocations=16,
    scratch_request=16,
    scratch_handle=8,
    allocation_info=32,
    single_arena=72,
    persistent_arena=32,
    non_persistent_arena=64,
    greedy_planner=72,
    linear_planner=4120,
    micro_allocator=72,
    builtin_data_allocator=16,
)
"""Sizes on a host with 64-bit pointers."""
