"""Cases in which Delegraph and LiteRT compute different values, by ``docs/differences.md``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.node_traits import fused_activation
from delegraph.schema import tables
from delegraph.schema.enums import TensorType
from delegraph.schema.reader import read_model
from delegraph.testing.sweep.hosts import operator_names
from delegraph.testing.sweep.sweep_case import SweepCase
from delegraph.testing.sweep.tensor_values import tensor_values

_RNNS = ("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN")
_PRODUCTS = (
    "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL", "SVDF",
    "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", *_RNNS,
)  # fmt: skip
_CONVOLUTIONS = _PRODUCTS[:4]
_MATRICES = ("FLOAT32", "UINT8", "INT8", "INT16", "INT32", "UINT32", "INT64")
_WEIGHTS = (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2)


@dataclass(frozen=True)
class _Call:
    """A call of a node: the values that it read and wrote at one invoke.

    Attributes:
        op: name of the operator.
        node: record of the node.
        inputs: records and arrays of the known inputs.
        outputs: records and arrays of the outputs.
    """

    op: str
    node: tables.Operator
    inputs: list[tuple[tables.Tensor, NDArray[Any]]]
    outputs: list[tables.Tensor]

    def floats(self) -> list[NDArray[Any]]:
        """Arrays of the FLOAT32 inputs."""
        return [x for tensor, x in self.inputs if tensor.type is TensorType.FLOAT32]

    def types(self) -> list[TensorType]:
        """Types of the inputs."""
        return [tensor.type for tensor, _ in self.inputs]


def _has_nan(call: _Call) -> bool:
    return any(np.isnan(x).any() for x in call.floats())


def _is_infinite(call: _Call) -> bool:
    return not all(np.isfinite(x).all() for x in call.floats())


def _is_hybrid(call: _Call) -> bool:
    has_weights = any(tensor.type in _WEIGHTS for tensor, _ in call.inputs)
    return call.op in _PRODUCTS and has_weights and bool(call.floats())


def _is_clamped(call: _Call) -> bool:
    return call.op in _RNNS and "RELU" in fused_activation(call.node.builtin_options)


def _is_beyond_int32(call: _Call) -> bool:
    quantization = call.outputs[0].quantization
    if call.op != "QUANTIZE" or not call.floats():
        return False
    if quantization is None or quantization.scale is None:
        return False
    zero_point = 0 if quantization.zero_point is None else np.max(quantization.zero_point)
    with np.errstate(all="ignore"):
        steps = (call.floats()[0] / np.min(quantization.scale)).astype(np.float64)
    return bool((steps + zero_point >= 2.0**31).any())


def _has_least_over_minus_1(call: _Call) -> bool:
    if call.op != "FLOOR_DIV" or call.types()[:1] not in ([TensorType.INT8], [TensorType.INT16]):
        return False
    (_, a), (_, b) = call.inputs
    return bool((a == np.iinfo(a.dtype).min).any() and (b == -1).any())


def _is_beyond_32_bits(call: _Call) -> bool:
    """Return whether an integer product is scaled so much that hardly any sum fits in 32 bits."""
    quantized = (tensor.quantization for tensor, _ in call.inputs[:2])
    scales = [q.scale for q in quantized if q is not None and q.scale is not None]
    output = call.outputs[0].quantization
    if call.op not in _CONVOLUTIONS or len(scales) < 2 or output is None or output.scale is None:
        return False
    return bool(np.max(scales[0]) * np.max(scales[1]) / np.min(output.scale) >= 2.0**8)


def _has_sparse_weights_of_int16(call: _Call) -> bool:
    is_sparse = any(tensor.sparsity is not None for tensor, _ in call.inputs)
    return call.op == "FULLY_CONNECTED" and is_sparse and call.types()[0] is TensorType.INT16


def _is_matrix_of_another_type(call: _Call) -> bool:
    return call.op in ("MATRIX_DIAG", "MATRIX_SET_DIAG") and call.types()[0].name not in _MATRICES


def _has_blocks(tensor: tables.Tensor) -> bool:
    details = tensor.quantization.details if tensor.quantization is not None else None
    return isinstance(details, tables.BlockwiseQuantization)


def _has_few_outputs_by_blocks(call: _Call) -> bool:
    if call.op != "FULLY_CONNECTED":
        return False
    weights, values = call.inputs[1]
    return _has_blocks(weights) and len(values) < 4


VALUES: dict[str, Callable[[_Call], bool]] = {
    "arg-max-beside-nan": lambda call: call.op in ("ARG_MAX", "ARG_MIN") and _has_nan(call),
    "conv-weights-of-float16": lambda call: (
        call.op == "CONV_2D" and call.types()[1:2] == [TensorType.FLOAT16]
    ),
    "dequantize-with-a-scale-a-block": lambda call: (
        call.op == "DEQUANTIZE" and _has_blocks(call.inputs[0][0])
    ),
    "fully-connected-by-blocks-to-few-outputs": _has_few_outputs_by_blocks,
    "hybrid-inputs-that-are-no-numbers": lambda call: _is_hybrid(call) and _is_infinite(call),
    "local-response-beside-nan": lambda call: (
        call.op == "LOCAL_RESPONSE_NORMALIZATION" and _is_infinite(call)
    ),
    "matrix-diag-of-other-types": _is_matrix_of_another_type,
    "products-beyond-int32": _is_beyond_32_bits,
    "quantize-beyond-int32": _is_beyond_int32,
    "quotient-of-the-least-integer": _has_least_over_minus_1,
    "recurrent-clamps-of-nan": lambda call: _is_clamped(call) and _has_nan(call),
    "sparse-weights-of-int16": _has_sparse_weights_of_int16,
    "unique-values-beside-nan": lambda call: call.op == "UNIQUE" and _has_nan(call),
}
"""Mapping from an entry's id to a function that returns whether it explains a node's call."""


def documented_values(case: SweepCase) -> str | None:
    """Return the id of the entry that explains a case's different values; None if there is none."""
    return next((n for call in _calls(case) for n, holds in VALUES.items() if holds(call)), None)


def _calls(case: SweepCase) -> list[_Call]:
    """Return the calls of the main subgraph's nodes at each invoke, as the core computes them."""
    model = read_model(np.frombuffer(case.content, np.uint8))
    names, (graph, *_) = operator_names(case.content), model.subgraphs or ()
    tensors, nodes = graph.tensors or (), graph.operators or ()
    return [
        _Call(
            names[node.opcode_index],
            node,
            [(tensors[i], values[i]) for i in node.inputs or () if i in values],
            [tensors[i] for i in node.outputs or () if i >= 0],
        )
        for values in tensor_values(case)
        for node in nodes
    ]
