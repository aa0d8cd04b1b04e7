"""The cases of LiteRT's operators, with the shapes declared that come out: TFLM sizes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import DelegraphError, Interpreter
from delegraph.schema.writer import write_model
from delegraph.testing import REGISTERED_OPERATORS, OperatorCase
from delegraph.testing.operator_cases import cases
from micro.wheel.goldens import Step

KINDS = "biuf"
"""Of the types of NumPy alone that the wheel takes."""


def operators(count: int) -> Iterator[tuple[str, bytes, tuple[Step, ...]]]:
    """Yield what Delegraph runs of the cases of each operator.

    Args:
        count: random cases of each kind.
    """
    for op in REGISTERED_OPERATORS:
        for i, case in enumerate(cases(op, count=count)):
            model = None if case.is_random or i >= 4 * count else _settled(case)
            if model is not None:
                yield f"{op}/{i}", model, tuple(tuple(step) for step in case.steps)


def _settled(case: OperatorCase) -> bytes | None:
    """Return the case's model with the shapes that come out; None where nothing does."""
    first = case.steps[0]
    plain = all(a.dtype.isbuiltin == 1 and a.dtype.kind in KINDS for s in case.steps for a in s)
    if not plain or any([a.shape for a in step] != [a.shape for a in first] for step in case.steps):
        return None
    interpreter = Interpreter(model_content=case.model(), delegates=[], numerics="reference")
    inputs = interpreter.get_input_details()
    try:
        for detail, array in zip(inputs, first, strict=True):
            interpreter.resize_tensor_input(detail["index"], array.shape)
        interpreter.allocate_tensors()
        for detail, array in zip(inputs, first, strict=True):
            interpreter.set_tensor(detail["index"], np.asarray(array))
        interpreter.invoke()
    except DelegraphError:
        return None
    graphs = []
    for index, graph in enumerate(case.records.subgraphs or ()):
        running = interpreter.subgraph(index).tensors
        tensors = tuple(
            record.replace(shape=tensor.shape, type=tensor.type, shape_signature=None)
            for record, tensor in zip(graph.tensors or (), running, strict=True)
        )
        graphs.append(graph.replace(tensors=tensors))
    return write_model(case.records.replace(subgraphs=tuple(graphs)))
