"""Cases of two- and three-dimensional convolutions, and of transposed convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from delegraph.schema.enums import Padding, TensorType
from delegraph.schema.options import (
    Conv2DOptions,
    Conv3DOptions,
    DepthwiseConv2DOptions,
    TransposeConvOptions,
)
from delegraph.testing.convolution_operands import (
    FLOAT,
    HYBRID,
    HYBRID_CHANNELS,
    HYBRID_INT4,
    INT4_CHANNELS,
    INT8,
    INT8_CHANNELS,
    INT16_CHANNELS,
    INT16_SHORT_BIAS,
    UINT8,
    Kind,
    Operands,
    operands,
)
from delegraph.testing.one_op import constant
from delegraph.testing.operator_case import Given, OperatorCase, fed, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import ACTIVATIONS, RandomOperands
from delegraph.testing.registered_operators import BUILTIN_VERSIONS

KINDS = (
    FLOAT, UINT8, INT8, INT8_CHANNELS, INT16_CHANNELS, INT16_SHORT_BIAS, HYBRID, HYBRID_CHANNELS,
    INT4_CHANNELS, HYBRID_INT4,
)  # fmt: skip
CLAMPED = 3e-5
"""Tolerance of float sums if the activation may have clamped the largest sum."""

TRANSPOSED_KINDS = (FLOAT, UINT8, INT8, INT8_CHANNELS, INT16_CHANNELS, INT16_SHORT_BIAS)


def bias(random: RandomOperands, found: Operands) -> Any:
    """Return the bias of the operands *found*; None in some cases, chosen at random."""
    return None if random.chance(0.2) else found.bias


def sides(random: RandomOperands, low: int = 1, high: int = 9) -> tuple[int, int]:
    """Return a random (height, width), each from *low* to *high*."""
    return random.number(low, high), random.number(low, high)


def activation(random: RandomOperands) -> Any:
    """Return a random fused activation, mostly ``NONE``."""
    return random.pick([*ACTIVATIONS, *[ACTIVATIONS[0]] * 6])


def steps(random: RandomOperands) -> dict[str, Any]:
    """Return random padding, strides and activation."""
    sh, sw = random.pick([(1, 1), (2, 2), sides(random, 1, 4)])
    return {
        "padding": random.pick((Padding.SAME, Padding.VALID)),
        "stride_h": sh,
        "stride_w": sw,
        "fused_activation_function": activation(random),
    }


def dilation(random: RandomOperands) -> dict[str, Any]:
    """Return random dilation factors, mostly 1."""
    dh, dw = sides(random, 1, 3) if random.chance(0.3) else (1, 1)
    return {"dilation_h_factor": dh, "dilation_w_factor": dw}


@cases_of("CONV_2D")
def conv(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every kind of weights, with strides, dilation and groups."""
    for kind in KINDS:
        for _ in range(random.count):
            groups = random.pick([1, 1, 1, 2, 3]) if kind.weight != "INT4" else 1
            c = random.pick([1, 2, 3, 4, 8, 17])
            kh, kw = random.pick([(1, 1), (3, 3), sides(random, 1, 5)])
            x_shape = (random.number(1, 3), *sides(random), c * groups)
            weight_shape = (random.pick([1, 3, 4, 8, 16]) * groups, kh, kw, c)
            found = operands(kind, x_shape, weight_shape, seed=random.number(0, 9999))
            yield operator_case(
                op,
                [found.x, found.weight, bias(random, found)],
                [found.y],
                Conv2DOptions(
                    quantized_bias_type=TensorType[kind.bias], **steps(random), **dilation(random)
                ),
                tolerance=CLAMPED,
                version=random.number(1, BUILTIN_VERSIONS[op][1]),
            )


@cases_of("DEPTHWISE_CONV_2D")
def depthwise_conv(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: every kind of weights, with strides, dilation and depth multipliers."""
    for kind in KINDS:
        for _ in range(random.count):
            c, multiplier = random.pick([1, 2, 3, 8, 16, 19]), random.pick([1, 1, 1, 2, 3, 8])
            kh, kw = random.pick([(1, 1), (3, 3), (5, 5), sides(random, 1, 5)])
            found = operands(
                kind,
                (random.number(1, 3), *sides(random, 1, 12), c),
                (1, kh, kw, c * multiplier),
                channel_axis=3,
                taps=kh * kw,
                seed=random.number(0, 9999),
            )
            yield operator_case(
                op,
                [found.x, found.weight, bias(random, found)],
                [found.y],
                DepthwiseConv2DOptions(
                    depth_multiplier=multiplier, **steps(random), **dilation(random)
                ),
                tolerance=CLAMPED,
                version=random.number(1, BUILTIN_VERSIONS[op][1]),
            )


def full_size(padding: Padding, size: int, kernel: int, stride: int) -> int:
    """Return the input length for which a convolution has *size* outputs along an axis.

    *kernel* is the length of the weights.
    """
    return size * stride if padding == Padding.SAME else (size - 1) * stride + kernel


@cases_of("TRANSPOSE_CONV")
def transpose_conv(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: every kind of weights; the output's shape is a constant or an input."""
    for kind in TRANSPOSED_KINDS:
        for _ in range(random.count):
            yield transposed(op, kind, random)


def transposed(op: str, kind: Kind, random: RandomOperands) -> OperatorCase:
    """Return a random case of the transposed convolution *op* with weights of *kind*."""
    given = steps(random)
    c, o = random.pick([1, 2, 3, 8, 17]), random.pick([1, 2, 4, 9])
    n, (h, w), (kh, kw) = random.number(1, 2), sides(random, 1, 6), sides(random, 1, 4)
    found = operands(kind, (n, h, w, c), (o, kh, kw, c), seed=random.number(0, 9999))
    height = full_size(given["padding"], h, kh, given["stride_h"])
    width = full_size(given["padding"], w, kw, given["stride_w"])
    shape = constant(np.array([n, height, width, o], np.int32))
    return operator_case(
        op,
        [shape, found.weight, found.x, bias(random, found)],
        [found.y],
        TransposeConvOptions(**given, quantized_bias_type=TensorType[kind.bias]),
        tolerance=CLAMPED,
        version=random.number(3, BUILTIN_VERSIONS[op][1]),
    )


@cases_of("CONV_3D", "CONV_3D_TRANSPOSE")
def conv3d(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: strides and dilation along three axes."""
    for _ in range(random.count):
        given: dict[str, Any] = {"stride_d": random.number(1, 3), **steps(random)}
        if random.chance(0.3):
            given |= {**dilation(random), "dilation_d_factor": random.number(1, 2)}
        n, c, o = random.number(1, 2), random.number(1, 4), random.number(1, 5)
        size, kernel = [tuple(random.number(1, high) for _ in range(3)) for high in (6, 3)]
        x = random.fed("FLOAT32", (n, *size, c))
        b = None if random.chance(0.2) else random.operand("FLOAT32", (o,))
        options = Conv3DOptions(**given)
        if op == "CONV_3D":
            inputs: list[Given] = [x, random.operand("FLOAT32", (*kernel, c, o)), b]
        else:
            strides = given["stride_d"], given["stride_h"], given["stride_w"]
            full = [
                full_size(given["padding"], *axis)
                for axis in zip(size, kernel, strides, strict=True)
            ]
            shape = constant(np.array([n, *full, o], np.int32))
            inputs = [shape, random.operand("FLOAT32", (*kernel, o, c)), x, b]
        yield operator_case(op, inputs, ["FLOAT32"], options, tolerance=CLAMPED)


@cases_of("CONV_2D")
def float16_filters(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: FLOAT16 weights, which LiteRT reads as FLOAT32."""
    for give in (constant, fed):
        x, weight, bias = (
            random.rng.normal(size=shape).astype(dtype)
            for shape, dtype in (
                ((1, 5, 5, 3), np.float32), ((4, 3, 3, 3), np.float16), ((4,), np.float32)
            )
        )  # fmt: skip
        options = Conv2DOptions(
            stride_w=1, stride_h=1, fused_activation_function=activation(random)
        )
        inputs = [fed(x), give(weight), constant(bias)]
        yield operator_case(op, inputs, ["FLOAT32"], options, tolerance=CLAMPED, differs=True)


@cases_of("CONV_2D", "DEPTHWISE_CONV_2D")
def refused(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op* that are rejected: unsupported types, or windows that do not fit."""
    table: Any = Conv2DOptions if op == "CONV_2D" else DepthwiseConv2DOptions
    multiplier: dict[str, Any] = {} if op == "CONV_2D" else {"depth_multiplier": 1}
    kinds = [replace(kind, bias=b) for kind in (FLOAT, UINT8, INT8) for b in ("INT64", "FLOAT32")]
    for kind in (*kinds, replace(INT8, weight="UINT8")):
        found = operands(kind, (1, 4, 4, 3), (3, 3, 3, 3) if op == "CONV_2D" else (1, 3, 3, 3))
        inputs: list[Given] = [found.x, found.weight, found.bias]
        yield operator_case(op, inputs, [found.y], table(**multiplier, stride_h=1, stride_w=1))
    for padding in (Padding.SAME, Padding.VALID):
        found = operands(FLOAT, (1, 2, 2, 3), (3, 5, 5, 3) if op == "CONV_2D" else (1, 5, 5, 3))
        inputs = [found.x, found.weight, found.bias]
        options = table(padding=padding, stride_h=1, stride_w=1, **multiplier)
        yield operator_case(op, inputs, [found.y], options)
