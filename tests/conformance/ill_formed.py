"""Cases of an operator whose node is not well-formed: a tensor of another type, one too many.

What Delegraph's kernels say of them decides what delegates may get, so a kernel must refuse while
preparing what it cannot compute. What it does compute must be what the official kernel computes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.judging import Judge, Outcome, Task, ours, outcome
from delegraph import DelegraphError, TensorType
from delegraph.graph.dtypes import BITS, NUMPY_DTYPES, OBJECT_TYPES, pack
from delegraph.schema import tables
from delegraph.testing.operator_case import OperatorCase

TYPES = (
    "FLOAT32", "FLOAT16", "BFLOAT16", "FLOAT64", "COMPLEX64", "INT4", "INT8", "INT16", "INT32",
    "INT64", "UINT8", "UINT32", "BOOL", "STRING", "RESOURCE",
)  # fmt: skip

KNOWN_WHILE_RUNNING = {"ASSIGN_VARIABLE", "READ_VARIABLE", "VAR_HANDLE"}
"""What a variable holds is known only then, to the official kernels, too."""

ODD_SCALES = (0.0, -1.0, math.nan, math.inf, 1e-45, 1e-30, 1e20, 3e38)
ODD_ZERO_POINTS = (-(2**31), -40_000, 300, 2**31 - 1, 2**40)

AGREED = ("same", "undefined")

OFFICIAL_CRASHES = {"DEPTHWISE_CONV_2D with an input less"}
"""What makes sense and the official kernels cannot do: this one looks for a bias that is absent."""


def ill_formed(case: OperatorCase) -> Iterator[tuple[str, OperatorCase]]:
    """Yield all invalid variants of a case."""
    yield from wrongly_typed(case)
    yield from miscounted(case)


def wrongly_typed(case: OperatorCase) -> Iterator[tuple[str, OperatorCase]]:
    """Yield named cases that differ in the type of one tensor of the operator.

    What is fed and constants are converted to the other type; where that is impossible there is no
    case.
    """
    main = (case.records.subgraphs or ())[0]
    for what, index in _places(case, main):
        declared = (main.tensors or ())[index].type
        for name in TYPES:
            wanted = TensorType[name]
            changed = None if wanted is declared else _changed(case, main, index, wanted)
            if changed is not None:
                yield f"{case.op} {what} {declared.name} as {name}", changed


def miscounted(case: OperatorCase) -> Iterator[tuple[str, OperatorCase]]:
    """Yield named cases with one more input or output, or one input less."""
    main = (case.records.subgraphs or ())[0]
    for node in _nodes(case, main):
        inputs, outputs = tuple(node.inputs or ()), tuple(node.outputs or ())
        others = {
            "with an input more": node.replace(inputs=(*inputs, *inputs[-1:])),
            "with an input less": node.replace(inputs=inputs[:-1]),
            "with an output more": node.replace(outputs=(*outputs, *outputs[-1:])),
        }
        for name, other in others.items():
            operators = tuple(other if o is node else o for o in main.operators or ())
            graphs = (main.replace(operators=operators), *(case.records.subgraphs or ())[1:])
            changed = replace(case, records=case.records.replace(subgraphs=graphs))
            yield f"{case.op} {name}", changed


def oddly_quantized(case: OperatorCase) -> Iterator[tuple[str, OperatorCase]]:
    """Yield named cases in which one tensor has a meaningless scale or zero point."""
    main = (case.records.subgraphs or ())[0]
    for what, index in _places(case, main):
        record = (main.tensors or ())[index]
        found = record.quantization
        if found is None or found.scale is None or not len(found.scale):
            continue
        scales = {f"scale {s:g}": {"scale": np.full_like(found.scale, s)} for s in ODD_SCALES}
        zeros = {
            f"zero point {z}": {"zero_point": np.full(len(found.scale), z, np.int64)}
            for z in ODD_ZERO_POINTS
        }
        for name, changes in {**scales, **zeros}.items():
            other = record.replace(quantization=found.replace(**changes))
            tensors = (other if t is record else t for t in main.tensors or ())
            graphs = (main.replace(tensors=tuple(tensors)), *(case.records.subgraphs or ())[1:])
            changed = replace(case, records=case.records.replace(subgraphs=graphs))
            yield f"{case.op} {what} {record.type.name} {name}", changed


def foreign_error(case: OperatorCase) -> str:
    """Return the error or warning of Python or NumPy for a case; empty if there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = outcome(ours("builtin"), Task(case.model(), case.steps))
    foreign = None if found.error is None else _foreign_cause(found.error)
    return "" if foreign is None else f"{found.stage}: {type(foreign).__name__}: {foreign}"


def complaint(name: str, case: OperatorCase, judge: Judge) -> str:
    """Return a description of Delegraph's wrong reaction to a case; empty if it is right.

    Args:
        name: of the case, as it came with it.
        case: one that is not well-formed.
        judge: asks the official interpreter.
    """
    task = Task(case.model(), case.steps, case.is_random, 1e-3)
    mine = outcome(ours("builtin"), task)
    if mine.error is None:
        verdict = judge(task)
        agree = verdict.kind in AGREED or name in OFFICIAL_CRASHES
        return "" if agree else f"runs: {verdict.kind} {verdict.detail}"
    foreign = _foreign_cause(mine.error)
    if foreign is not None:
        return f"{mine.stage}: {type(foreign).__name__} comes out: {mine.error}"
    is_late = mine.stage == "invoke" and case.op not in KNOWN_WHILE_RUNNING
    return f"refused only while running: {mine.error}" if is_late else ""


def is_valid(case: OperatorCase) -> bool:
    """Whether Delegraph runs a case without an error."""
    found: Outcome = outcome(ours("builtin"), Task(case.model(), case.steps))
    return not found.is_refusal


def _foreign_cause(error: BaseException) -> BaseException | None:
    """Return the cause of an error that is not an error of Delegraph."""
    cause: BaseException | None = error
    while cause is not None:
        if not isinstance(cause, DelegraphError):
            return cause
        cause = cause.__cause__
    return None


def _places(case: OperatorCase, main: tables.SubGraph) -> Iterator[tuple[str, int]]:
    """Yield the operator's tensors, each with a description of its role."""
    for node in _nodes(case, main):
        for side, indices in (("input", node.inputs), ("output", node.outputs)):
            yield from ((f"{side} {i}", t) for i, t in enumerate(indices or ()) if t >= 0)


def _nodes(case: OperatorCase, main: tables.SubGraph) -> list[tables.Operator]:
    """Return the first node of the case's operator; empty if there is none."""
    codes = [c.custom_code or c.builtin_code.name for c in case.records.operator_codes or ()]
    return [n for n in main.operators or () if codes[n.opcode_index] == case.op][:1]


def _changed(
    case: OperatorCase, main: tables.SubGraph, index: int, wanted: TensorType
) -> OperatorCase | None:
    tensors, buffers = list(main.tensors or ()), list(case.records.buffers or ())
    record = tensors[index]
    tensors[index] = record.replace(type=wanted)
    data = buffers[record.buffer].data
    if data is not None and len(data):
        values = _converted_constant(data, record.type, wanted)
        if values is None:
            return None
        buffers[record.buffer] = buffers[record.buffer].replace(data=values)
    steps = _fed(case.steps, list(main.inputs or ()), index, wanted)
    if steps is None:
        return None
    graphs = (main.replace(tensors=tuple(tensors)), *(case.records.subgraphs or ())[1:])
    records = case.records.replace(subgraphs=graphs, buffers=tuple(buffers))
    return replace(case, records=records, steps=steps)


def _fed(
    steps: Sequence[Sequence[NDArray[Any]]], inputs: list[int], index: int, wanted: TensorType
) -> tuple[tuple[NDArray[Any], ...], ...] | None:
    if index not in inputs:
        return tuple(map(tuple, steps))
    place = inputs.index(index)
    found = []
    for arrays in steps:
        values = None if wanted in BITS else _converted(arrays[place], wanted)
        if values is None:
            return None
        found.append((*arrays[:place], values, *arrays[place + 1 :]))
    return tuple(found)


def _converted_constant(
    data: NDArray[np.uint8], declared: TensorType, wanted: TensorType
) -> NDArray[np.uint8] | None:
    odd = {*OBJECT_TYPES, *BITS}
    if declared in odd or wanted in OBJECT_TYPES or len(data) % NUMPY_DTYPES[declared].itemsize:
        return None
    values = _converted(data.view(NUMPY_DTYPES[declared]), wanted)
    if values is None:
        return None
    if wanted in BITS:
        return pack(values, wanted)
    return np.frombuffer(values.tobytes(), np.uint8)


def _converted(values: NDArray[Any], wanted: TensorType) -> NDArray[Any] | None:
    if wanted is TensorType.STRING:
        texts = np.empty(values.shape, object)
        texts.reshape(-1)[:] = [f"text {i % 3}".encode() for i in range(values.size)]
        return texts
    if wanted in OBJECT_TYPES or values.dtype == object:
        return None
    real = values.real if values.dtype.kind == "c" else values
    with np.errstate(all="ignore"):
        return np.nan_to_num(real.astype(np.float64)).astype(NUMPY_DTYPES[wanted])
