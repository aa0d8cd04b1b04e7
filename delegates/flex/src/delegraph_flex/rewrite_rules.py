"""Rules that express each builtin operator by TensorFlow's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delegraph import ActivationFunctionType, TensorType
from delegraph.schema.enums import FullyConnectedOptionsWeightsFormat, MirrorPadMode
from delegraph_flex.data_types import DataType
from delegraph_flex.rewrite import Rewrite

Rule = Callable[[Rewrite], None]
"""Function that adds the Flex operators which replace a builtin operator."""

_SAME_NAME = (
    "ABS", "ATAN2", "CEIL", "COS", "ELU", "EQUAL", "EXP", "FLOOR", "GREATER", "GREATER_EQUAL",
    "LESS", "LESS_EQUAL", "LOG", "LOG_SOFTMAX", "MAXIMUM", "MINIMUM", "NEG", "NOT_EQUAL", "POW",
    "RELU", "RELU6", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT", "SQUARE", "SQUARED_DIFFERENCE",
    "TANH", "ZEROS_LIKE",
)  # fmt: skip
"""Builtin operators with TensorFlow's name in other letters, equal inputs, only attribute ``T``."""

_WITH_TYPE_OF_SECOND = {
    "EXPAND_DIMS": ("ExpandDims", "Tdim"),
    "PAD": ("Pad", "Tpaddings"),
    "PADV2": ("PadV2", "Tpaddings"),
    "TRANSPOSE": ("Transpose", "Tperm"),
}
"""TensorFlow's operators with equal inputs, and their attribute for the type of input 1."""

_ARITHMETIC = {"ADD": "AddV2", "DIV": "RealDiv", "MUL": "Mul", "SUB": "Sub"}

_REDUCTIONS = {
    "MEAN": "Mean",
    "REDUCE_MAX": "Max",
    "REDUCE_MIN": "Min",
    "REDUCE_PROD": "Prod",
    "SUM": "Sum",
}

_ACTIVATIONS = {
    ActivationFunctionType.RELU: "Relu",
    ActivationFunctionType.RELU6: "Relu6",
    ActivationFunctionType.RELU_N1_TO_1: "ClipByValue",
}
"""Fused activations that builtin kernels apply; in arithmetic operators they ignore others."""

_WRAPPING = (TensorType.INT32, TensorType.INT64)
"""Integer types whose sums wrap in both runtimes; builtin kernels saturate narrower types."""

RULES: dict[str, Rule] = {}
"""Mapping from a builtin operator's name to its rule."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Return the decorator that registers a function as the rule of builtin operators *names*."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def before_activation(rewrite: Rewrite) -> int:
    """Return the index of the tensor for results: the output, or the input of the fused activation.

    This function must be called once, before any operator is added, and :func:`activation` last.
    """
    fused = rewrite.option("fused_activation_function", ActivationFunctionType.NONE)
    known = (ActivationFunctionType.NONE, *_ACTIVATIONS)
    rewrite.require(fused in known, f"fused activation {ActivationFunctionType(fused).name}")
    has_one = fused != ActivationFunctionType.NONE
    return rewrite.same_as_output() if has_one else rewrite.operator.outputs[0]


def activation(rewrite: Rewrite, before: int) -> None:
    """Add the fused activation of *rewrite* with input tensor *before*, if there is one."""
    if before != rewrite.operator.outputs[0]:
        op = _ACTIVATIONS[rewrite.option("fused_activation_function")]
        type = DataType.of(rewrite.output.type)
        limits = [-1, 1] if op == "ClipByValue" else []
        bounds = [rewrite.constant(np.array(limit, type.dtype)) for limit in limits]
        rewrite.emit(op, [before, *bounds], T=type)


@rule(*_SAME_NAME, "LOGISTIC")
def _same(rewrite: Rewrite) -> None:
    name = rewrite.operator.name
    is_ordered = name in ("MAXIMUM", "MINIMUM")
    rewrite.require(not is_ordered or rewrite.type.dtype.kind != "c", "no order of complex numbers")
    rewrite.emit("Sigmoid" if name == "LOGISTIC" else name.title().replace("_", ""), T=rewrite.type)


@rule(*_WITH_TYPE_OF_SECOND)
def _with_type_of_second(rewrite: Rewrite) -> None:
    op, attribute = _WITH_TYPE_OF_SECOND[rewrite.operator.name]
    type: dict[str, Any] = {attribute: DataType.of(rewrite.inputs[1].type)}
    rewrite.emit(op, T=rewrite.type, **type)


@rule(*_ARITHMETIC)
def _arithmetic(rewrite: Rewrite) -> None:
    op, type = _ARITHMETIC[rewrite.operator.name], rewrite.output.type
    is_integer = np.issubdtype(rewrite.type.dtype, np.integer)
    rewrite.require(not is_integer or type in _WRAPPING, f"{type.name}, which saturates")
    if is_integer and op == "RealDiv":
        op = "Div"
    result = before_activation(rewrite)
    rewrite.emit(op, outputs=[result], T=rewrite.type)
    activation(rewrite, result)


@rule(*_REDUCTIONS)
def _reduction(rewrite: Rewrite) -> None:
    axes = rewrite.value(rewrite.inputs[1], "axes").reshape(-1)
    rewrite.require(len(rewrite.inputs[0].shape) > 0, "an input without dimensions")
    rewrite.require(rewrite.type != DataType.BOOL, "BOOL, which TensorFlow does not add nor order")
    axes = axes % len(rewrite.inputs[0].shape)
    rewrite.require(len(set(axes.tolist())) == len(axes), "an axis that occurs twice")
    rewrite.emit(
        _REDUCTIONS[rewrite.operator.name],
        T=rewrite.type,
        Tidx=DataType.of(rewrite.inputs[1].type),
        keep_dims=bool(rewrite.option("keep_dims", False)),
    )


@rule("SOFTMAX")
def _softmax(rewrite: Rewrite) -> None:
    beta, tensor = rewrite.option("beta", 1.0), rewrite.operator.inputs[0]
    if beta != 1.0:
        scaled = rewrite.same_as_output()
        factor = rewrite.constant(np.asarray(beta, rewrite.type.dtype))
        rewrite.emit("Mul", [tensor, factor], [scaled], T=rewrite.type)
        tensor = scaled
    rewrite.emit("Softmax", [tensor], T=rewrite.type)


@rule("RESHAPE")
def _reshape(rewrite: Rewrite) -> None:
    if len(rewrite.inputs) > 1:
        shape, type = rewrite.operator.inputs[1], DataType.of(rewrite.inputs[1].type)
    else:
        shape = rewrite.constant(np.array(rewrite.option("new_shape", ()), np.int32))
        type = DataType.INT32
    rewrite.emit("Reshape", [rewrite.operator.inputs[0], shape], T=rewrite.type, Tshape=type)


@rule("CONCATENATION")
def _concatenation(rewrite: Rewrite) -> None:
    result, count = before_activation(rewrite), len(rewrite.operator.inputs)
    if count == 1:  # TensorFlow's operator takes two or more
        rewrite.emit("Identity", outputs=[result], T=rewrite.type)
        activation(rewrite, result)
        return
    axis = rewrite.constant(np.array(rewrite.option("axis", 0), np.int32))
    inputs = [*rewrite.operator.inputs, axis]
    rewrite.emit("ConcatV2", inputs, [result], T=rewrite.type, N=count, Tidx=DataType.INT32)
    activation(rewrite, result)


@rule("PACK")
def _pack(rewrite: Rewrite) -> None:
    rewrite.emit(
        "Pack", T=rewrite.type, N=len(rewrite.operator.inputs), axis=int(rewrite.option("axis", 0))
    )


@rule("MIRROR_PAD")
def _mirror_pad(rewrite: Rewrite) -> None:
    mode = MirrorPadMode(rewrite.option("mode", MirrorPadMode.REFLECT)).name.encode()
    rewrite.emit(
        "MirrorPad", T=rewrite.type, Tpaddings=DataType.of(rewrite.inputs[1].type), mode=mode
    )


@rule("CAST")
def _cast(rewrite: Rewrite) -> None:
    target = DataType.of(rewrite.output.type)
    from_float = rewrite.type.dtype.kind in "fcV"  # bfloat16 is of kind V
    is_narrow = target.dtype.kind in "iu" and rewrite.output.type not in _WRAPPING
    rewrite.require(not (from_float and is_narrow), f"floats to {target.name}, which saturates")
    rewrite.emit(
        "Cast",
        SrcT=rewrite.type,
        DstT=target,
        Truncate=False,
    )


@rule("BATCH_MATMUL")
def _batch_matmul(rewrite: Rewrite) -> None:
    rewrite.emit(
        "BatchMatMulV2",
        T=rewrite.type,
        adj_x=bool(rewrite.option("adj_x", False)),
        adj_y=bool(rewrite.option("adj_y", False)),
    )


@rule("FULLY_CONNECTED")
def _fully_connected(rewrite: Rewrite) -> None:
    x, weights, *bias = rewrite.inputs
    default = FullyConnectedOptionsWeightsFormat.DEFAULT
    rewrite.require(rewrite.option("weights_format", default) == default, "shuffled weights")
    rewrite.require(weights.type == x.type, f"weights are {weights.type.name}")
    rewrite.require(len(rewrite.output.shape) == 2, "an output that is no matrix")
    result, tensor = before_activation(rewrite), x.index
    if len(x.shape) != 2:
        rows = rewrite.constant(np.array([-1, weights.shape[1]], np.int32))
        tensor = rewrite.temporary(
            (rewrite.output.shape[0], weights.shape[1]), x.type, rewrite.output
        )
        rewrite.emit("Reshape", [x.index, rows], [tensor], T=rewrite.type, Tshape=DataType.INT32)
    product = rewrite.same_as_output() if bias else result
    rewrite.emit(
        "MatMul",
        [tensor, weights.index],
        [product],
        T=rewrite.type,
        transpose_a=False,
        transpose_b=True,
    )
    _bias(rewrite, product, [tensor.index for tensor in bias], result)
    activation(rewrite, result)


@rule("CONV_2D")
def _conv_2d(rewrite: Rewrite) -> None:
    x, weights, *bias = rewrite.inputs
    _require_plain_convolution(rewrite)
    rewrite.require(weights.shape[3] == x.shape[3], "its channels are in groups")
    values = rewrite.value(weights, "weights").transpose(1, 2, 3, 0)
    _convolution(rewrite, "Conv2D", rewrite.constant(np.ascontiguousarray(values)), bool(bias))


@rule("DEPTHWISE_CONV_2D")
def _depthwise_conv_2d(rewrite: Rewrite) -> None:
    x, weights, *bias = rewrite.inputs
    _require_plain_convolution(rewrite)
    stride_h, stride_w = rewrite.option("stride_h"), rewrite.option("stride_w")
    rewrite.require(stride_h == stride_w, f"strides {stride_h} and {stride_w}, which must be equal")
    dilations = (rewrite.option("dilation_h_factor", 1), rewrite.option("dilation_w_factor", 1))
    rewrite.require(dilations == (1, 1), f"dilations {dilations}, which only GPUs have")
    values = rewrite.value(weights, "weights")
    shape = (*weights.shape[1:3], x.shape[3], weights.shape[3] // max(x.shape[3], 1))
    op, kernel = "DepthwiseConv2dNative", rewrite.constant(values.reshape(shape).copy())
    _convolution(rewrite, op, kernel, bool(bias))


def _require_plain_convolution(rewrite: Rewrite) -> None:
    types = {tensor.type for tensor in rewrite.inputs}
    rewrite.require(types == {TensorType.FLOAT32}, "an operand that is not FLOAT32")
    rewrite.require(len(rewrite.inputs[0].shape) == 4, "an input without four dimensions")


def _convolution(rewrite: Rewrite, op: str, kernel: int, has_bias: bool) -> None:
    result = before_activation(rewrite)
    product = rewrite.same_as_output() if has_bias else result
    dilations = (rewrite.option("dilation_h_factor", 1), rewrite.option("dilation_w_factor", 1))
    extra: dict[str, bool] = {"use_cudnn_on_gpu": True} if op == "Conv2D" else {}
    rewrite.emit(
        op,
        [rewrite.operator.inputs[0], kernel],
        [product],
        T=rewrite.type,
        strides=[1, rewrite.option("stride_h"), rewrite.option("stride_w"), 1],
        padding=rewrite.option("padding").name.encode(),
        explicit_paddings=[],
        data_format=b"NHWC",
        dilations=[1, *dilations, 1],
        **extra,
    )
    _bias(rewrite, product, [i for i in rewrite.operator.inputs[2:] if i >= 0], result)
    activation(rewrite, result)


def _bias(rewrite: Rewrite, product: int, bias: list[int], result: int) -> None:
    """Add the addition of a bias to tensor *product*, if the operator has a bias.

    The sum is the tensor *result*; *bias* has the index of the bias, or is empty.
    """
    if bias:
        rewrite.emit("BiasAdd", [product, *bias], [result], T=rewrite.type, data_format=b"NHWC")


@rule("AVERAGE_POOL_2D", "MAX_POOL_2D")
def _pool(rewrite: Rewrite) -> None:
    op = {"AVERAGE_POOL_2D": "AvgPool", "MAX_POOL_2D": "MaxPool"}[rewrite.operator.name]
    rewrite.require(0 not in rewrite.output.shape, "a window that is larger than the input")
    result = before_activation(rewrite)
    extra: dict[str, list[int]] = {"explicit_paddings": []} if op == "MaxPool" else {}
    rewrite.emit(
        op,
        outputs=[result],
        T=rewrite.type,
        ksize=[1, rewrite.option("filter_height"), rewrite.option("filter_width"), 1],
        strides=[1, rewrite.option("stride_h"), rewrite.option("stride_w"), 1],
        padding=rewrite.option("padding").name.encode(),
        data_format=b"NHWC",
        **extra,
    )
    activation(rewrite, result)
