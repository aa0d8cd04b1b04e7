"""SVDF of floats, with float or 8-bit weights."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection, Tensor
from delegraph.arithmetic.activation import float_activation_range
from delegraph.arithmetic.weights import bias_or_zeros, dequantized_weights
from delegraph.operators.svdf_node import SvdfInput
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph_numba_cpu.blocks import svdf as blocks
from delegraph_numba_cpu.operators import conv_f32, hybrid
from delegraph_numba_cpu.operators.registry import (
    Call,
    Operator,
    first_rejection,
    register_variants,
)
from delegraph_numba_cpu.operators.svdf_int8 import FEATURES, WORK_A_TILE, check_layer
from delegraph_numba_cpu.program import Memory, ProgramBuilder

CURVES = {Act.TANH: blocks.TANH, Act.SIGN_BIT: blocks.SIGN_BIT}


def check_svdf(call: Call) -> Rejection | None:
    """Let pass layers with float or 8-bit weights."""
    found = check_layer(call)
    if found is not None:
        return found
    weights = (SvdfInput.WEIGHTS_FEATURE, SvdfInput.WEIGHTS_TIME)
    for position, index in enumerate((*call.node.inputs, *call.node.outputs)):
        kind = "" if index < 0 else call.context.tensors[index].type.name
        if kind not in ("", "FLOAT32") and not (position in weights and kind == "INT8"):
            return Rejection("dtype", actual=kind, expected="FLOAT32, or INT8 weights")
    return first_rejection(*(_check_weights(call.input(position)) for position in weights))


def _check_weights(weight: Tensor) -> Rejection | None:
    """Let pass what is not empty, and has one scale if it is of integers."""
    if 0 in weight.shape:
        return Rejection("weights-shape", actual=list(weight.shape), expected="weights")
    if weight.type.name == "FLOAT32":
        return None
    if weight.quantization is None or len(weight.quantization.scales) != 1:
        return Rejection("quantization", expected="one scale", tensor=weight.index)
    return hybrid.check_sums(weight)


def lower_svdf(call: Call, builder: ProgramBuilder) -> None:
    """Emit the products with all filters, and the step of their windows."""
    times, bias = call.input(SvdfInput.WEIGHTS_TIME), call.optional_input(SvdfInput.BIAS)
    state, y = call.input(SvdfInput.STATE), call.output()
    if not y.bytes:
        return
    batch, units = y.shape
    filters, window = times.shape
    work = batch * filters * window
    name = call.node.outputs[0]
    activation = Act(call.options.fused_activation_function)
    low, high = float_activation_range(activation)
    builder.emit(
        blocks.FLOAT,
        max(1, min(batch * units, work // WORK_A_TILE, 4 * builder.workers)),
        products=_products(call, builder, batch),
        target=builder.tensor(y.index),
        state=builder.tensor(state.index),
        times=builder.packed(("svdf-times", name), lambda: dequantized_weights(times)),
        bias=builder.packed(("svdf-bias", name), lambda: bias_or_zeros(bias, units, np.float32)),
        batch=batch,
        units=units,
        rank=filters // units,
        window=window,
        low=low,
        high=high,
        curve=CURVES.get(activation, blocks.LINEAR),
    )


def _products(call: Call, builder: ProgramBuilder, batch: int) -> Memory:
    """Emit the products of the input and all filters; return where they will be."""
    features = call.input(SvdfInput.WEIGHTS_FEATURE)
    target = builder.scratch(4 * batch * features.shape[0])
    if features.type.name == "FLOAT32":
        conv_f32.emit_dense(call, builder, target, None, conv_f32.UNLIMITED)
        return target
    packed = hybrid.packed_weights(
        builder,
        call.node.outputs[0],
        hybrid.weight_matrix(features),
        hybrid.weight_scales(features),
        np.zeros(len(features.data), np.float32),
    )
    low, high = conv_f32.UNLIMITED
    hybrid.emit_dense(call, builder, batch, y=target, **packed, low=low, high=high)
    return target


register_variants(
    "FLOAT32", {"SVDF": Operator(check_svdf, lower_svdf, ("FLOAT32", "INT8"), FEATURES)}
)
