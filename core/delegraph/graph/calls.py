"""Which subgraphs the operators of a model call."""

from __future__ import annotations

from collections.abc import Iterable

from delegraph.graph.model import Model, Operator


def called_subgraphs(operator: Operator) -> tuple[int, ...]:
    """Return the subgraphs that an operator's options name: branches, bodies, comparators, ..."""
    options = operator.options
    called: list[int] = []
    for field in () if options is None else type(options).FIELDS:
        if field.name.endswith("subgraph_index"):
            called.append(getattr(options, field.name))
        elif field.name.endswith("subgraph_indices"):
            called += getattr(options, field.name) or ()
    return tuple(called)


def reachable_subgraphs(model: Model, roots: Iterable[int]) -> frozenset[int]:
    """Return *roots* and all subgraphs that their operators call, directly or not."""
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        index = waiting.pop()
        if index not in found and 0 <= index < len(model.subgraphs):
            found.add(index)
            for operator in model.subgraphs[index].operators:
                waiting += called_subgraphs(operator)
    return frozenset(found)
