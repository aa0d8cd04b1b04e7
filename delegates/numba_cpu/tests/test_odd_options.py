"""Options and quantization that no converter writes: refused, or computed as by the core.

A file may hold any number in any field. Every operator that is taken gets some of them, one at a
time; what the core refuses has to be refused here, and everything else has to come out the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import delegate
from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.schema import tables, write_model
from delegraph.testing import cases
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.outputs import outputs_of
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.lowering.registry import OPERATORS

FLOATS = (0.0, -1.0, math.inf, math.nan, 1e30)
INTEGERS = (-(2**31), -1, 0, 1, 3)
MEMBERS = 6
"""Members of an enumeration that are tried; the first are the oldest, and have kernels."""

SCALES = (1e-38, 1e-6, 1e20, math.inf, math.nan)
ZERO_POINTS = (-129, 256)
TYPES = ("FLOAT32", "INT8")
"""Types whose loops are written for themselves; one case of each will do."""

Results = list[NDArray[Any]] | None


def odd_values(value: Any) -> tuple[Any, ...]:
    """Return values of a field's type that are unusual."""
    if isinstance(value, Enum):
        return tuple(type(value))[:MEMBERS]
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, float):
        return FLOATS
    return INTEGERS if isinstance(value, int) else ()


def with_odd_options(case: OperatorCase) -> Iterator[tuple[str, tables.Model]]:
    """Yield the case's model with each of its options changed, one at a time, and without any."""
    (graph,) = case.records.subgraphs or ()
    (node,) = graph.operators or ()
    options = node.builtin_options
    bare = node.replace(builtin_options=None)
    yield "no options", case.records.replace(subgraphs=(graph.replace(operators=(bare,)),))
    for field in () if options is None else type(options).FIELDS:
        for value in odd_values(getattr(options, field.name)):
            changed = node.replace(builtin_options=options.replace(**{field.name: value}))
            name = f"{field.name}={value}"
            yield name, case.records.replace(subgraphs=(graph.replace(operators=(changed,)),))


def with_odd_quantization(case: OperatorCase) -> Iterator[tuple[str, tables.Model]]:
    """Yield the case's model with other scales and zero points, of one tensor at a time."""
    (graph,) = case.records.subgraphs or ()
    tensors = graph.tensors or ()
    for i in {0, len(tensors) - 1}:  # an input and an output
        tensor, found = tensors[i], tensors[i].quantization
        if found is None or found.scale is None or not len(found.scale):
            continue
        count = len(found.scale)
        changes = [{"scale": np.full(count, scale, np.float32)} for scale in SCALES]
        changes += [{"zero_point": np.full(count, point, np.int64)} for point in ZERO_POINTS]
        for change in changes:
            changed = tensor.replace(quantization=found.replace(**change))
            every = (*tensors[:i], changed, *tensors[i + 1 :])
            yield f"{i}: {change}", case.records.replace(subgraphs=(graph.replace(tensors=every),))


def chosen(op: str) -> list[OperatorCase]:
    """Return a case of each type of an operator's first input."""
    by_type: dict[str, OperatorCase] = {}
    for case in cases(op, count=12):
        graphs, types = case.records.subgraphs or (), case.types()
        if len(graphs) == 1 and len(graphs[0].operators or ()) == 1 and types[0] in TYPES:
            by_type.setdefault(types[0], case)
    return list(by_type.values())


def results(model: bytes, case: OperatorCase, *delegates: NumbaCpuDelegate) -> Results:
    """Return all outputs of all invokes; None where the model or a node is refused."""
    try:
        interpreter = Interpreter(model_content=model, experimental_delegates=list(delegates))
        return [y.copy() for step in case.steps for y in outputs_of(interpreter, step)]
    except DelegraphError as error:
        if "claim failed" in str(error):
            raise
        return None


def difference(found: Results, expected: Results, tolerance: float) -> str:
    """Return in words how results differ; empty where they do not."""
    if found is None or expected is None:
        return "" if found is expected else f"refused: {found is None}, by the core: {not found}"
    for ours, theirs in zip(found, expected, strict=True):
        if theirs.dtype.kind == "f":
            finite = np.isfinite(theirs)
            largest = float(np.abs(theirs[finite]).max(initial=1e-2))
            same = np.allclose(ours, theirs, 0, tolerance * largest, equal_nan=True)
        else:
            same = np.array_equal(ours, theirs)
        if not same:
            return f"{ours.reshape(-1)[:4]} and not {theirs.reshape(-1)[:4]}"
    return ""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_odd_options_and_quantization_are_as_by_the_core(op: str) -> None:
    given = delegate(num_threads=1)
    found = []
    for case in chosen(op):
        tolerance = max(case.tolerance, 1e-5)
        for name, records in (*with_odd_options(case), *with_odd_quantization(case)):
            model = write_model(records)
            ours, theirs = results(model, case, given), results(model, case)
            words = difference(ours, theirs, tolerance)
            found += [f"{name} of {case}: {words}"] * bool(words)
    assert not found, "\n".join(found)
