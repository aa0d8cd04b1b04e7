"""FULLY_CONNECTED: a matrix product of input rows and weights.

Code that only integer nodes need is imported on demand.

Source:
    PrepareImpl, EvalQuantized, EvalHybridDense, EvalBlockwise4Bit and EvalFloat,
    tflite/kernels/fully_connected.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.activation import apply_activation, quantized_activation_range
from delegraph.arithmetic.weights import (
    at_first_use,
    bias_clamp,
    bias_or_zeros,
    dense_values,
    once_if_constant,
)
from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import (
    options_or_defaults,
    require_counts,
    require_type,
    tensor_types,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    optional_input,
    output_tensor,
)
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import FullyConnectedOptionsWeightsFormat as WeightsFormat
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FILTER_TYPES = {
    TensorType.FLOAT32: tensor_types("FLOAT32 UINT8 INT8 INT4 INT2"),
    TensorType.UINT8: (TensorType.UINT8,),
    TensorType.INT8: (TensorType.INT8, TensorType.INT4, TensorType.INT2),
    TensorType.INT16: (TensorType.INT8, TensorType.INT4, TensorType.INT2, TensorType.INT16),
}
_OUTPUT_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32,),
    TensorType.UINT8: (TensorType.UINT8, TensorType.INT16),
    TensorType.INT8: (TensorType.INT8,),
    TensorType.INT16: (TensorType.INT16,),
}
_CLAMPS = (Act.NONE, Act.RELU, Act.RELU_N1_TO_1, Act.RELU6)
_TILE = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class _FullyConnected:
    """Tensors and options of a FULLY_CONNECTED node that has been checked."""

    x: Tensor
    weight: Tensor  # [O, K]
    bias: Tensor | None  # [O]
    y: Tensor
    rows: int
    options: Any

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    @property
    def depth(self) -> int:
        return self.weight.shape[1]

    def matrices(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return input rows, ``[rows, K]``, and output rows, ``[rows, O]``."""
        x = self.x.data.reshape(-1)[: self.rows * self.depth]
        return x.reshape(self.rows, self.depth), self.y.data.reshape(self.rows, self.outputs)


@kernel("FULLY_CONNECTED", uses_blas=True, sparse_inputs=(1,))
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare FULLY_CONNECTED: rows of input times weights, plus bias.

    Supported are float nodes; quantized nodes (uint8; int8 and int16 with weights of 8, 4, 2 or 16
    bits, per tensor or channel); and hybrid nodes, also with scales per block. Weights may be
    sparse, or uint8 in the order into which the converter shuffled them.

    Raises:
        OperatorError: the official kernel rejects the types, the shapes or the quantization, too.
    """
    is_shuffled = _is_shuffled(node)
    require_counts(node, (2, 3), 2 if is_shuffled else 1)  # input, weights and maybe bias
    fc = _check(context, node)
    context.resize_tensor(fc.y, _output_shape(fc))
    if is_shuffled:
        return _shuffled(context, fc, output_tensor(context, node, 1))
    if fc.x.type != TensorType.FLOAT32:
        return _quantized(context, fc)
    if fc.weight.type == TensorType.FLOAT32:
        return _float(fc)
    if fc.weight.quantization is not None and fc.weight.quantization.block_size:
        return _blockwise(context, fc)
    return _hybrid(context, fc)


def _check(context: OpContext, node: Node) -> _FullyConnected:
    x, weight = input_tensor(context, node, 0), input_tensor(context, node, 1)
    bias, y = optional_input(context, node, 2), output_tensor(context, node)
    options = options_or_defaults(node, "FULLY_CONNECTED")
    require_type(x, tuple(_FILTER_TYPES))
    require_type(weight, _FILTER_TYPES[x.type])
    require_type(y, _OUTPUT_TYPES[x.type])
    if len(weight.shape) != 2:
        raise OperatorError(f"weights are {list(weight.shape)}, expected 2 dimensions")
    if weight.is_packed:
        from delegraph.arithmetic.convolution_scale import check_symmetric

        check_symmetric(weight)
    if bias is not None:
        _check_bias(x, weight, bias)
    is_hybrid = x.type == TensorType.FLOAT32 and weight.type != TensorType.FLOAT32
    if not is_hybrid and options.fused_activation_function not in _CLAMPS:
        name = options.fused_activation_function.name
        raise OperatorError(f"fused activation is {name}, expected a clamp")
    elements, depth = math.prod(x.shape), weight.shape[1]
    rows = elements // depth if depth else math.prod(x.shape[:-1])
    return _FullyConnected(x, weight, bias, y, rows, options)


def _check_bias(x: Tensor, weight: Tensor, bias: Tensor) -> None:
    if x.type == TensorType.FLOAT32:
        require_type(bias, (TensorType.FLOAT32,))
    else:
        require_type(bias, (TensorType.INT32, TensorType.INT64))
    if math.prod(bias.shape) != weight.shape[0]:
        raise OperatorError(f"bias is {list(bias.shape)}, expected [{weight.shape[0]}]")


def _output_shape(fc: _FullyConnected) -> tuple[int, ...]:
    if not fc.options.keep_num_dims:
        return fc.rows, fc.outputs
    if not fc.x.shape or fc.x.shape[-1] != fc.depth:
        raise OperatorError(f"input is {list(fc.x.shape)}, expected {fc.depth} as last dimension")
    return (*fc.x.shape[:-1], fc.outputs)


def _is_shuffled(node: Node) -> bool:
    weights_format = options_or_defaults(node, "FULLY_CONNECTED").weights_format
    if weights_format not in tuple(WeightsFormat):
        raise OperatorError(f"weights format is {weights_format}, expected 0 or 1")
    return bool(weights_format == WeightsFormat.SHUFFLED4x16INT8)


def _shuffled(context: OpContext, fc: _FullyConnected, workspace: Tensor) -> Eval:
    """Return the evaluation for weights stored as consecutive blocks of 4 rows and 16 columns.

    Zero points are always 128; zero points in the file are ignored. The second output is a
    workspace for the reordered input, as in the official kernel; if the workspace is too small, it
    gets the input's size. The builtin kernel ignores the fused activation.

    Source:
        EvalShuffledQuantized, tflite/kernels/fully_connected.cc; ShuffledFullyConnected,
        internal/{optimized/optimized_ops,reference/fully_connected}.h.
    """
    from delegraph.arithmetic.convolution_scale import per_tensor_multiplier
    from delegraph.arithmetic.fixed_point import (
        multiply_by_quantized_multiplier,
        quantize_multiplier,
    )

    require_type(fc.x, (TensorType.UINT8,))
    require_type(fc.y, (TensorType.INT16,))
    require_type(workspace, (TensorType.UINT8,))
    if fc.weight.sparsity is not None:
        raise OperatorError("shuffled weights are sparse, expected dense ones")
    if fc.rows not in (1, 4) or fc.outputs % 4 or fc.depth % 16 or not fc.depth:
        raise OperatorError(
            f"{fc.rows} rows by shuffled weights {list(fc.weight.shape)}, expected 1 or 4 rows by "
            "multiples of 4 and 16"
        )
    elements = fc.rows * fc.depth
    if math.prod(workspace.shape) < elements:
        context.resize_tensor(workspace, (fc.rows, fc.depth))
    multiplier, shift = quantize_multiplier(per_tensor_multiplier(fc.x, fc.weight, fc.bias, fc.y))
    clamp = Act.NONE if context.numerics == "builtin" else fc.options.fused_activation_function
    low, high = quantized_activation_range(clamp, fc.y)
    blocks = (fc.outputs // 4, fc.depth // 16, 4, 16)

    def in_order() -> NDArray[Any]:
        rows = fc.weight.data.view(np.int8).reshape(blocks).swapaxes(1, 2)
        return np.asarray(rows.reshape(fc.outputs, fc.depth).T, np.float64)  # sums are exact

    matrix = once_if_constant(in_order, fc.weight)

    def evaluate() -> None:
        x, y = fc.matrices()
        signed = x ^ np.uint8(128)
        reordered = signed.reshape(fc.rows, -1, 16).swapaxes(0, 1)
        workspace.data.reshape(-1)[:elements] = reordered.reshape(-1)
        sums = np.matmul(signed.view(np.int8).astype(np.float64), matrix()).astype(np.int64)
        sums += bias_or_zeros(fc.bias, fc.outputs, np.int32)
        scaled = multiply_by_quantized_multiplier(sums, multiplier, shift)
        np.clip(scaled, low, high, out=y, casting="unsafe")

    return evaluate


def _float(fc: _FullyConnected) -> Eval:
    matrix = once_if_constant(lambda: dense_values(fc.weight).T, fc.weight)
    add_bias = bias_clamp(fc.bias, fc.outputs, fc.options.fused_activation_function)

    def evaluate() -> None:
        x, y = fc.matrices()
        np.matmul(x, matrix(), out=y)
        add_bias()(y)

    return evaluate


def _quantized(context: OpContext, fc: _FullyConnected) -> Eval:
    from delegraph.arithmetic.convolution_scale import fully_connected_scaling
    from delegraph.arithmetic.quantized_product import QuantizedProduct

    product = QuantizedProduct(
        context,
        fc.x,
        fc.weight,
        fc.bias,
        fc.y,
        fully_connected_scaling(
            fc.x, fc.weight, fc.bias, fc.y, fc.options.quantized_bias_type, context.numerics
        ),
        fc.options.fused_activation_function,
    )
    step = max(min(_TILE // max(fc.outputs, fc.depth, 1), fc.rows), 1)
    inputs = context.scratch((step, fc.depth), product.dtype)
    sums = context.scratch((step, fc.outputs), product.dtype)

    def evaluate() -> None:
        (matrix,), requantize = product.current()
        x, y = fc.matrices()
        for start in range(0, fc.rows, step):
            rows = x[start : start + step]
            part, acc = inputs.data[: len(rows)], sums.data[: len(rows)]
            np.copyto(part, rows)
            np.matmul(part, matrix, out=acc)
            requantize(acc, y[start : start + step])

    return evaluate


def _hybrid(context: OpContext, fc: _FullyConnected) -> Eval:
    from delegraph.arithmetic.convolution_scale import affine_quantization
    from delegraph.arithmetic.hybrid import HybridProduct, rows_have_zero_points
    from delegraph.arithmetic.quantize_rows import quantize_rows

    weight_scales = affine_quantization(fc.weight, "the weights").scales.astype(np.float32)
    if len(weight_scales) not in (1, fc.outputs):
        raise OperatorError(f"{len(weight_scales)} scales, expected one or {fc.outputs}")
    weight_scales = np.broadcast_to(weight_scales, (fc.outputs,))
    activation = fc.options.fused_activation_function
    is_asymmetric = bool(fc.options.asymmetric_quantize_inputs)
    if context.numerics == "builtin":
        is_asymmetric = rows_have_zero_points(fc.weight, asked=is_asymmetric)
    product = HybridProduct(fc.weight, fc.bias, weight_scales, Act.NONE)
    inputs = context.scratch((fc.rows, fc.depth), product.dtype)
    sums = context.scratch((fc.rows, fc.outputs), product.dtype)

    def evaluate() -> None:
        weights, (x, y), acc = product.current(), fc.matrices(), sums.data
        quantized, scales, zero_points = quantize_rows(x, asymmetric=is_asymmetric)
        np.copyto(inputs.data, quantized)
        np.matmul(inputs.data, weights.matrices[0], out=acc)
        if is_asymmetric:
            acc -= np.outer(zero_points, weights.sums)
        np.multiply(acc, np.outer(scales, weights.scales), out=y, casting="same_kind")
        y += weights.bias
        apply_activation(activation, y)

    return evaluate


def _blockwise(context: OpContext, fc: _FullyConnected) -> Eval:
    """Return the evaluation for weights with one scale per block of a row.

    Scales differ within a sum, so integers must be scaled before they are added. The official
    kernel ignores the fused activation.
    """
    from delegraph.arithmetic.convolution_scale import affine_quantization
    from delegraph.arithmetic.quantize_rows import quantize_rows

    quantization = affine_quantization(fc.weight, "the weights")
    blocks = fc.depth // quantization.block_size
    if len(quantization.scales) != fc.outputs * blocks:
        raise OperatorError(
            f"{len(quantization.scales)} scales, expected {blocks} blocks of {fc.outputs} rows"
        )
    block_scales = quantization.scales.astype(np.float32).reshape(fc.outputs, blocks, 1)

    def real_weights() -> NDArray[np.float32]:
        integers = dense_values(fc.weight).reshape(fc.outputs, blocks, -1)
        return (integers * block_scales).reshape(fc.outputs, fc.depth).T

    matrix = at_first_use(real_weights, fc.weight)
    centred = context.scratch((fc.rows, fc.depth), np.float32)

    def evaluate() -> None:
        x, y = fc.matrices()
        quantized, scales, zero_points = quantize_rows(x, asymmetric=True)
        np.subtract(quantized, zero_points[:, np.newaxis], out=centred.data, casting="unsafe")
        np.matmul(centred.data, matrix(), out=y)
        y *= scales[:, np.newaxis]
        y += bias_or_zeros(fc.bias, fc.outputs, np.float32)

    return evaluate
