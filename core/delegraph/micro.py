"""TensorFlow Lite for Microcontrollers in Python: models in an arena of fixed size.

:class:`MicroInterpreter` runs a model in memory that the caller lends; :func:`estimate_arena` tells
how much a device needs; the allocators and planners behind them can be used by themselves.
"""

from __future__ import annotations

from delegraph.memory.micro.estimate import ArenaEstimate, estimate_arena
from delegraph.memory.micro.micro_allocator import MicroAllocator
from delegraph.memory.micro.planners import (
    BufferPlan,
    GreedyMemoryPlanner,
    LinearMemoryPlanner,
    NonPersistentMemoryPlannerShim,
)
from delegraph.memory.micro.recording import RecordingMicroAllocator
from delegraph.memory.micro.recording_arena import RecordingSingleArenaBufferAllocator
from delegraph.memory.micro.single_arena import SingleArenaBufferAllocator
from delegraph.memory.micro.split_arenas import (
    NonPersistentArenaBufferAllocator,
    PersistentArenaBufferAllocator,
)
from delegraph.memory.micro.targets import TARGET_32, TARGET_64, MicroTarget
from delegraph.runtime.micro_context import MicroContext
from delegraph.runtime.micro_interpreter import MicroInterpreter
from delegraph.runtime.micro_stage import MicroState

__all__ = [
    "TARGET_32",
    "TARGET_64",
    "ArenaEstimate",
    "BufferPlan",
    "GreedyMemoryPlanner",
    "LinearMemoryPlanner",
    "MicroAllocator",
    "MicroContext",
    "MicroInterpreter",
    "MicroState",
    "MicroTarget",
    "NonPersistentArenaBufferAllocator",
    "NonPersistentMemoryPlannerShim",
    "PersistentArenaBufferAllocator",
    "RecordingMicroAllocator",
    "RecordingSingleArenaBufferAllocator",
    "SingleArenaBufferAllocator",
    "estimate_arena",
]
