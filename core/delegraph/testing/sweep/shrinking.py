"""Shrinks cases that show a difference: fewer nodes, then shorter axes and simpler values.

Source:
    The search is greedy, as in QuickCheck: it takes the first simpler case that still fails, and
    continues from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from delegraph.errors import DelegraphError
from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.testing.sweep.judging import Ending, Fault
from delegraph.testing.sweep.sweep_case import Arrays, SweepCase
from delegraph.testing.sweep.tensor_values import tensor_values
from delegraph.tools.shrinking import shrunk

Fails = Callable[[SweepCase], bool]


@dataclass(frozen=True, eq=False)
class _Records:
    """A case in the form that :mod:`delegraph.tools.shrinking` expects."""

    records: tables.Model
    steps: tuple[Arrays, ...]
    reference: tables.Model | None = None


def smallest(
    case: SweepCase, fault: Fault, judge: Callable[[SweepCase], Ending], end: float
) -> SweepCase:
    """Return the simplest case found until *end* that shows the same kind of fault.

    Args:
        case: a case with *fault*.
        fault: the fault, whose kind must stay, and its place if it has one.
        judge: function that tries a case and returns how it ended, even if the case kills a
            process.
        end: time by :func:`time.monotonic` at which the simplest case so far is returned.
    """

    def fails(simpler: SweepCase) -> bool:
        if time.monotonic() > end:
            return False
        found = judge(simpler).fault
        return found is not None and (found.kind, found.where) == (fault.kind, fault.where)

    if case.threads > 1:
        case = _first([replace(case, threads=1)], fails) or case
    if len(case.steps) > 1:
        case = _first((replace(case, steps=(step,)) for step in case.steps), fails) or case
    case = _fewer_nodes(case, fails)
    try:
        records = read_model(np.frombuffer(case.content, np.uint8))
    except DelegraphError:
        return case
    found = shrunk(
        _Records(records, case.steps), lambda simpler: fails(_with_records(case, simpler))
    )
    return _with_records(case, found)


def _first(cases: Iterator[SweepCase] | list[SweepCase], fails: Fails) -> SweepCase | None:
    return next(filter(fails, cases), None)


def _with_records(case: SweepCase, changed: _Records) -> SweepCase:
    try:
        content = write_model(changed.records)
    except (TypeError, OverflowError):
        return case
    return replace(case, content=content, steps=changed.steps)


def _fewer_nodes(case: SweepCase, fails: Fails) -> SweepCase:
    """Return a failing case with as few consecutive nodes of the model as possible.

    Their inputs from earlier nodes get the values that the core computes.
    """
    try:
        model = read_model(np.frombuffer(case.content, np.uint8))
    except DelegraphError:
        return case
    count = len((model.subgraphs or ())[0].operators or ()) if model.subgraphs else 0
    if count < 2:
        return case
    values = tensor_values(case)
    for size in range(1, count):
        for start in range(count - size + 1):
            part = _part(case, model, range(start, start + size), values)
            if part is not None and fails(part):
                return part
    return case


def _part(
    case: SweepCase, model: tables.Model, nodes: range, values: list[dict[int, np.ndarray]]
) -> SweepCase | None:
    """Return a case of the nodes at positions *nodes* of *model*; None if a value is unknown.

    The values that the nodes read from others become inputs. *values* has, for each step, the
    values of tensors by index.
    """
    graph, *others = model.subgraphs or ()
    kept = (graph.operators or ())[nodes.start : nodes.stop]
    tensors, buffers = graph.tensors or (), model.buffers or ()
    made = {i for node in kept for i in node.outputs or ()}
    read = {i for node in kept for i in node.inputs or () if i >= 0} - made
    fed = sorted(
        i for i in read
        if (buffers[tensors[i].buffer].data is None and not tensors[i].is_variable)
        or i in (graph.inputs or ())
    )  # fmt: skip
    given = dict(zip(graph.inputs or (), range(len(graph.inputs or ())), strict=True))
    steps = []
    for number, step in enumerate(case.steps):
        known = values[number] if number < len(values) else {}
        arrays = [step[given[i]] if i in given else known.get(i) for i in fed]
        if any(array is None for array in arrays):
            return None
        steps.append(tuple(array for array in arrays if array is not None))
    declared = list(tensors)
    for i, array in zip(fed, steps[0], strict=True):
        if i not in given:
            declared[i] = tensors[i].replace(shape=array.shape, shape_signature=None)
    part = graph.replace(
        operators=kept, tensors=tuple(declared), inputs=tuple(fed), outputs=tuple(sorted(made))
    )
    changed = model.replace(subgraphs=(part, *others), signature_defs=None)
    return _with_records(case, _Records(changed, tuple(steps)))
