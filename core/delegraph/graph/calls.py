"""Finds the subgraphs that the operators of a model call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator

from delegraph.errors import UnsupportedModelError
from delegraph.graph.model import Model
from delegraph.schema.table import Table

DEPTH_LIMIT = 50
"""Default of the largest depth of nested subgraph calls."""

_FRAMES = 24
"""Largest number of Python stack frames for one nested call, if delegates are applied."""


def called_subgraphs(options: Table | None) -> Iterator[int]:
    """Yield indices of the subgraphs that *options* name, such as branches and loop bodies.

    >>> from delegraph.schema.options import WhileOptions
    >>> list(called_subgraphs(WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)))
    [1, 2]
    """
    for field in () if options is None else options.FIELDS:
        if field.name.endswith("subgraph_index"):
            yield getattr(options, field.name)
        elif field.name.endswith("subgraph_indices"):
            yield from getattr(options, field.name) or ()


def with_calls(options: Table, number: Callable[[int], int]) -> Table:
    """Return an operator's *options* with each subgraph index replaced by ``number(index)``.

    >>> from delegraph.schema.options import WhileOptions
    >>> with_calls(WhileOptions(cond_subgraph_index=4, body_subgraph_index=6), lambda i: i // 2)
    WhileOptions(cond_subgraph_index=2, body_subgraph_index=3)
    """
    changes: dict[str, int | tuple[int, ...]] = {}
    for field in options.FIELDS:
        if field.name.endswith("subgraph_index"):
            changes[field.name] = number(getattr(options, field.name))
        elif field.name.endswith("subgraph_indices"):
            changes[field.name] = tuple(map(number, getattr(options, field.name) or ()))
    return options.replace(**changes) if changes else options


def reachable_subgraphs(model: Model, roots: Iterable[int]) -> frozenset[int]:
    """Return *roots* and the indices of all subgraphs that their operators call at any depth.

    All are subgraphs of *model*.
    """
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        index = waiting.pop()
        if index not in found and 0 <= index < len(model.subgraphs):
            found.add(index)
            for operator in model.subgraphs[index].operators:
                waiting += called_subgraphs(operator.options)
    return frozenset(found)


def call_depth(model: Model) -> int:
    """Return the maximal depth of nested subgraph calls in *model*.

    A recursive call does not count; it is rejected when it is prepared. Time and memory are
    proportional to the model's size.
    """
    depths: dict[int, int] = {}
    seen: set[int] = set()
    waiting = [(index, False) for index in range(len(model.subgraphs))]
    while waiting:
        index, is_left = waiting.pop()
        if is_left:
            depths[index] = max((depths.get(i, -1) + 1 for i in _callees(model, index)), default=0)
        elif index not in seen:
            seen.add(index)
            waiting.append((index, True))
            waiting += [(callee, False) for callee in _callees(model, index)]
    return max(depths.values(), default=0)


def _callees(model: Model, index: int) -> set[int]:
    operators = model.subgraphs[index].operators
    called = {i for operator in operators for i in called_subgraphs(operator.options)}
    return {i for i in called if 0 <= i < len(model.subgraphs)}


def require_depth(model: Model, limit: int | None) -> None:
    """Raise an error if the subgraph calls of *model* are nested too deeply.

    If the user's limit is higher than the default, Python's recursion limit is raised for the whole
    process.

    Args:
        model: the model.
        limit: maximal depth of nested calls; None means :data:`DEPTH_LIMIT`.

    Raises:
        UnsupportedModelError: the depth exceeds the limit.
    """
    granted = DEPTH_LIMIT if limit is None else limit
    if len(model.subgraphs) <= min(granted, DEPTH_LIMIT):
        return
    depth = call_depth(model)
    if depth > granted:
        raise UnsupportedModelError(
            f"the model's subgraphs call each other {depth} deep, more than the limit of "
            f"{granted}; Interpreter(limits=Limits(depth=...)) sets another"
        )
    if depth > DEPTH_LIMIT:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000 + _FRAMES * depth))
