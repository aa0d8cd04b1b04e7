"""Replaces operators by custom operators in the records of a model file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from delegraph.lazy_dataclass import dataclass, field
from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator, TensorType


@dataclass(frozen=True)
class CustomNode:
    """A custom operator, version 1, that replaces operators of a subgraph.

    Attributes:
        custom_code: name of the custom operator.
        custom_options: options of the custom operator, as bytes.
        inputs: indices of its input tensors in the subgraph.
        outputs: indices of its output tensors in the subgraph.
        constant: bytes of an additional last input, a constant UINT8 tensor; None if there is none.
        constant_name: name of that tensor.
    """

    custom_code: str
    custom_options: bytes = field(repr=False)
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constant: bytes | None = field(default=None, repr=False)
    constant_name: str = ""


Plan = Sequence[int | CustomNode]
"""Execution plan of a subgraph: indices of its operators, and custom nodes, in order."""


def with_plans(record: tables.Model, plans: Sequence[Plan]) -> tables.Model:
    """Return *record* with the operators of each subgraph replaced by its plan in *plans*.

    Unused operator codes and tensors are kept.

    Args:
        record: record of the model.
        plans: new list of operators for each subgraph: kept indices and custom nodes.
    """
    codes = list(record.operator_codes or ())
    buffers = list(record.buffers or ())
    custom: dict[str, int] = {}

    def code(name: str) -> int:
        if name not in custom:
            custom[name] = len(codes)
            codes.append(tables.operator_code(BuiltinOperator.CUSTOM, custom_code=name))
        return custom[name]

    def operator(node: CustomNode, tensors: list[tables.Tensor]) -> tables.Operator:
        inputs = node.inputs
        if node.constant is not None:
            inputs = (*inputs, len(tensors))
            tensors.append(_constant(node, len(buffers)))
            buffers.append(tables.Buffer(data=_array(node.constant)))
        return tables.Operator(
            opcode_index=code(node.custom_code),
            inputs=inputs,
            outputs=node.outputs,
            custom_options=_array(node.custom_options),
        )

    subgraphs = []
    for subgraph, plan in zip(record.subgraphs or (), plans, strict=True):
        tensors, operators = list(subgraph.tensors or ()), subgraph.operators or ()
        planned = [operators[s] if isinstance(s, int) else operator(s, tensors) for s in plan]
        subgraphs.append(subgraph.replace(operators=tuple(planned), tensors=tuple(tensors)))
    return record.replace(
        operator_codes=tuple(codes), subgraphs=tuple(subgraphs), buffers=tuple(buffers)
    )


def _constant(node: CustomNode, buffer: int) -> tables.Tensor:
    size = len(node.constant or b"")
    return tables.Tensor(
        shape=(size,), type=TensorType.UINT8, buffer=buffer, name=node.constant_name
    )


def _array(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8)
