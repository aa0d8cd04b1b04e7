"""The subgraphs that run: the first, those of signatures, and those that nodes call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from delegraph.errors import DelegraphError, TimeLimitError
from delegraph.graph.calls import called_subgraphs
from delegraph.runtime.session import Session

_ALLOCATES_AT_INVOKE = "CALL_ONCE"
"""The operator whose subgraph is allocated by the first invoke, not with the node that calls it."""

_PASSES_INPUTS = ("IF", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "STABLEHLO_WHILE", "WHILE")
"""Operators whose last inputs are the inputs of the subgraphs that they call."""


@dataclass
class RunningSubgraph:
    """A subgraph that runs with the model.

    Attributes:
        index: position of the subgraph in the model.
        run_by: signatures and nodes that run it, in words; empty if only the interpreter does.
        signatures: names of the signatures that run it, directly or by calls. It is always empty if
            the model's only signature is for the first subgraph.
    """

    index: int
    run_by: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)


def running_subgraphs(session: Session) -> tuple[list[RunningSubgraph], list[str]]:
    """Return the allocated subgraphs that run with a model, and why these are not all the memory.

    A subgraph may fail to be allocated; or another node calls it with other shapes than those that
    it is allocated for, so that its arena may grow. Subgraphs of signatures, and of CALL_ONCE, are
    allocated first. What a delegate computes inside a partition is no subgraph that runs.

    Args:
        session: a session whose first subgraph is allocated.
    """
    signatures = session.model.signatures
    is_usual = len(signatures) == 1 and signatures[0].subgraph_index == 0
    named = () if is_usual else signatures
    entries: list[tuple[int, str]] = [(0, ""), *((s.subgraph_index, s.key) for s in named)]
    found: dict[int, RunningSubgraph] = {}
    failed: dict[object, str] = {}
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
                waiting += _calls(session, index, failed)
    return [found[index] for index in sorted(found)], list(failed.values())


def _is_allocated(
    session: Session, index: int, may_allocate: bool, failed: dict[object, str]
) -> bool:
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


def _calls(
    session: Session, index: int, failed: dict[object, str]
) -> Iterator[tuple[int, str, bool]]:
    """Yield the subgraphs that a subgraph's kernels call.

    Each has its caller in words, and whether it may be allocated here. Calls with other shapes than
    the subgraph is allocated for are added to *failed*.
    """
    where = f" of subgraph {index}" if index else ""
    for node, registration in session.subgraphs[index].steps.nodes:
        if node.delegate is None:
            for callee in called_subgraphs(node.options):
                if not 0 <= callee < len(session.subgraphs):
                    continue  # such a node fails when it is prepared, after an unknown shape
                caller = f"node {node.index}, {registration.name}{where}"
                if registration.name in _PASSES_INPUTS and _has_other_shapes(
                    session, index, node.inputs, callee
                ):
                    failed[caller, callee] = f"{caller}, calls subgraph {callee} with other shapes"
                yield callee, caller, registration.name == _ALLOCATES_AT_INVOKE


def _has_other_shapes(session: Session, caller: int, given: Sequence[int], callee: int) -> bool:
    """Whether a call passes tensors of other shapes than the called subgraph is allocated for.

    Args:
        session: the session.
        caller: index of the calling subgraph.
        given: tensors that the calling node reads.
        callee: index of the called subgraph.
    """
    called, tensors = session.subgraphs[callee], session.subgraphs[caller].tensors
    pairs = zip(reversed(called.inputs), reversed(given), strict=False)
    return called.is_allocated and any(
        tensors[source].shape != called.tensors[target].shape
        for target, source in pairs
        if target >= 0 and source >= 0
    )
