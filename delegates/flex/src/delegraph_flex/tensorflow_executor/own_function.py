"""Wraps one node as a TensorFlow function.

Eager execution shares a kernel among all operators with equal attributes, and does not accept
tensors as attributes. In a function, a node has a kernel of its own, with a separate state of a
seeded generator, and may have attributes of any kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow.core.framework import function_pb2, node_def_pb2

from delegraph_flex.data_types import DataType
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.node_def import AttrValue, Function, NodeDef
from delegraph_flex.tensorflow_executor.attributes import argument_types


def own_function(
    name: str,
    node: FlexNode,
    op_def: Any,
    attrs: Mapping[str, AttrValue],
    functions: Mapping[str, str],
) -> Any:
    """Return the FunctionDef that has *node* as its only node.

    *name* is the name of the new function. *functions* maps each function of the model to
    TensorFlow's name for it.
    """
    renamed = {key: _renamed(value, functions) for key, value in attrs.items()}
    definition = function_pb2.FunctionDef()
    definition.signature.name = name
    definition.signature.is_stateful = op_def.is_stateful
    body = node_def_pb2.NodeDef.FromString(NodeDef(node.op, renamed).serialise())
    body.name = "node"
    for i, type in enumerate(node.input_types):
        definition.signature.input_arg.add(name=f"x{i}", type=int(DataType.of(type)))
        body.input.append(f"x{i}")
    definition.node_def.append(body)
    for i, (type, source) in enumerate(
        zip(node.output_types, _outputs(op_def, attrs), strict=True)
    ):
        definition.signature.output_arg.add(name=f"y{i}", type=int(DataType.of(type)))
        definition.ret[f"y{i}"] = f"node:{source}"
    if op_def.is_stateful:
        definition.control_ret["node"] = "node"
        definition.signature.control_output.append("node")
    return definition


def _outputs(op_def: Any, attrs: Mapping[str, AttrValue]) -> list[str]:
    """Return the names of an operator's outputs in the syntax of function bodies.

    *op_def* is the operator's definition, and *attrs* its attributes.
    """
    return [
        f"{arg.name}:{i}"
        for arg in op_def.output_arg
        for i in range(len(argument_types(op_def, [arg], attrs) or ()))
    ]


def _renamed(value: AttrValue, functions: Mapping[str, str]) -> AttrValue:
    if isinstance(value, list):
        return [_renamed(item, functions) for item in value]
    return Function(functions[value.name], value.attrs) if isinstance(value, Function) else value
