"""TensorFlow Lite for Microcontrollers in Python: models in an arena of fixed size.

:class:`MicroInterpreter` runs a model in memory that the caller lends; :func:`estimate_arena` tells
how much a device needs; the allocators and planners behind them can be used by themselves.
"""

from __future__ import annotations

from delegraph.micro.allocator import MicroAllocator
from delegraph.micro.context import MicroContext
from delegraph.micro.estimate import ArenaEstimate, estimate_arena
from delegraph.micro.interpreter import MicroInterpreter
from delegraph.micro.planners import (
    BufferPlan,
    GreedyMemoryPlanner,
    LinearMemoryPlanner,
    NonPersistentMemoryPlannerShim,
)
from delegraph.micro.recording import RecordingMicroAllocator
from delegraph.micro.recording_arena import RecordingSingleArenaBufferAllocator
from delegraph.micro.single_arena import SingleArenaBufferAllocator
from delegraph.micro.split_arenas import (
    NonPersistentArenaBufferAllocator,
    PersistentArenaBufferAllocator,
)
from delegraph.micro.stage import MicroState
from delegraph.micro.targets import TARGET_32, TARGET_64, MicroTarget

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
