"""Memory planners and arenas; each name is loaded when it is first used.

A graph becomes records of when each tensor is in use (:func:`usage_records`), which every planner
takes; :func:`lower_bound` tells what no plan can do without, and :func:`verify_plan` whether a plan
is right, whoever made it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph.memory.arena import Allocation as Allocation
    from delegraph.memory.arena import SimpleMemoryArena as SimpleMemoryArena
    from delegraph.memory.arena_planner import ArenaPlanner as ArenaPlanner
    from delegraph.memory.arena_planner import PlannerGraph as PlannerGraph
    from delegraph.memory.arena_planner import PlanNode as PlanNode
    from delegraph.memory.arena_planner import TensorKind as TensorKind
    from delegraph.memory.arena_text import arena_dump as arena_dump
    from delegraph.memory.best_planner import BestPlan as BestPlan
    from delegraph.memory.best_planner import plan_best as plan_best
    from delegraph.memory.best_planner import plan_exactly as plan_exactly
    from delegraph.memory.bounds import live_bytes as live_bytes
    from delegraph.memory.bounds import lower_bound as lower_bound
    from delegraph.memory.declared_graph import DeclaredGraph as DeclaredGraph
    from delegraph.memory.memory_management import MemoryStrategy as MemoryStrategy
    from delegraph.memory.memory_management import (
        assign_objects_to_tensors as assign_objects_to_tensors,
    )
    from delegraph.memory.memory_management import (
        assign_offsets_to_tensors as assign_offsets_to_tensors,
    )
    from delegraph.memory.memory_management import objects_to_offsets as objects_to_offsets
    from delegraph.memory.reallocation import reallocation_graph as reallocation_graph
    from delegraph.memory.reallocation import usage_graph as usage_graph
    from delegraph.memory.records import ObjectsAssignment as ObjectsAssignment
    from delegraph.memory.records import OffsetsAssignment as OffsetsAssignment
    from delegraph.memory.records import TensorUsageRecord as TensorUsageRecord
    from delegraph.memory.task_profiles import (
        calculate_positional_maximums as calculate_positional_maximums,
    )
    from delegraph.memory.task_profiles import calculate_task_profiles as calculate_task_profiles
    from delegraph.memory.usage import usage_records as usage_records
    from delegraph.memory.verifier import Violation as Violation
    from delegraph.memory.verifier import verify_plan as verify_plan

_MODULES = {
    "arena": (
        "Allocation",
        "SimpleMemoryArena",
    ),
    "arena_planner": (
        "ArenaPlanner",
        "PlanNode",
        "PlannerGraph",
        "TensorKind",
    ),
    "best_planner": (
        "BestPlan",
        "plan_best",
        "plan_exactly",
    ),
    "declared_graph": ("DeclaredGraph",),
    "bounds": (
        "live_bytes",
        "lower_bound",
    ),
    "memory_management": (
        "MemoryStrategy",
        "assign_objects_to_tensors",
        "assign_offsets_to_tensors",
        "objects_to_offsets",
    ),
    "reallocation": (
        "reallocation_graph",
        "usage_graph",
    ),
    "records": (
        "ObjectsAssignment",
        "OffsetsAssignment",
        "TensorUsageRecord",
    ),
    "task_profiles": (
        "calculate_positional_maximums",
        "calculate_task_profiles",
    ),
    "usage": ("usage_records",),
    "verifier": (
        "Violation",
        "verify_plan",
    ),
    "arena_text": ("arena_dump",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
