"""Which types and features a model shows, so that a case knows what claim it needs.

The names are those of ``delegraph.delegation.capabilities.FEATURES``. They are read off a model
that has run: then all shapes are known. ``activation``, ``broadcast`` and ``computed-weights`` are
features of builtin operators; what a custom one does with its inputs, nobody here knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.graph.model import OperatorSpec
from delegraph.operators.tensor import Tensor
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import ActivationFunctionType, TensorType
from delegraph.testing.operator_cases.pairs import COMPARISONS, FUSED, OTHERS, STABLEHLO

ELEMENT_WISE = frozenset(
    (*FUSED, *COMPARISONS, *OTHERS, *STABLEHLO, "PRELU", "SELECT", "SELECT_V2")
)
"""Operators whose inputs have the same shape unless they broadcast."""

_AXES = (
    "ARG_MAX", "ARG_MIN", "BROADCAST_TO", "CUMSUM", "EXPAND_DIMS", "MEAN", "MIRROR_PAD", "PAD",
    "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "RESHAPE",
    "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "RFFT2D", "SUM", "TILE", "TOPK_V2",
    "TRANSPOSE",
)  # fmt: skip
_WEIGHTS = (
    "CONV_2D", "CONV_3D", "DEPTHWISE_CONV_2D", "EMBEDDING_LOOKUP", "FULLY_CONNECTED", "PRELU",
)  # fmt: skip
_RECURRENT = (
    "BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "LSTM", "RNN", "SVDF",
    "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN",
)  # fmt: skip

PARAMETERS: dict[str, Sequence[int]] = {
    **dict.fromkeys(_AXES, (1,)),
    **dict.fromkeys(_WEIGHTS, (1, 2)),
    **dict.fromkeys(_RECURRENT, range(1, 64)),
    "BATCH_TO_SPACE_ND": (1, 2),
    "CONV_3D_TRANSPOSE": (0, 1, 3),
    "DYNAMIC_UPDATE_SLICE": (2,),
    "FILL": (0,),
    "MULTINOMIAL": (1,),
    "NON_MAX_SUPPRESSION_V4": (2, 3, 4),
    "NON_MAX_SUPPRESSION_V5": (2, 3, 4, 5),
    "ONE_HOT": (1, 2, 3),
    "PADV2": (1, 2),
    "RANDOM_STANDARD_NORMAL": (0,),
    "RANDOM_UNIFORM": (0,),
    "RANGE": (0, 1, 2),
    "SLICE": (1, 2),
    "SPACE_TO_BATCH_ND": (1, 2),
    "SPARSE_TO_DENSE": (1, 3),
    "SPLIT": (0,),
    "SPLIT_V": (1, 2),
    "STRIDED_SLICE": (1, 2, 3),
    "TRANSPOSE_CONV": (0, 1, 3),
    "UNSORTED_SEGMENT_MAX": (2,),
    "UNSORTED_SEGMENT_MIN": (2,),
    "UNSORTED_SEGMENT_PROD": (2,),
    "UNSORTED_SEGMENT_SUM": (2,),
}
"""Operator to the inputs that are weights, axes, sizes and the like: constants in most models."""

Arrays = Sequence[NDArray[Any]]


def operators_of(subgraph: Subgraph, op: str) -> tuple[OperatorSpec, ...]:
    """Return the operators of a name in a subgraph."""
    return tuple(operator for operator in subgraph.spec.operators if operator.name == op)


def types_of(subgraph: Subgraph, operators: Iterable[OperatorSpec]) -> frozenset[str]:
    """Return the names of the types of their inputs and outputs."""
    return frozenset(
        subgraph.tensors[i].type.name
        for operator in operators
        for i in (*operator.inputs, *operator.outputs)
        if i >= 0
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
    parameters = PARAMETERS.get(operator.name, ())
    inputs = [(i, tensors[t]) for i, t in enumerate(operator.inputs) if t >= 0]
    outputs = [tensors[t] for t in operator.outputs if t >= 0]
    data = [tensor for i, tensor in inputs if i not in parameters] + outputs
    everything = [tensor for _, tensor in inputs] + outputs
    activation = getattr(operator.options, "fused_activation_function", None)
    if activation not in (None, ActivationFunctionType.NONE):
        yield "activation"
    if operator.name in ELEMENT_WISE and len({t.shape for _, t in inputs}) > 1:
        yield "broadcast"
    if any(i in parameters and not (t.is_constant or t.is_variable) for i, t in inputs):
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
