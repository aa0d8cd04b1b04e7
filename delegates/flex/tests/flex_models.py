"""Models of Flex operators, written down node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import BuiltinOperator, Interpreter, TensorType
from delegraph.schema import tables, write_model
from delegraph.schema.table import Table
from delegraph_flex.custom_options import write_custom_options
from delegraph_flex.data_types import DataType
from delegraph_flex.node_def import AttrValue, NodeDef

FLOAT = {"T": DataType.FLOAT32}

NodeText = tuple[str, str, str, Any]
"""Operator (``FlexErf`` or a builtin one), names of inputs and outputs, attributes or options.

Attributes that are ``bytes`` are the custom options themselves.
"""


def flex_model(
    nodes: Sequence[NodeText],
    *,
    inputs: str,
    outputs: str,
    tensors: Mapping[str, tables.Tensor] | None = None,
    version: int = 1,
) -> bytes:
    """Return a model; tensors that are not described are ``[4]`` floats.

    Args:
        nodes: in order.
        inputs: names, with blanks between.
        outputs: names.
        tensors: those that are something else.
        version: of all operators.
    """
    names = dict.fromkeys(" ".join([inputs, *(f"{i} {o}" for _, i, o, _ in nodes)]).split())
    place = {name: i for i, name in enumerate(names)}
    known = {"": tables.Tensor(), **(tensors or {})}
    plain = tables.Tensor(shape=(4,), type=TensorType.FLOAT32, has_rank=True)
    codes: dict[tables.OperatorCode, int] = {}
    operators = []
    for op, read, written, attrs in nodes:
        is_flex = op.startswith("Flex")
        code = tables.operator_code(
            BuiltinOperator.CUSTOM if is_flex else BuiltinOperator[op],
            version=version,
            custom_code=op if is_flex else None,
        )
        operators.append(
            tables.Operator(
                opcode_index=codes.setdefault(code, len(codes)),
                inputs=tuple(place[name] for name in read.split()),
                outputs=tuple(place[name] for name in written.split()),
                custom_options=_options(op, attrs, len(read.split())) if is_flex else None,
                builtin_options=attrs if isinstance(attrs, Table) else None,
            )
        )
    subgraph = tables.SubGraph(
        tensors=tuple(known.get(name, plain).replace(name=name) for name in names),
        inputs=tuple(place[name] for name in inputs.split()),
        outputs=tuple(place[name] for name in outputs.split()),
        operators=tuple(operators),
        name="main",
    )
    return write_model(
        tables.Model(
            version=3,
            operator_codes=tuple(codes),
            subgraphs=(subgraph,),
            buffers=(tables.Buffer(),),
        )
    )


def _options(op: str, attrs: bytes | Mapping[str, AttrValue], count: int) -> NDArray[np.uint8]:
    if not isinstance(attrs, bytes):
        attrs = write_custom_options(NodeDef(op[4:], attrs, count))
    return np.frombuffer(attrs, np.uint8)


def results(interpreter: Interpreter, *inputs: Any) -> list[Any]:
    """Return every output for *inputs*, in order; other shapes than declared resize."""
    details = interpreter.get_input_details()
    for entry, value in zip(details, inputs, strict=True):
        interpreter.resize_tensor_input(entry["index"], np.shape(value))
    interpreter.allocate_tensors()
    for entry, value in zip(details, inputs, strict=True):
        interpreter.set_tensor(entry["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(entry["index"]) for entry in interpreter.get_output_details()]
