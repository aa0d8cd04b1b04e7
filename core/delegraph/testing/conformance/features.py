"""Which forms and features a model shows, so that a case knows what claim it needs.

The names are those of ``delegraph.delegation.capabilities.FEATURES``. They are read off a model
that has run: then all shapes are known. ``activation``, ``broadcast`` and ``computed-weights`` are
features of builtin operators; what a custom one does with its inputs, nobody here knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.node_form import NO_ACTIVATION, NodeForm, fused_activation
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.graph.model import OperatorSpec
from delegraph.operators.registration import Node
from delegraph.operators.roles import operand_roles
from delegraph.operators.tensor import Tensor
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import TensorType
from delegraph.testing.operator_cases.pairs import COMPARISONS, FUSED, OTHERS, STABLEHLO

ELEMENT_WISE = frozenset(
    (*FUSED, *COMPARISONS, *OTHERS, *STABLEHLO, "PRELU", "SELECT", "SELECT_V2")
)
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
"""Roles of weights, axes, sizes and the like: constants in most models."""

Arrays = Sequence[NDArray[Any]]


def operators_of(subgraph: Subgraph, op: str) -> tuple[OperatorSpec, ...]:
    """Return the operators of a name in a subgraph."""
    return tuple(operator for operator in subgraph.spec.operators if operator.name == op)


def forms_of(subgraph: Subgraph, operators: Iterable[OperatorSpec]) -> frozenset[NodeForm]:
    """Return the forms in which operators occur in a subgraph whose types are known."""
    return frozenset(
        NodeForm.of(operator.name, Node.from_operator(operator), subgraph.tensors)
        for operator in operators
    )


def features_of(
    subgraph: Subgraph, operators: Sequence[OperatorSpec], fed: Iterable[Arrays], is_dynamic: bool
) -> frozenset[str]:
    """Return the features that *operators* of a subgraph show.

    Args:
        subgraph: one whose shapes are known.
        operators: those of *subgraph* that count.
        fed: what the graph inputs were given, at each invoke.
        is_dynamic: whether it has shapes that were known only while invoking.
    """
    found = {name for operator in operators for name in _operator_features(subgraph, operator)}
    if len(subgraph.session.model.subgraphs) > 1:
        found.add("subgraph")
    if is_dynamic:
        found.add("dynamic-shapes")
    constants = [t.data for t in subgraph.tensors if t.is_constant and t.sparsity is None]
    if any(_is_extreme(array) for array in (*constants, *(a for step in fed for a in step))):
        found.add("extreme-values")
    return frozenset(found)


def _operator_features(subgraph: Subgraph, operator: OperatorSpec) -> Iterator[str]:
    tensors = subgraph.tensors
    roles = operand_roles(operator.name, len(operator.inputs), 0)
    given = zip(roles, operator.inputs, strict=True)
    inputs = [(role in PARAMETERS, tensors[t]) for role, t in given if t >= 0]
    outputs = [tensors[t] for t in operator.outputs if t >= 0]
    data = [tensor for is_parameter, tensor in inputs if not is_parameter] + outputs
    everything = [tensor for _, tensor in inputs] + outputs
    if fused_activation(operator.options) != NO_ACTIVATION:
        yield "activation"
    if operator.name in ELEMENT_WISE and len({t.shape for _, t in inputs}) > 1:
        yield "broadcast"
    if any(is_one and not (t.is_constant or t.is_variable) for is_one, t in inputs):
        yield "computed-weights"
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


def _is_extreme(array: Any) -> bool:
    """Return whether floats have NaN, infinities, denormals or numbers whose square overflows."""
    if array is None or array.dtype not in _LIMITS:
        return False
    tiny, huge = _LIMITS[array.dtype]
    with np.errstate(all="ignore"):
        size = np.abs(array.astype(np.float64))
        return bool(np.any(~(size < huge) | ((size > 0) & (size < tiny))))


def _limits(kind: Any) -> tuple[float, float]:
    """Return the smallest normal number of a float type, and the square root of the largest."""
    info = np.finfo(kind)
    return float(info.tiny), float(info.max) ** 0.5


_LIMITS = {
    NUMPY_DTYPES[TensorType.FLOAT16]: _limits(np.float16),
    NUMPY_DTYPES[TensorType.BFLOAT16]: _limits(np.float32),  # as many bits of exponent
    NUMPY_DTYPES[TensorType.FLOAT32]: _limits(np.float32),
    NUMPY_DTYPES[TensorType.FLOAT64]: _limits(np.float64),
}
