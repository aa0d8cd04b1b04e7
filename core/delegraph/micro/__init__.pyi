from .allocator import MicroAllocator as MicroAllocator
from .allocator import ModelMemory as ModelMemory
from .arena_allocators import NonPersistentArenaBufferAllocator as NonPersistentArenaBufferAllocator
from .arena_allocators import PersistentArenaBufferAllocator as PersistentArenaBufferAllocator
from .arena_allocators import (
    RecordingSingleArenaBufferAllocator as RecordingSingleArenaBufferAllocator,
)
from .arena_allocators import SingleArenaBufferAllocator as SingleArenaBufferAllocator
from .context import MicroContext as MicroContext
from .estimate import ArenaEstimate as ArenaEstimate
from .estimate import estimate_arena as estimate_arena
from .interpreter import MicroInterpreter as MicroInterpreter
from .offline_plans import encode_offline_plan as encode_offline_plan
from .offline_plans import offline_plan as offline_plan
from .planners import BufferPlan as BufferPlan
from .planners import GreedyMemoryPlanner as GreedyMemoryPlanner
from .planners import LinearMemoryPlanner as LinearMemoryPlanner
from .planners import MicroMemoryPlanner as MicroMemoryPlanner
from .planners import NonPersistentMemoryPlannerShim as NonPersistentMemoryPlannerShim
from .planners import memory_plan_text as memory_plan_text
from .recording_allocator import RecordedAllocation as RecordedAllocation
from .recording_allocator import RecordingMicroAllocator as RecordingMicroAllocator
from .stage import MicroState as MicroState
from .targets import TARGET_32 as TARGET_32
from .targets import TARGET_64 as TARGET_64
from .targets import MicroTarget as MicroTarget
