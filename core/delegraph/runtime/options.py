"""How an interpreter runs its model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from delegraph.delegation.delegate import PartitionPolicy, StopRequest
from delegraph.errors import ArgumentError
from delegraph.operators.numerics import Numerics
from delegraph.runtime.arguments import (
    AnyPath,
    check_choice,
    check_count,
    check_seconds,
    checked_flag,
)
from delegraph.runtime.delegates.failure_policy import FailurePolicy
from delegraph.runtime.isolation.isolation import AS_SPECIFIED, Isolation

Requirement = Literal["full"]
"""What a placement must be: ``"full"``, no node without a delegate."""


_FLAGS = (
    "preserve_all_tensors",
    "disable_delegate_clustering",
    "disable_delegate_node_fusion",
    "force_delegate_node_profiling",
)
"""Those that the official constructor has, too, with ``experimental_`` in front."""


@dataclass(frozen=True, slots=True)
class Options:
    """How an interpreter runs its model.

    Attributes:
        recommended_num_threads: threads that the user grants; -1 when that is left open.
        numerics: which official kernels to round like.
        preserve_all_tensors: keep every intermediate tensor; delegates then get one node at a time.
        disable_delegate_clustering: partition in plan order instead of pulling nodes together.
        disable_delegate_node_fusion: one node in each partition.
        force_delegate_node_profiling: profile delegate nodes even if they profile their own nodes.
        policy: what to do about delegates that fail.
        partition_policy: how the partitions of every delegate are chosen.
        require: ``"full"`` when every node must have a delegate.
        time_limit: seconds that a call may take; None for any.
        depth_limit: calls of subgraphs within each other; None for ``graph.calls.DEPTH_LIMIT``.
        cancellation: what stops the call that this interpreter's calls are part of; None where they
            are part of none.
        memory_limit: bytes that a subgraph's tensors may take; None for what suits the file.
        cache_dir: where delegates keep what they compile; None for the user's own folder.
        isolation: which delegates get a process of their own.
    """

    recommended_num_threads: int
    numerics: Numerics
    preserve_all_tensors: bool
    disable_delegate_clustering: bool
    disable_delegate_node_fusion: bool
    memory_limit: int | None
    force_delegate_node_profiling: bool = False
    policy: FailurePolicy = field(default_factory=FailurePolicy)
    partition_policy: PartitionPolicy = "largest"
    require: Requirement | None = None
    time_limit: float | None = None
    depth_limit: int | None = None
    cancellation: StopRequest | None = None
    cache_dir: AnyPath | None = None
    isolation: Isolation = AS_SPECIFIED

    def __post_init__(self) -> None:
        """Reject what is not among the choices.

        Raises:
            ArgumentError: a wrong value.
            ArgumentTypeError: a flag that is neither True nor False.
        """
        for name in _FLAGS:
            checked_flag(f"experimental_{name}", getattr(self, name))
        check_choice("numerics", self.numerics, [None, "builtin", "reference"])
        check_choice("require", self.require, [None, *get_args(Requirement)])
        check_choice("partition_policy", self.partition_policy, get_args(PartitionPolicy))
        check_seconds("time_limit", self.time_limit)
        check_count("depth_limit", self.depth_limit)
        if self.time_limit is not None and self.cancellation is not None:
            raise ArgumentError("time_limit and cancellation are given, expected one of them")

    @property
    def num_threads(self) -> int:
        """Threads that kernels use; >= 1."""
        return max(self.recommended_num_threads, 1)
