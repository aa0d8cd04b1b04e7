"""Which subgraphs the operators of a model call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from delegraph.graph.model import Model, Operator


def called_subgraphs(operator: Operator) -> tuple[int, ...]:
    """Return the subgraphs that an operator's options name: branches, bodies, comparators, ..."""
    options = operator.options
    if options is None:
        return ()
    return tuple(
        getattr(options, field.name)
        for field in fields(options)
        if field.name.endswith("subgraph_index")
    )


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
