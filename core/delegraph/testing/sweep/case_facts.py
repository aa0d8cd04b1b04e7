"""Facts about a case that explain a finding: options, quantization and values, if they are few."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import DelegraphError
from delegraph.graph.dtypes import OBJECT_TYPES, byte_size, has_nan, stored_values
from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.testing.sweep.sweep_case import SweepCase, named_arrays
from delegraph.tools.model_listing import options_of

FEW = 8
"""Largest number of values of an array that are told, and of nodes and arrays in a text."""


def node_facts(content: bytes) -> list[dict[str, Any]]:
    """Operator, options and tensors of each node of the model file *content*, as JSON data.

    Options that have the schema's default are left out. The list is empty if the file is no model.
    """
    try:
        model = read_model(np.frombuffer(content, np.uint8))
    except DelegraphError:
        return []
    graph, codes = (model.subgraphs or ())[0], model.operator_codes or ()
    return [
        {
            "operator": codes[node.opcode_index].custom_code
            or codes[node.opcode_index].builtin_code.name,
            "options": _options(node),
            "inputs": [_tensor(model, graph, index) for index in node.inputs or ()],
            "outputs": [_tensor(model, graph, index) for index in node.outputs or ()],
        }
        for node in graph.operators or ()
    ]


def input_facts(case: SweepCase) -> dict[str, Any]:
    """Values of the arrays that graph inputs get, if they are few, by name in the ``.npz`` file."""
    arrays = named_arrays(case.steps)
    return {name: _values(array) for name, array in arrays.items() if array.size <= FEW}


def fact_lines(case: SweepCase) -> Iterator[str]:
    """Yield lines about the nodes of a case and the values of its inputs.

    An example is ``ADD: activation=RELU; INT8[2] scale 0.5 zero point 3, INT8[] = 1 -> INT8[2]``.
    """
    for node in node_facts(case.content)[:FEW]:
        options = ", ".join(f"{name}={value}" for name, value in node["options"].items())
        options = options.replace("fused_activation_function", "activation")
        sides = (", ".join(map(_words, node[role])) or "none" for role in ("inputs", "outputs"))
        yield f"{node['operator']}: {'; '.join(filter(None, [options, ' -> '.join(sides)]))}"
    yield from (f"{name} = {values}" for name, values in [*input_facts(case).items()][:FEW])


def _options(node: tables.Operator) -> dict[str, Any]:
    table = node.builtin_options if node.builtin_options_2 is None else node.builtin_options_2
    if table is None:
        return {}
    usual = options_of(type(table)())
    return {
        name: value
        for name, value in options_of(table).items()
        if name == "padding" or value != usual.get(name)
    }


def _tensor(model: tables.Model, graph: tables.SubGraph, index: int) -> dict[str, Any] | None:
    """Type, shape, quantization and constant values of a tensor; None for an absent input."""
    if index < 0:
        return None
    tensor = (graph.tensors or ())[index]
    facts: dict[str, Any] = {"type": tensor.type.name, "shape": list(map(int, tensor.shape or ()))}
    quantization = tensor.quantization
    if quantization is not None and quantization.scale is not None and len(quantization.scale):
        facts["scale"] = _values(quantization.scale)
        points = quantization.zero_point
        facts["zero_point"] = [] if points is None else list(map(int, points))
    data, shape = (model.buffers or ())[tensor.buffer].data, facts["shape"]
    is_plain = tensor.sparsity is None and tensor.type not in OBJECT_TYPES
    is_small = all(n > 0 for n in shape) and math.prod(shape) <= FEW
    if is_plain and is_small and data is not None and len(data) == byte_size(tensor.type, shape):
        facts["values"] = _values(stored_values(data, tensor.type, shape))
    return facts


def _values(array: NDArray[Any]) -> Any:
    """Values of an array as JSON data: floats as short decimals, complex numbers as texts."""
    if array.dtype.kind == "c":
        return array.astype(str).tolist()
    if array.dtype.hasobject:
        texts = [bytes(x).decode(errors="backslashreplace") for x in array.reshape(-1)]
        return np.array(texts, object).reshape(array.shape).tolist()
    if not has_nan(array.dtype):
        return array.tolist()
    floats = array if array.dtype.kind == "f" else array.astype(np.float32)
    return floats.astype(str).astype(np.float64).tolist()


def _words(tensor: dict[str, Any] | None) -> str:
    """Text about a tensor, such as ``INT8[2] scale 0.5 zero point 3``."""
    if tensor is None:
        return "none"
    words = [f"{tensor['type']}{tensor['shape']}"]
    scales, points = tensor.get("scale", []), tensor.get("zero_point", [])
    if len(scales) == 1:
        words.append(f"scale {scales[0]:g} zero point {', '.join(map(str, points)) or 0}")
    elif scales:
        words.append(f"{len(scales)} scales")
    if "values" in tensor:
        words.append(f"= {tensor['values']}")
    return " ".join(words)
