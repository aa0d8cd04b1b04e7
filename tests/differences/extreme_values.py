"""Checks of the section Extreme values."""

from __future__ import annotations

import numpy as np

from delegraph.schema import options as o
from delegraph.schema.enums import ActivationFunctionType, TensorType
from delegraph.testing import constant, fed, tensor
from delegraph.testing.recurrent_layers import state
from differences.difference import Sides, difference
from differences.operators import of_one

BYTES = np.arange(-8, 8, dtype=np.int8)
WORDS = BYTES.astype(np.int16)


def relu(scales: tuple[float, float], zero_point: int = 0) -> Sides:
    x = fed(BYTES, scale=scales[0], zero_point=zero_point)
    return of_one("RELU", [x], [tensor((), "INT8", scale=scales[1])], version=2)


@difference("scales-that-are-no-positive-numbers")
def _() -> list[Sides]:
    return [relu((-0.5, 0.5)), relu((np.inf, 0.5)), relu((0.5, np.nan))]


@difference("zero-points-beyond-their-type")
def _() -> Sides:
    return relu((0.5, 0.5), zero_point=300)


@difference("scales-too-far-apart")
def _() -> list[Sides]:
    x = fed(BYTES.reshape(4, 4), scale=1.0)
    weight = constant(np.ones((1, 4), np.int8), scale=1.0)
    y = tensor((), "INT8", scale=1e-30)
    return [
        of_one("SUB", [x, x], [y], o.SubOptions()),
        of_one("FULLY_CONNECTED", [x, weight], [y], o.FullyConnectedOptions(), version=4),
        of_one("BATCH_MATMUL", [x, x], [y], o.BatchMatMulOptions(), version=2),
    ]


@difference("sums-of-much-larger-scales")
def _() -> list[Sides]:
    y = tensor((), "INT16", scale=3e-5)
    a, b = fed(WORDS, scale=100.0), fed(WORDS[::-1].copy(), scale=100.0)
    return [
        of_one("ADD", [a, b], [y], o.AddOptions(), version=2),
        of_one("SUB", [a, b], [y], o.SubOptions(), version=2),
        of_one(
            "SUB", [fed(BYTES, scale=0.5)] * 2, [tensor((), "INT8", scale=1e-10)], o.SubOptions()
        ),
    ]


@difference("int16-logistic-of-extreme-scales")
def _() -> list[Sides]:
    y = tensor((), "INT16", scale=2.0**-15)
    return [
        of_one(op, [fed(WORDS, scale=scale)], [y], version=3)
        for op in ("LOGISTIC", "TANH")
        for scale in (100.0, 1e-20)
    ]


@difference("products-beyond-int32")
def _() -> list[Sides]:
    x = fed(np.full((1, 3, 3, 64), 32767, np.int16), scale=1e-3)
    weight = constant(np.full((1, 3, 3, 64), 127, np.int8), scale=[0.01], zero_point=[0])
    bias, y = constant(np.int64([0]), scale=[1e-5]), tensor((), "INT16", scale=1e-6)
    options = o.Conv2DOptions(stride_w=1, stride_h=1, quantized_bias_type=TensorType.INT64)
    small = fed(np.ones((1, 1, 1, 1), np.int8), scale=0.5, zero_point=0)
    large = constant(np.zeros((1, 1, 1, 1), np.int8), scale=[1.1e7], zero_point=[0])
    none, z = constant(np.int32([2000]), scale=[0.5]), tensor((), "INT8", scale=0.5, zero_point=0)
    return [
        of_one("CONV_2D", [x, weight, bias], [y], options),
        of_one("CONV_2D", [small, large, none], [z], o.Conv2DOptions(stride_w=1, stride_h=1)),
    ]


@difference("one-hot-of-indices-beyond-int32")
def _() -> Sides:
    depth, on, off = (constant(np.int32(value)) for value in (3, 1, 0))
    return of_one(
        "ONE_HOT", [fed(np.int64([2**32 + 1])), depth, on, off], ["INT32"], o.OneHotOptions()
    )


@difference("order-of-summation")
def _() -> Sides:
    x = fed(np.float32([[1e8, *[1.0] * 62, -1e8]]))
    return of_one("SUM", [x, constant(np.int32([1]))], ["FLOAT32"])


@difference("quantize-beyond-int32")
def _() -> list[Sides]:
    x = fed(np.float32([3e9, np.inf]))
    ones, axis = fed(np.ones((1, 4), np.int8), scale=1.0), constant(np.int32([1]))
    far = tensor((), "INT8", scale=2.0**-31)
    return [
        *(of_one("QUANTIZE", [x], [tensor((2,), type, scale=1.0)]) for type in ("INT8", "INT16")),
        of_one("SUM", [ones, axis], [far], o.ReducerOptions(), version=2),
    ]


@difference("arg-max-beside-nan")
def _() -> list[Sides]:
    x, first = fed(np.float32([np.nan, 1, 2, 0])), constant(np.int32(0))
    return [
        of_one("ARG_MAX", [x, first], ["INT32"], o.ArgMaxOptions(output_type=TensorType.INT32)),
        of_one("ARG_MIN", [x, first], ["INT32"], o.ArgMinOptions(output_type=TensorType.INT32)),
    ]


@difference("conv-3d-of-subnormal-numbers")
def _() -> list[Sides]:
    cube, options = (
        constant(np.ones((1,) * 5, np.float32)),
        o.Conv3DOptions(stride_d=1, stride_w=1, stride_h=1),
    )
    pairs = []
    for x, bias in ((0.0, 1e-39), (1e-39, 0.0)):
        volume = fed(np.full((1,) * 5, x, np.float32))
        inputs = [volume, cube, constant(np.float32([bias]))]
        ours, theirs = of_one("CONV_3D", inputs, ["FLOAT32"], options)
        pairs.append((ours[0][0] * np.float32(1e38), theirs[0][0] * np.float32(1e38)))
    return pairs


@difference("hard-swish-of-coarse-outputs")
def _() -> Sides:
    x, y = fed(BYTES, scale=0.1, zero_point=0), tensor((), "INT8", scale=100.0, zero_point=0)
    return of_one("HARD_SWISH", [x], [y])


@difference("hard-swish-of-the-largest-floats")
def _() -> Sides:
    return of_one("HARD_SWISH", [fed(np.full(4, 3e38, np.float32))], ["FLOAT32"])


@difference("infinite-sums")
def _() -> list[Sides]:
    x = np.float32([np.inf, 1, np.nan, -np.inf])
    flat, image, volume = (fed(x.reshape(shape)) for shape in (4, (1, 2, 2, 1), (1, 1, 2, 2, 1)))
    one, cube = (constant(np.ones((1,) * rank, np.float32)) for rank in (4, 5))
    bias, steps = constant(np.zeros(1, np.float32)), {"stride_w": 1, "stride_h": 1}
    shape, in_3d = constant(np.int32([1, 1, 2, 2, 1])), o.Conv3DOptions(**steps, stride_d=1)
    depthwise = o.DepthwiseConv2DOptions(**steps, depth_multiplier=1)
    transposed = [constant(np.int32([1, 2, 2, 1])), one, image]
    row, one_row = fed(x[:, None]), constant(np.ones((1, 1), np.float32))
    return [
        of_one("ADD_N", [flat, flat], ["FLOAT32"], o.AddNOptions()),
        of_one("FULLY_CONNECTED", [row, one_row, bias], ["FLOAT32"], o.FullyConnectedOptions()),
        of_one("CONV_2D", [image, one, bias], ["FLOAT32"], o.Conv2DOptions(**steps)),
        of_one("DEPTHWISE_CONV_2D", [image, one, bias], ["FLOAT32"], depthwise),
        of_one("TRANSPOSE_CONV", transposed, ["FLOAT32"], o.TransposeConvOptions(**steps)),
        of_one("CONV_3D", [volume, cube, bias], ["FLOAT32"], in_3d),
        of_one("CONV_3D_TRANSPOSE", [shape, cube, volume], ["FLOAT32"], in_3d),
    ]


@difference("hybrid-inputs-that-are-no-numbers")
def _() -> list[Sides]:
    weight = constant(np.int8([[127, 0], [0, 127]]), scale=0.01)
    one = constant(np.full((1, 1, 1, 1), 127, np.int8), scale=[0.01], zero_point=[0])
    infinite, nan = np.float32([[np.inf, 1]]), np.float32([[np.nan, 1]])
    image, bias = fed(infinite.reshape(1, 1, 2, 1)), constant(np.zeros(1, np.float32))
    asymmetric = o.FullyConnectedOptions(asymmetric_quantize_inputs=True)
    convolution = o.Conv2DOptions(stride_w=1, stride_h=1)
    return [
        of_one("FULLY_CONNECTED", [fed(infinite), weight], ["FLOAT32"], o.FullyConnectedOptions()),
        of_one("FULLY_CONNECTED", [fed(nan), weight], ["FLOAT32"], asymmetric),
        of_one("CONV_2D", [image, one, bias], ["FLOAT32"], convolution),
        of_one(
            "BATCH_MATMUL", [fed(infinite), weight], ["FLOAT32"], o.BatchMatMulOptions(), version=4
        ),
    ]


@difference("reference-softmax-of-fine-scales")
def _() -> list[Sides]:
    x, y = fed(BYTES[None], scale=1e-9), tensor((1, 16), "INT8", scale=0.0625, zero_point=127)
    z = tensor((1, 16), "INT8", scale=2.0**-8, zero_point=-128)
    return [
        of_one("SOFTMAX", [x], [z], o.SoftmaxOptions(beta=1.0), numerics="reference"),
        of_one("LOG_SOFTMAX", [x], [y], o.LogSoftmaxOptions(), numerics="reference"),
    ]


@difference("quotient-of-the-least-integer")
def _() -> list[Sides]:
    pairs = [(np.full(8, np.iinfo(t).min, t), np.full(8, -1, t)) for t in (np.int8, np.int16)]
    return [of_one("FLOOR_DIV", [fed(a), fed(b)], [a.dtype.name.upper()]) for a, b in pairs]


@difference("remainder-of-the-least-integer")
def _() -> Sides:
    return of_one("FLOOR_MOD", [fed(np.int32([-(2**31)])), fed(np.int32([-1]))], ["INT32"])


@difference("local-response-beside-nan")
def _() -> Sides:
    x = fed(np.float32([[[[np.nan, 2, 3]]]]))
    options = o.LocalResponseNormalizationOptions(bias=1.0, alpha=1.0, beta=0.5)
    return of_one("LOCAL_RESPONSE_NORMALIZATION", [x], ["FLOAT32"], options)


@difference("recurrent-clamps-of-nan")
def _() -> list[Sides]:
    one, bias = constant(np.ones((1, 1), np.float32)), constant(np.zeros(1, np.float32))
    inputs = [fed(np.float32([[np.nan]])), one, one, bias, state(1, 1)]
    clamp = {"fused_activation_function": ActivationFunctionType.RELU_N1_TO_1}
    relu = {"fused_activation_function": ActivationFunctionType.RELU}
    return [
        of_one("RNN", inputs, ["FLOAT32"], o.RNNOptions(**clamp), version=3),
        of_one("SVDF", inputs, ["FLOAT32"], o.SVDFOptions(rank=1, **relu), version=3),
    ]


@difference("unique-values-beside-nan")
def _() -> list[Sides]:
    values = np.float32([2, np.nan, 1]), np.float32([np.nan, 2, 1])
    return [of_one("UNIQUE", [fed(x)], ["FLOAT32", "INT32"], o.UniqueOptions()) for x in values]


@difference("activation-bounds-beyond-int32")
def _() -> Sides:
    x, y = fed(np.int16([[[[1]]]]), scale=0.5), tensor((), "INT16", scale=1e-11)
    relu6 = ActivationFunctionType.RELU6
    window = {"filter_width": 1, "filter_height": 1, "stride_w": 1, "stride_h": 1}
    options = o.Pool2DOptions(**window, fused_activation_function=relu6)
    return of_one("AVERAGE_POOL_2D", [x], [y], options)
