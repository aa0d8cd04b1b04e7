"""Both official kernel sets: where they differ, and that each profile follows its own."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from delegraph import Interpreter, OpResolverType, TensorType
from delegraph.schema import options as o
from delegraph.schema.enums import Padding
from delegraph.testing import DIFFERENCES, constant, delegraph_outputs, one_op_model, tensor
from delegraph.testing.convolution_operands import (
    INT4_CHANNELS,
    INT8,
    INT8_CHANNELS,
    INT16_SHORT_BIAS,
    UINT8,
    Kind,
    operands,
)
from support.official import official_outputs


class Case(NamedTuple):
    """A model and what it is fed."""

    model: bytes
    arrays: list[np.ndarray[Any, Any]]


Make = Callable[[], Case]

INT8_KINDS = (INT8, INT8_CHANNELS, INT4_CHANNELS)
SOFTMAX = o.SoftmaxOptions(beta=1.0)


def values(type: str, shape: tuple[int, ...]) -> Any:
    """Random integers of the whole range, or floats of which many are between two steps of 1/4."""
    rng = np.random.default_rng(7)
    if type == "FLOAT32":
        return (rng.normal(0, 24, shape).round() / 8).astype(np.float32)
    info = np.iinfo(type.lower())
    return rng.integers(info.min, info.max, shape, type.lower(), endpoint=True)


def unary(
    op: str, x_type: str, y_type: str, x: Any, y: Any, options: Any = None, **model: Any
) -> Case:
    """Rows of five elements; *x* and *y* are scale and zero point."""
    shape = (20_000, 5)
    tensors = [
        tensor(shape, type, scale=scale, zero_point=zero_point)
        for type, (scale, zero_point) in ((x_type, x), (y_type, y))
    ]
    return Case(
        one_op_model(op, tensors[:1], tensors[1:], options, **model), [values(x_type, shape)]
    )


def every_pair(
    op: str, type: str, scales: Any, zero_points: Any, options: Any, *, columns: int
) -> Case:
    """All pairs of 8-bit values, many of int16; the second operand has so many *columns*."""
    if type == "INT16":
        a, b = values(type, (2, 1000, 1000))
    else:
        bytes_ = np.arange(256, dtype=np.uint8).view(type.lower())
        a, b = np.meshgrid(bytes_, bytes_)
    operands_ = [a, b[:, :columns]]
    *inputs, y = (
        tensor(x.shape, type, scale=scale, zero_point=zero_point)
        for x, scale, zero_point in zip([*operands_, a], scales, zero_points, strict=True)
    )
    return Case(one_op_model(op, inputs, [y], options, version=2), operands_)


def conv(op: str, kind: Kind) -> Case:
    options: Any = o.Conv2DOptions(stride_h=1, stride_w=1)
    shape, axis = (19, 3, 3, 16), 0
    if op == "DEPTHWISE_CONV_2D":
        options = o.DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1)
        shape, axis = (1, 3, 3, 16), 3
    found = operands(kind, (2, 12, 12, 16), shape, channel_axis=axis)
    model = one_op_model(
        op, [found.x.definition, found.weight, found.bias], [found.y], options, version=3
    )
    return Case(model, [found.x.array])


def transpose_conv(kind: Kind) -> Case:
    found = operands(kind, (2, 12, 12, 16), (19, 3, 3, 16), seed=4)
    size = constant(np.array([2, 14, 14, 19], np.int32))
    options = o.TransposeConvOptions(stride_h=1, stride_w=1, padding=Padding.VALID)
    inputs = [size, found.weight, found.x.definition, found.bias]
    model = one_op_model("TRANSPOSE_CONV", inputs, [found.y], options, version=3)
    return Case(model, [found.x.array])


def fully_connected(kind: Kind) -> Case:
    found = operands(kind, (300, 40), (50, 40), seed=4)
    options = o.FullyConnectedOptions(quantized_bias_type=TensorType[kind.bias])
    inputs = [found.x.definition, found.weight, found.bias]
    model = one_op_model("FULLY_CONNECTED", inputs, [found.y], options, version=11)
    return Case(model, [found.x.array])


def reduction(op: str, type: str, axes: tuple[int, ...], x: Any, y: Any) -> Case:
    """A reduction of ``[6, 9, 7, 20]``, dimensions kept; *x* and *y* are scale and zero point."""
    array = values(type, (6, 9, 7, 20))
    inputs = [
        tensor(array.shape, type, scale=x[0], zero_point=x[1]),
        constant(np.array(axes, np.int32)),
    ]
    output = tensor((), type, scale=y[0], zero_point=y[1])
    return Case(
        one_op_model(op, inputs, [output], o.ReducerOptions(keep_dims=True), version=2), [array]
    )


def resize() -> Case:
    array = values("UINT8", (1, 40, 30, 3))
    inputs = [tensor(array.shape, "UINT8", scale=1.0), constant(np.array([48, 36], np.int32))]
    y = tensor((), "UINT8", scale=1.0)
    return Case(one_op_model("RESIZE_BILINEAR", inputs, [y], o.ResizeBilinearOptions()), [array])


def lrn() -> Case:
    options = o.LocalResponseNormalizationOptions(radius=2, bias=1.0, alpha=0.5, beta=0.5)
    x, y = tensor((2, 3, 4, 9)), tensor((2, 3, 4, 9))
    model = one_op_model("LOCAL_RESPONSE_NORMALIZATION", [x], [y], options)
    return Case(model, [values("FLOAT32", x.shape)])


NONE = (None, 0)
# ADD differs in one pair of operands or two, so scales and zero points are chosen with care.
LATE = (0.6324053406715393, 0.02874431014060974, 0.018305761739611626), (155, 193, 215)
LATE_COLUMN = (0.523102879524231, 0.08236576616764069, 0.04584278166294098), (182, 237, 102)
EARLY_COLUMN = (0.04517803341150284, 0.12932147085666656, 0.12902016937732697), (84, -44, 91)
EARLY = (0.04727237671613693, 0.34161460399627686, 0.7089012265205383), (0, 0, 0)
BEYOND_UINT8 = (0.2, 0.3, 0.01), (100, 200, 50)
BEYOND_INT8 = (0.2, 0.3, 0.01), (10, -90, 50)

CASES: dict[tuple[str, str], list[Make]] = {
    ("ADD", "UINT8"): [
        partial(every_pair, "ADD", "UINT8", *LATE, o.AddOptions(), columns=256),
        partial(every_pair, "ADD", "UINT8", *LATE_COLUMN, o.AddOptions(), columns=1),
    ],
    ("ADD", "INT8"): [partial(every_pair, "ADD", "INT8", *EARLY_COLUMN, o.AddOptions(), columns=1)],
    ("ADD", "INT16"): [partial(every_pair, "ADD", "INT16", *EARLY, o.AddOptions(), columns=1000)],
    ("MUL", "UINT8"): [
        partial(every_pair, "MUL", "UINT8", *BEYOND_UINT8, o.MulOptions(), columns=columns)
        for columns in (1, 256)
    ],
    ("MUL", "INT8"): [
        partial(every_pair, "MUL", "INT8", *BEYOND_INT8, o.MulOptions(), columns=256)
    ],
    ("CONV_2D", "UINT8"): [partial(conv, "CONV_2D", UINT8)],
    ("CONV_2D", "INT8"): [partial(conv, "CONV_2D", kind) for kind in INT8_KINDS],
    ("DEPTHWISE_CONV_2D", "INT8"): [
        partial(conv, "DEPTHWISE_CONV_2D", kind) for kind in INT8_KINDS
    ],
    ("TRANSPOSE_CONV", "UINT8"): [partial(transpose_conv, UINT8)],
    ("TRANSPOSE_CONV", "INT8"): [partial(transpose_conv, kind) for kind in INT8_KINDS[:2]],
    ("FULLY_CONNECTED", "UINT8"): [partial(fully_connected, UINT8)],
    ("FULLY_CONNECTED", "INT8"): [partial(fully_connected, kind) for kind in INT8_KINDS],
    ("FULLY_CONNECTED", "INT16"): [partial(fully_connected, INT16_SHORT_BIAS)],
    ("SOFTMAX", "UINT8"): [
        partial(unary, "SOFTMAX", "UINT8", "UINT8", (0.1, 3), (1 / 256, 0), SOFTMAX, version=2)
    ],
    ("SOFTMAX", "INT8"): [
        partial(unary, "SOFTMAX", "INT8", "INT8", (0.1, 3), (1 / 256, -128), SOFTMAX, version=2),
        partial(unary, "SOFTMAX", "INT8", "INT16", (0.1, 3), (2**-16, -32768), SOFTMAX, version=3),
    ],
    ("LOG_SOFTMAX", "UINT8"): [
        partial(unary, "LOG_SOFTMAX", "UINT8", "UINT8", (0.07, 3), (1 / 16, 255), version=2)
    ],
    ("LOG_SOFTMAX", "INT8"): [
        partial(unary, "LOG_SOFTMAX", "INT8", "INT8", (0.07, 3), (1 / 16, 127), version=2)
    ],
    ("LOGISTIC", "INT16"): [
        partial(unary, "LOGISTIC", "INT16", "INT16", (2**-12, 0), (2**-15, 0), version=3)
    ],
    ("TANH", "INT16"): [
        partial(unary, "TANH", "INT16", "INT16", (scale, 0), (2**-15, 0), version=3)
        for scale in (2**-12, 2**-11)
    ],
    ("QUANTIZE", "FLOAT32"): [
        partial(unary, "QUANTIZE", "FLOAT32", type, NONE, (0.25, zero_point), version=2)
        for type, zero_point in (("INT8", 5), ("UINT8", 90), ("INT16", 0))
    ],
    ("QUANTIZE", "UINT8"): [
        partial(unary, "QUANTIZE", "UINT8", type, (0.25, 100), (1.0, 3), version=2)
        for type in ("UINT8", "INT8")
    ],
    ("QUANTIZE", "INT8"): [
        partial(unary, "QUANTIZE", "INT8", type, (0.25, 100), (1.0, 3), version=2)
        for type in ("UINT8", "INT8")
    ],
    ("RESIZE_BILINEAR", "UINT8"): [resize],
    ("SUM", "UINT8"): [partial(reduction, "SUM", "UINT8", (3,), (0.1, 130), (0.5, 99))],
    ("MEAN", "UINT8"): [partial(reduction, "MEAN", "UINT8", (1, 2), (0.031, 130), (0.029, 99))],
    ("MEAN", "INT8"): [partial(reduction, "MEAN", "INT8", (1, 2), (0.031, 3), (0.029, -9))],
    ("REDUCE_PROD", "INT8"): [partial(reduction, "REDUCE_PROD", "INT8", (), (0.5, 3), (0.7, -9))],
    ("REDUCE_PROD", "INT16"): [partial(reduction, "REDUCE_PROD", "INT16", (), (0.5, 0), (0.7, 0))],
    ("LOCAL_RESPONSE_NORMALIZATION", "FLOAT32"): [lrn],
}
EVERY_CASE = [
    pytest.param(make, id=f"{op}-{type}-{i}")
    for (op, type), makers in CASES.items()
    for i, make in enumerate(makers)
]


def test_every_difference_has_a_case_and_every_case_is_a_known_difference():
    known = {(op, type) for d in DIFFERENCES for op in d.ops for type in d.types}
    assert known == CASES.keys()


@pytest.mark.parametrize("make", EVERY_CASE)
def test_the_official_kernel_sets_differ(make):
    model, arrays = make()
    (builtin,), (reference,) = (
        official_outputs(model, arrays, reference=flag) for flag in (False, True)
    )
    assert (builtin != reference).any()


@pytest.mark.parametrize("make", EVERY_CASE)
@pytest.mark.parametrize("numerics", ["builtin", "reference"])
def test_each_profile_follows_its_official_kernels(numerics, make):
    model, arrays = make()
    (mine,) = delegraph_outputs(model, arrays, numerics=numerics)
    (official,) = official_outputs(model, arrays, reference=numerics == "reference")
    if official.dtype.kind == "f":
        np.testing.assert_allclose(mine, official, 1e-5, 1e-6)
    else:
        np.testing.assert_array_equal(mine, official)


@pytest.mark.parametrize("scale", [0.003, 0.1, 0.7, 9.0])
@pytest.mark.parametrize("type", ["UINT8", "INT8"])
@pytest.mark.parametrize("op", ["SOFTMAX", "LOG_SOFTMAX"])
def test_reference_softmax_follows_at_any_scale(op, type, scale):
    least, largest = (0, 255) if type == "UINT8" else (-128, 127)
    y = (1 / 256, least) if op == "SOFTMAX" else (1 / 16, largest)
    options = SOFTMAX if op == "SOFTMAX" else None
    model, arrays = unary(op, type, type, (scale, 3), y, options, version=2)
    (mine,) = delegraph_outputs(model, arrays, numerics="reference")
    np.testing.assert_array_equal(mine, official_outputs(model, arrays, reference=True)[0])


def test_reference_softmax_refuses_what_ends_the_official_process():
    model, arrays = unary("SOFTMAX", "INT8", "INT8", (1e-9, 3), (1 / 256, -128), SOFTMAX, version=2)
    with pytest.raises(RuntimeError, match=r"input scale 1e-09 times beta 1 is not above 2\*\*-26"):
        delegraph_outputs(model, arrays, numerics="reference")


@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
def test_reference_extremes_skip_nan(op):
    model, arrays = reduction(op, "FLOAT32", (2,), NONE, NONE)
    arrays[0][..., 3, :5] = np.nan
    (mine,) = delegraph_outputs(model, arrays, numerics="reference")
    assert not np.isnan(mine).any()
    np.testing.assert_array_equal(mine, official_outputs(model, arrays, reference=True)[0])


def test_reference_sums_of_int8_are_those_of_the_same_numbers_in_uint8():
    # The official reference kernel reads int8 and int16 as uint8; Delegraph's does not.
    as_uint8, arrays = reduction("SUM", "UINT8", (3,), (0.1, 130), (0.5, 99))
    as_int8, _ = reduction("SUM", "INT8", (3,), (0.1, 2), (0.5, -29))
    shifted = [(arrays[0].astype(np.int16) - 128).astype(np.int8)]
    (mine,) = delegraph_outputs(as_int8, shifted, numerics="reference")
    (official,) = official_outputs(as_uint8, arrays, reference=True)
    np.testing.assert_array_equal(mine.astype(np.int16) + 128, official)


def test_the_resolver_type_of_reference_kernels_chooses_their_numerics():
    model, arrays = reduction("REDUCE_PROD", "INT16", (), (0.5, 0), (0.7, 0))
    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, arrays[0])
    interpreter.invoke()
    (official,) = official_outputs(model, arrays, reference=True)
    np.testing.assert_array_equal(interpreter.get_tensor(2), official)
