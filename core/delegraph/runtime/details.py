"""The dictionaries that describe tensors, nodes and signatures, as in the official interpreter.

Source:
    tflite/python/interpreter.py and interpreter_wrapper/interpreter_wrapper.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import ArgumentError
from delegraph.runtime.arguments import as_index, require_c_int
from delegraph.runtime.tensor_access import signature_of
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from delegraph.graph.model import Signature
    from delegraph.graph.sparsity import Sparsity
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.subgraph import Subgraph


def tensor_details(tensor: Tensor) -> dict[str, Any]:
    """Return the details of a tensor, with the keys and types of the official interpreter."""
    quantization = tensor.quantization
    if quantization is None:
        scales, zero_points = np.array([], np.float32), np.array([], np.int32)
        parameters: dict[str, Any] = {"quantized_dimension": 0, "block_size": 0}
    else:
        scales, zero_points = quantization.scales, quantization.zero_points
        parameters = {
            "quantized_dimension": quantization.quantized_dimension,
            "block_size": quantization.block_size,
        }
    per_tensor = len(scales) == 1 and len(zero_points) == 1
    legacy = (float(scales[0]), int(zero_points[0])) if per_tensor else (0.0, 0)
    return {
        "name": tensor.name,
        "index": tensor.index,
        "shape": np.array(tensor.shape, np.int32),
        "shape_signature": np.array(signature_of(tensor), np.int32),
        "dtype": np.bytes_ if tensor.type == TensorType.STRING else tensor.dtype.type,
        "quantization": legacy,
        "quantization_parameters": {
            "scales": scales.copy(),
            "zero_points": zero_points.copy(),
            **parameters,
        },
        "sparsity_parameters": {} if tensor.sparsity is None else _sparsity(tensor.sparsity),
    }


def _sparsity(sparsity: Sparsity) -> dict[str, Any]:
    details: dict[str, Any] = {"traversal_order": np.array(sparsity.traversal_order, np.int32)}
    if sparsity.block_map is not None:
        details["block_map"] = np.array(sparsity.block_map, np.int32)
    details["dim_metadata"] = []
    for dim in sparsity.dim_metadata:
        if dim.array_segments is None:
            details["dim_metadata"].append({"format": 0, "dense_size": dim.dense_size})
        else:
            details["dim_metadata"].append(
                {
                    "format": 1,
                    "array_segments": dim.array_segments,
                    "array_indices": dim.array_indices,
                }
            )
    return details


def node_details(subgraph: Subgraph, index: int) -> dict[str, Any]:
    """Return index, op_name, inputs, outputs and dtypes of node *index*, or of a delegate node.

    Raises:
        ArgumentTypeError: *index* is no integer.
        ArgumentError: no node has this index.
    """
    position = as_index("a node index", index)
    if not 0 <= position < len(subgraph.plan.nodes):
        require_c_int("a node index", position)
        raise ArgumentError(f"Invalid node index {position}; there are {len(subgraph.plan.nodes)}")
    node, registration = subgraph.plan.nodes[position]

    def dtypes(indices: Iterable[int]) -> list[Any]:
        return [tensor_details(subgraph.tensors[i])["dtype"] for i in indices if i >= 0]

    return {
        "index": node.index,
        "op_name": "DELEGATE" if node.delegate is not None else registration.name,
        "inputs": np.array(node.inputs, np.int32),
        "outputs": np.array(node.outputs, np.int32),
        "operand_types": dtypes(node.inputs),
        "result_types": dtypes(node.outputs),
    }


def signature_details(signatures: Iterable[Signature]) -> dict[str, dict[str, dict[str, int]]]:
    """Return sorted input and output names with tensor indices, for each signature of a model."""
    return {
        signature.key: {
            "inputs": dict(sorted(signature.inputs.items())),
            "outputs": dict(sorted(signature.outputs.items())),
        }
        for signature in signatures
    }


_SHOWN = 2
"""Number of inputs and of outputs that a line of text shows."""

_NAME = 20


def in_brief(tensors: Sequence[Tensor], indices: Sequence[int]) -> str:
    """Return the names, types and shapes of the tensors *indices* as one line of text.

    Only the first ``_SHOWN`` are written, with the number of the others.
    """
    shown = [tensors[index] for index in indices[:_SHOWN]]
    told = [f"{_short(t.name)} {t.type.name}{list(t.shape)}" for t in shown]
    more = [f"{len(indices) - _SHOWN} more"] if len(indices) > _SHOWN else []
    return ", ".join(told + more) or "nothing"


def _short(name: str) -> str:
    return repr(name if len(name) <= _NAME else f"{name[: _NAME - 1]}…")
