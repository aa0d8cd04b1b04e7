"""Claims and lowering of SVDF."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection, Tensor
from delegraph.arithmetic import (
    bias_or_zeros,
    dequantized_weights,
    float_activation_range,
    quantize_multiplier,
)
from delegraph.operators import SvdfInput
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph_numba_cpu.instructions import svdf as instructions
from delegraph_numba_cpu.lowering.checks import check_types, first_rejection
from delegraph_numba_cpu.lowering.convolution import conv_f32, conv_hybrid
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder

CURVES = {Act.TANH: instructions.TANH, Act.SIGN_BIT: instructions.SIGN_BIT}


def check_f32(call: Call) -> Rejection | None:
    """Return a rejection unless the weights are constant float32 or 8-bit."""
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
    """Return a rejection unless *weight* is float32, or has a single scale."""
    if 0 in weight.shape:
        return Rejection("weights-shape", actual=list(weight.shape), expected="weights")
    if weight.type.name == "FLOAT32":
        return None
    if weight.quantization is None or len(weight.quantization.scales) != 1:
        return Rejection("quantization", expected="one scale", tensor=weight.index)
    return conv_hybrid.check_sums(weight)


def lower_f32(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls of one time step of a float SVDF layer."""
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
        instructions.FLOAT,
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
        curve=CURVES.get(activation, instructions.LINEAR),
    )


def _products(call: Call, builder: ProgramBuilder, batch: int) -> Memory:
    """Add kernel calls that multiply the input by all feature filters; return their results."""
    features = call.input(SvdfInput.WEIGHTS_FEATURE)
    target = builder.scratch(4 * batch * features.shape[0])
    if features.type.name == "FLOAT32":
        conv_f32.emit_dense(call, builder, target, None, conv_f32.UNLIMITED)
        return target
    packed = conv_hybrid.packed_weights(
        builder,
        call.node.outputs[0],
        conv_hybrid.weight_matrix(features),
        conv_hybrid.weight_scales(features),
        np.zeros(len(features.data), np.float32),
    )
    low, high = conv_f32.UNLIMITED
    conv_hybrid.emit_dense(call, builder, batch, y=target, **packed, low=low, high=high)
    return target


INTEGER_TYPES = ("INT8", "INT16", "INT32")

WORK_A_TILE = 1 << 16
"""Number of products of a tile, which take some microseconds."""


def check_layer(call: Call) -> Rejection | None:
    """Return a rejection unless weights are constant and the state is a variable."""
    if len(call.node.inputs) != len(SvdfInput):
        return Rejection("operands", expected=f"{len(SvdfInput)} inputs")
    for i in (SvdfInput.WEIGHTS_FEATURE, SvdfInput.WEIGHTS_TIME, SvdfInput.BIAS):
        tensor = call.optional_input(i)
        if tensor is not None and not tensor.is_constant:
            return Rejection("computed-weights", expected="constants", tensor=tensor.index)
        if tensor is not None and tensor.sparsity is not None:
            return Rejection("sparse", expected="dense constants", tensor=tensor.index)
    if not call.input(SvdfInput.STATE).is_variable:
        return Rejection("state", expected="a variable", tensor=call.input(SvdfInput.STATE).index)
    return None


def check_int8(call: Call) -> Rejection | None:
    """Return a rejection unless the layer is integer, with constant weights and RELU."""
    found = check_layer(call)
    if found is not None:
        return found
    if call.options.fused_activation_function != Act.RELU:
        return Rejection("activation", expected="RELU")
    return check_types(call, *INTEGER_TYPES)


def lower_int8(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of one time step of an integer SVDF layer."""
    x, features, times = (call.input(i) for i in range(3))
    bias, state, y = call.optional_input(3), call.input(4), call.output()
    if not y.bytes:
        return
    weights = features.data.astype(np.int32)
    units = y.shape[1]
    into = quantize_multiplier(x.scale * features.scale / state.scale)
    out = quantize_multiplier(state.scale * times.scale / y.scale)
    builder.emit(
        instructions.INTEGER,
        max(1, min(y.bytes, x.shape[0] * weights.size // WORK_A_TILE, 4 * builder.workers)),
        source=builder.tensor(x.index),
        target=builder.tensor(y.index),
        state=builder.tensor(state.index),
        features=builder.tensor(features.index),
        times=builder.tensor(times.index),
        bias=builder.constant(np.zeros(units, np.int32) if bias is None else bias.data),
        sums=builder.constant((-x.zero_point * weights.sum(1, dtype=np.int32)).astype(np.int32)),
        batch=x.shape[0],
        inputs=x.shape[1],
        units=units,
        rank=features.shape[0] // units,
        window=times.shape[1],
        multiplier_in=into[0],
        shift_in=into[1],
        multiplier_out=out[0],
        shift_out=out[1],
        zero_out=y.zero_point,
    )


FEATURES = ("activation", "empty")

_FLOAT = Operator(check_f32, lower_f32, ("FLOAT32",), FEATURES)
_HYBRID = Operator(
    check_f32,
    lower_f32,
    ("FLOAT32",),
    FEATURES,
    roles=(("weights_feature", ("INT8",)), ("weights_time", ("INT8",))),
)
_INTEGER = Operator(
    check_int8,
    lower_int8,
    ("INT8",),
    FEATURES,
    roles=(("weights_time", ("INT16",)), ("state", ("INT16",)), ("bias", ("INT32",))),
)

register_variants("FLOAT32", {"SVDF": Operator(check_f32, lower_f32, variants=(_FLOAT, _HYBRID))})
register_variants("INT8", {"SVDF": _INTEGER})
