"""Which subgraphs the operators of a model call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from delegraph.graph.model import Model
from delegraph.schema.table import Table


def called_subgraphs(options: Table | None) -> Iterator[int]:
    """Yield the subgraphs that an operator's options name: branches, bodies, comparators, ...

    >>> from delegraph.schema.options import WhileOptions
    >>> list(called_subgraphs(WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)))
    [1, 2]
    """
    for field in () if options is None else options.FIELDS:
        if field.name.endswith("subgraph_index"):
            yield getattr(options, field.name)
        elif field.name.endswith("subgraph_indices"):
            yield from getattr(options, field.name) or ()


def reachable_subgraphs(model: Model, roots: Iterable[int]) -> frozenset[int]:
    """Return *roots* and all subgraphs that their operators call, directly or not."""
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        index = waiting.pop()
        if index not in found and 0 <= index < len(model.subgraphs):
            found.add(index)
            for operator in model.subgraphs[index].operators:
                waiting += called_subgraphs(operator.options)
    return frozenset(found)
