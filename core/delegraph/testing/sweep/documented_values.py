"""Cases in which Delegraph and LiteRT compute different values, as documented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.node_traits import fused_activation
from delegraph.schema import tables
from delegraph.schema.enums import TensorType
from delegraph.schema.options import StridedSliceOptions
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
_SUMS = (
    "ADD_N", "FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D",
    "CONV_3D_TRANSPOSE",
)  # fmt: skip
_MATRICES = ("FLOAT32", "UINT8", "INT8", "INT16", "INT32", "UINT32", "INT64")
_WEIGHTS = (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2)


@dataclass(frozen=True)
class _Call:
    """One call of one node: the values that it read and wrote at one invoke.

    Attributes:
        op: name of the operator.
        node: record of the node.
        inputs: records and arrays of the known inputs.
        outputs: records and arrays of the outputs.
        reads_changed: whether the node reads a constant whose value was changed by the inputs.
        begins_with_constant: whether the node's first input is a constant in the file.
    """

    op: str
    node: tables.Operator
    inputs: list[tuple[tables.Tensor, NDArray[Any]]]
    outputs: list[tables.Tensor]
    reads_changed: bool = False
    begins_with_constant: bool = False

    def floats(self) -> list[NDArray[Any]]:
        """Arrays of the FLOAT32 inputs."""
        return [x for tensor, x in self.inputs if tensor.type is TensorType.FLOAT32]

    def scales(self) -> list[float]:
        """Largest scale of each input; 0 for an input without scales."""
        return [_scale(tensor) for tensor, _ in self.inputs]

    def output_scale(self) -> float:
        """Largest scale of the first output; 0 if it has no scales."""
        return _scale(self.outputs[0])

    def types(self) -> list[TensorType]:
        """Types of the inputs."""
        return [tensor.type for tensor, _ in self.inputs]


def _scale(tensor: tables.Tensor) -> float:
    quantization = tensor.quantization
    if quantization is None or quantization.scale is None:
        return 0.0
    return float(np.max(quantization.scale, initial=0.0))


def _has_nan(call: _Call) -> bool:
    return any(np.isnan(x).any() for x in call.floats())


def _is_infinite(call: _Call) -> bool:
    return not all(np.isfinite(x).all() for x in call.floats())


def _is_hybrid(call: _Call) -> bool:
    has_weights = any(tensor.type in _WEIGHTS for tensor, _ in call.inputs)
    return call.op in _PRODUCTS and has_weights and bool(call.floats())


def _is_clamped(call: _Call) -> bool:
    return call.op in (*_RNNS, "SVDF") and "RELU" in fused_activation(call.node.builtin_options)


def _is_beyond_int32(call: _Call) -> bool:
    if call.op != "QUANTIZE" or not call.floats() or not call.output_scale():
        return False
    quantization = call.outputs[0].quantization
    zero_points = None if quantization is None else quantization.zero_point
    zero_point = 0 if zero_points is None else np.max(zero_points)
    with np.errstate(all="ignore"):
        steps = (call.floats()[0] / call.output_scale()).astype(np.float64)
    return bool((steps + zero_point >= 2.0**31).any())


def _has_least_over_minus_1(call: _Call) -> bool:
    if call.op != "FLOOR_DIV" or call.types()[:1] not in ([TensorType.INT8], [TensorType.INT16]):
        return False
    (_, a), (_, b) = call.inputs
    return bool((a == np.iinfo(a.dtype).min).any() and (b == -1).any())


def _is_beyond_32_bits(call: _Call) -> bool:
    """Whether a convolution's output scale is so small that hardly any result fits in 32 bits."""
    if call.op not in _CONVOLUTIONS:
        return False
    scales = call.scales()[1:] if call.op == "TRANSPOSE_CONV" else call.scales()
    if len(scales) < 2 or not all(scales[:2]) or not call.output_scale():
        return False
    factor = scales[0] * scales[1] / call.output_scale()
    biases = [x for tensor, x in call.inputs if tensor.type is TensorType.INT64]
    largest = max((np.abs(x.astype(np.float64)).max(initial=0) for x in biases), default=0)
    return factor >= 2.0**8 or bool(factor * largest >= 2.0**31)


def _has_much_larger_scales(call: _Call) -> bool:
    """Whether the inputs of a sum have far larger scales than its output.

    The kernel then has too few bits for the steps of the output.
    """
    if call.op not in ("ADD", "SUB") or call.types()[0].name not in ("INT8", "UINT8", "INT16"):
        return False
    room = 2.0**15 if call.types()[0] is TensorType.INT16 else 2.0**20
    return 0 < call.output_scale() * room <= 2 * max(call.scales())


def _has_coarse_outputs(call: _Call) -> bool:
    is_integer = call.op == "HARD_SWISH" and not call.floats()
    return is_integer and 0 < 512 * call.scales()[0] < call.output_scale()


def _has_indices_beyond_int32(call: _Call) -> bool:
    is_wide = call.op == "ONE_HOT" and call.types()[0] is TensorType.INT64
    return is_wide and bool((call.inputs[0][1] != call.inputs[0][1].astype(np.int32)).any())


def _sums_nothing(call: _Call) -> bool:
    is_sum = call.op in ("SUM", "REDUCE_PROD") and call.scales()[0] > 0
    return is_sum and call.inputs[0][1].size == 0


def _has_subnormals(call: _Call) -> bool:
    least = np.finfo(np.float32).tiny
    return any(((x != 0) & (np.abs(x) < least)).any() for x in call.floats())


def _has_offset_weights(call: _Call) -> bool:
    if call.op not in ("DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"):
        return False
    quantization = call.inputs[1][0].quantization
    zero_points = None if quantization is None else quantization.zero_point
    return call.types()[1] is TensorType.INT8 and bool(zero_points is not None and any(zero_points))


def _leaves_its_dimensions(call: _Call) -> bool:
    """Whether the node is a STRIDED_SLICE by offsets outside of its input's dimensions.

    A slice by offsets that has masks, or offsets for too few dimensions, counts as well.
    """
    options = call.node.builtin_options
    if not isinstance(options, StridedSliceOptions) or not options.offset:
        return False
    if len(call.inputs) < 4 or options.end_mask or options.ellipsis_mask or options.new_axis_mask:
        return True
    x, begins, lengths, strides = (array for _, array in call.inputs)
    if len(begins) < x.ndim:
        return True
    with np.errstate(all="ignore"):
        starts = np.where(begins < 0, begins + x.shape, begins)
        stops = starts + lengths
    return bool(((starts < 0) | (stops < 0) | (stops > x.shape) | (strides < 0)).any())


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
    "arg-max-beside-nan": lambda call: (
        call.op in ("ARG_MAX", "ARG_MIN", "TFLite_Detection_PostProcess") and _has_nan(call)
    ),
    "constant-inputs-that-nodes-have-read": lambda call: call.reads_changed,
    "conv-3d-of-subnormal-numbers": lambda call: call.op == "CONV_3D" and _has_subnormals(call),
    "conv-weights-of-float16": lambda call: (
        call.op == "CONV_2D" and call.types()[1:2] == [TensorType.FLOAT16]
    ),
    "dequantize-with-a-scale-a-block": lambda call: (
        call.op == "DEQUANTIZE" and _has_blocks(call.inputs[0][0])
    ),
    "fully-connected-by-blocks-to-few-outputs": _has_few_outputs_by_blocks,
    "hard-swish-of-coarse-outputs": _has_coarse_outputs,
    "hard-swish-of-the-largest-floats": lambda call: (
        call.op == "HARD_SWISH" and any((x > 5.6e37).any() for x in call.floats())
    ),
    "hybrid-inputs-that-are-no-numbers": lambda call: _is_hybrid(call) and _is_infinite(call),
    "infinite-sums": lambda call: call.op in _SUMS and _is_infinite(call),
    "local-response-beside-nan": lambda call: (
        call.op == "LOCAL_RESPONSE_NORMALIZATION" and _is_infinite(call)
    ),
    "lengths-beyond-the-dimension": _leaves_its_dimensions,
    "matrix-diag-of-other-types": _is_matrix_of_another_type,
    "numeric-verify-of-a-constant": lambda call: (
        call.op == "NumericVerify" and call.begins_with_constant
    ),
    "one-hot-of-indices-beyond-int32": _has_indices_beyond_int32,
    "products-beyond-int32": _is_beyond_32_bits,
    "quantize-beyond-int32": _is_beyond_int32,
    "quantized-sums-of-nothing": _sums_nothing,
    "quotient-of-the-least-integer": _has_least_over_minus_1,
    "recurrent-clamps-of-nan": lambda call: _is_clamped(call) and _is_infinite(call),
    "rfft2d-of-width-1": lambda call: call.op == "RFFT2D" and bool(call.inputs[-1][1][-1:] == 1),
    "sparse-weights-of-int16": _has_sparse_weights_of_int16,
    "sums-of-much-larger-scales": _has_much_larger_scales,
    "unique-values-beside-nan": lambda call: call.op == "UNIQUE" and _has_nan(call),
    "zero-points-of-convolution-weights": _has_offset_weights,
}
"""Mapping from an entry's id to a function that returns whether it explains a node's call."""


def documented_values(case: SweepCase) -> str | None:
    """Return the id of the entry of ``docs/differences.md`` that explains other values of *case*.

    The result is None if no entry does.
    """
    return next((n for call in _calls(case) for n, holds in VALUES.items() if holds(call)), None)


def _calls(case: SweepCase) -> list[_Call]:
    """Return every node's calls in *case*, at each invoke, as the core computes them."""
    model = read_model(np.frombuffer(case.content, np.uint8))
    names, (graph, *_) = operator_names(case.content), model.subgraphs or ()
    tensors, nodes = graph.tensors or (), graph.operators or ()
    stored = [(model.buffers or ())[tensor.buffer].data for tensor in tensors]

    def is_changed(i: int, values: dict[int, NDArray[Any]]) -> bool:
        data = stored[i] if i in (graph.inputs or ()) else None
        return data is not None and i in values and data.tobytes() != values[i].tobytes()

    return [
        _Call(
            names[node.opcode_index],
            node,
            [(tensors[i], values[i]) for i in node.inputs or () if i in values],
            [tensors[i] for i in node.outputs or () if i >= 0],
            any(is_changed(i, values) for i in node.inputs or ()),
            any(stored[i] is not None for i in (node.inputs or ())[:1] if i >= 0),
        )
        for values in tensor_values(case)
        for node in nodes
    ]
