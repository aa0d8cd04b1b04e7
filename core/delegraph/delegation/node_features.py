"""Features of a node, such as broadcasting, known from its options and tensors before it runs.

The features ``activation``, ``broadcast`` and ``computed-weights`` are reported for builtin
operators only, since the meaning of a custom operator's inputs is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from delegraph.delegation.node_traits import NO_ACTIVATION, fused_activation
from delegraph.operators.registration import Node
from delegraph.operators.roles import operand_roles

if TYPE_CHECKING:
    from delegraph.operators.tensor import Tensor

ELEMENT_WISE = frozenset({
    "ADD", "ATAN2", "BITWISE_XOR", "DIV", "EQUAL", "FLOOR_DIV", "FLOOR_MOD", "GREATER",
    "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "MAXIMUM", "MINIMUM", "MUL",
    "NOT_EQUAL", "POW", "PRELU", "RIGHT_SHIFT", "SELECT", "SELECT_V2", "SQUARED_DIFFERENCE",
    "STABLEHLO_ADD", "STABLEHLO_AND", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM",
    "STABLEHLO_MULTIPLY", "STABLEHLO_SHIFT_LEFT", "SUB",
})  # fmt: skip
"""Operators whose inputs have the same shape unless they broadcast."""

PARAMETERS = frozenset({
    "alpha", "axis", "begin", "bias", "block_shape", "cell_state", "constant_values", "crops",
    "default_value", "delta", "depth", "dilations", "dims", "end", "fft_length", "hidden_state",
    "init_value", "iou_threshold", "k", "layer_norm_coefficients", "limit", "max_output_size",
    "multiples", "num_samples", "num_segments", "off_value", "on_value", "output_shape",
    "output_state", "padding_value", "paddings", "peephole_weights", "perm", "score_threshold",
    "shape", "size", "size_splits", "soft_nms_sigma", "start", "start_indices", "state", "strides",
    "weights", "weights_feature", "weights_time", "window_dilations", "window_shape",
    "window_strides",
})  # fmt: skip
"""Roles of weights, axes, sizes and similar inputs, which are constants in most models."""


def node_features(operator: str, node: Node, tensors: Sequence[Tensor]) -> frozenset[str]:
    """Return the names of a node's features, found from its options and tensors.

    The result never has the features ``subgraph`` and ``extreme-values``; only a run shows them.

    Args:
        operator: operator name of the node.
        node: the node.
        tensors: tensors of its subgraph, by index.
    """
    return frozenset(_features(operator, node, tensors))


def _features(operator: str, node: Node, tensors: Sequence[Tensor]) -> Iterator[str]:
    roles = operand_roles(operator, len(node.inputs), 0)
    given = zip(roles, node.inputs, strict=True)
    inputs = [(role in PARAMETERS, tensors[i]) for role, i in given if i >= 0]
    outputs = [tensors[i] for i in node.outputs if i >= 0]
    data = [tensor for is_parameter, tensor in inputs if not is_parameter] + outputs
    everything = [tensor for _, tensor in inputs] + outputs
    if fused_activation(node.options) != NO_ACTIVATION:
        yield "activation"
    if operator in ELEMENT_WISE and len({tensor.shape for _, tensor in inputs}) > 1:
        yield "broadcast"
    if any(is_one and not (t.is_constant or t.is_variable) for is_one, t in inputs):
        yield "computed-weights"
    if any(tensor.is_dynamic for tensor in everything):
        yield "dynamic-shapes"
    if any(0 in tensor.shape for tensor in everything):
        yield "empty"
    if any(len(tensor.shape) > 4 for tensor in data):
        yield "many-dims"
    if any(tensor.shape == () for tensor in data):
        yield "scalar"
    if any(_is_per_channel(tensor) for tensor in everything):
        yield "per-channel"
    if any(tensor.sparsity is not None for tensor in everything):
        yield "sparse"


def _is_per_channel(tensor: Tensor) -> bool:
    return tensor.quantization is not None and len(tensor.quantization.scales) > 1
