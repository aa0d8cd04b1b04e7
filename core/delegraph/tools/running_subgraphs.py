"""The subgraphs that run: the first, those of signatures, and those that nodes call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from delegraph.errors import DelegraphError, TimeLimitError
from delegraph.graph.calls import called_subgraphs
from delegraph.runtime.session import Session

_ALLOCATES_AT_INVOKE = "CALL_ONCE"
"""The operator whose subgraph is allocated by the first invoke, not with the node that calls it."""


@dataclass
class RunningSubgraph:
    """A subgraph that runs with the model.

    Attributes:
        index: position of the subgraph in the model.
        run_by: signatures and nodes that run it, in words; empty if only the interpreter does.
        signatures: names of the signatures that run it, directly or by calls; empty if the model
            has one signature at most.
    """

    index: int
    run_by: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)


def running_subgraphs(session: Session) -> tuple[list[RunningSubgraph], list[str]]:
    """Return the allocated subgraphs that run with a model, and why others are not allocated.

    Subgraphs of signatures, and of CALL_ONCE, are allocated first. What a delegate computes inside
    a partition is no subgraph that runs.

    Args:
        session: a session whose first subgraph is allocated.
    """
    named = session.model.signatures if len(session.model.signatures) > 1 else ()
    entries: list[tuple[int, str]] = [(0, ""), *((s.subgraph_index, s.key) for s in named)]
    found: dict[int, RunningSubgraph] = {}
    failed: dict[int, str] = {}
    for entry, signature in entries:
        seen: set[int] = set()
        waiting = [(entry, f"signature {signature}" if signature else "", True)]
        while waiting:
            index, caller, may_allocate = waiting.pop(0)
            if not _is_allocated(session, index, may_allocate, failed):
                continue
            running = found.setdefault(index, RunningSubgraph(index))
            running.run_by += [caller] if caller and caller not in running.run_by else []
            if index not in seen:
                seen.add(index)
                running.signatures += [signature] if signature else []
                waiting += _calls(session, index)
    return [found[index] for index in sorted(found)], list(failed.values())


def _is_allocated(session: Session, index: int, may_allocate: bool, failed: dict[int, str]) -> bool:
    """Whether a subgraph has its memory; an error of its allocation is added to *failed*."""
    subgraph = session.subgraphs[index]
    if not subgraph.is_allocated and may_allocate and index not in failed:
        try:
            session.allocate(subgraph)
        except TimeLimitError:
            raise
        except DelegraphError as error:
            failed[index] = f"subgraph {index} cannot be allocated: {error}"
    return subgraph.is_allocated


def _calls(session: Session, index: int) -> Iterator[tuple[int, str, bool]]:
    """Yield the subgraphs that a subgraph's kernels call.

    Each has its caller in words, and whether it may be allocated here.
    """
    where = f" of subgraph {index}" if index else ""
    for node, registration in session.subgraphs[index].steps.nodes:
        if node.delegate is None:
            for callee in called_subgraphs(node.options):
                caller = f"node {node.index}, {registration.name}{where}"
                yield callee, caller, registration.name == _ALLOCATES_AT_INVOKE
