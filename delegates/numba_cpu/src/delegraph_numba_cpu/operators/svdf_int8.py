"""SVDF of integers."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic.fixed_point import quantize_multiplier
from delegraph.operators.svdf_node import SvdfInput
from delegraph.schema.enums import ActivationFunctionType
from delegraph_numba_cpu.blocks.svdf import INTEGER
from delegraph_numba_cpu.operators.registry import (
    Call,
    Operator,
    check_types,
    register_variants,
)
from delegraph_numba_cpu.program import ProgramBuilder

SVDF_TYPES = ("INT8", "INT16", "INT32")

WORK_A_TILE = 1 << 16
"""Products, some microseconds."""


def check_svdf(call: Call) -> Rejection | None:
    """Let pass integer layers with constant weights and RELU, as the official kernel has it."""
    found = check_layer(call)
    if found is not None:
        return found
    if call.options.fused_activation_function != ActivationFunctionType.RELU:
        return Rejection("activation", expected="RELU")
    return check_types(call, *SVDF_TYPES)


def check_layer(call: Call) -> Rejection | None:
    """Let pass constant weights and a state that is a variable."""
    if len(call.node.inputs) != len(SvdfInput) or call.options is None:
        return Rejection("operands", expected=f"{len(SvdfInput)} inputs, and options")
    for i in (SvdfInput.WEIGHTS_FEATURE, SvdfInput.WEIGHTS_TIME, SvdfInput.BIAS):
        tensor = call.optional_input(i)
        if tensor is not None and not tensor.is_constant:
            return Rejection("computed-weights", expected="constants", tensor=tensor.index)
        if tensor is not None and tensor.sparsity is not None:
            return Rejection("sparse", expected="dense constants", tensor=tensor.index)
    if not call.input(SvdfInput.STATE).is_variable:
        return Rejection("state", expected="a variable", tensor=call.input(SvdfInput.STATE).index)
    return None


def lower_svdf(call: Call, builder: ProgramBuilder) -> None:
    """Emit one step."""
    x, features, times = (call.input(i) for i in range(3))
    bias, state, y = call.optional_input(3), call.input(4), call.output()
    if not y.bytes:
        return
    weights = features.data.astype(np.int32)
    units = y.shape[1]
    into = quantize_multiplier(x.scale * features.scale / state.scale)
    out = quantize_multiplier(state.scale * times.scale / y.scale)
    builder.emit(
        INTEGER,
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

register_variants("INT8", {"SVDF": Operator(check_svdf, lower_svdf, SVDF_TYPES, FEATURES)})
