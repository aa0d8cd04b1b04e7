"""Claims and lowering of FULLY_CONNECTED."""

from __future__ import annotations

import math

from delegraph import Rejection
from delegraph.schema.enums import FullyConnectedOptionsWeightsFormat
from delegraph_numba_cpu.lowering.checks import (
    check_bias,
    check_one_zero_point,
    check_scales,
    check_type,
    first_rejection,
)
from delegraph_numba_cpu.lowering.convolution import (
    conv_f32,
    conv_hybrid,
    conv_hybrid_int4,
    conv_int8,
)
from delegraph_numba_cpu.lowering.convolution.conv_hybrid import by_weights
from delegraph_numba_cpu.lowering.convolution.conv_int8_computed_weights import emit_packed
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import (
    CLAIMED_ROLES,
    check_constants,
    product_of,
)
from delegraph_numba_cpu.lowering.convolution.conv_windows import ONE_PIXEL
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import ProgramBuilder


def check_f32(call: Call) -> Rejection | None:
    """Return a rejection unless the kernels can multiply by the float32 weights."""
    return conv_f32.check_weighted(call, rank=2, may_be_computed=True)


def lower_f32(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a float32 FULLY_CONNECTED, as a convolution whose pixels are the rows."""
    target = builder.tensor(call.output().index)
    conv_f32.emit_dense(call, builder, target, call.optional_input(2), conv_f32.clamp_range(call))


def check_hybrid(call: Call) -> Rejection | None:
    """Return a rejection unless constant weights ``[O, K]`` are in the default order."""
    weight, form = call.input(1), call.options.weights_format
    if form != FullyConnectedOptionsWeightsFormat.DEFAULT or len(weight.shape) != 2:
        return Rejection("weights-format", expected="[O, K] in the default order of weights")
    if conv_hybrid_int4.has_parts(weight):
        return conv_hybrid_int4.check_parts(call)
    return conv_hybrid.check_product(call)


def lower_hybrid(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a product of float32 rows and integer weights; each row has a scale."""
    x, y = call.input(0), call.output()
    if not math.prod(x.shape) or not math.prod(y.shape):
        return
    weight = call.input(1)
    is_packed = conv_hybrid_int4.is_packed(weight)
    words_of = conv_hybrid_int4.nibble_words if is_packed else conv_hybrid.product_words
    rows = math.prod(y.shape) // weight.shape[0]
    conv_hybrid.emit_dense(call, builder, rows, **words_of(call, builder))


def check_int8(call: Call) -> Rejection | None:
    """Return a rejection unless weights are in the default order, and results exact."""
    weight = call.input(1)
    if call.options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Rejection("weights-format", expected="the default order of weights")
    return check_constants(call) if weight.is_constant else _check_computed(call)


def _check_computed(call: Call) -> Rejection | None:
    """Return a rejection unless computed weights are int8 and the bias is constant."""
    x, weight, bias = call.input(0), call.input(1), call.optional_input(2)
    found = first_rejection(*(check_type(each, "INT8") for each in (x, weight, call.output())))
    if found is not None:
        return found
    if len(weight.shape) != 2:
        return Rejection("weights-shape", actual=weight.shape, expected="two dimensions")
    found = first_rejection(
        check_bias(call), check_scales(weight, weight.shape), check_one_zero_point(weight)
    )
    if found is not None:
        return found
    if bias is not None and not (bias.is_constant and bias.type.name == "INT32"):
        return Rejection("computed-bias", expected="a constant of INT32", tensor=bias.index)
    return product_of(call).rejection()


def lower_int8(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an 8-bit FULLY_CONNECTED."""
    x, weight, y = call.input(0), call.input(1), call.output()
    product = product_of(call)
    outputs, depth = product.weight.shape
    windows = conv_int8.pack_windows(builder, depth, ONE_PIXEL, product)
    if weight.is_constant:
        matrix = conv_int8.pack_matrix(builder, call, product)
    else:
        matrix = emit_packed(
            call, builder, product, builder.tensor(weight.index), 1, weight.zero_point
        )
    rows = math.prod(y.shape) // max(outputs, 1)
    conv_int8.emit_product(
        builder, builder.tensor(x.index), builder.tensor(y.index), windows, matrix, product,
        rows, True,
    )  # fmt: skip


_FEATURES = ("activation", "empty", "many-dims")
_INT8_FEATURES = (*_FEATURES, "extreme-values", "per-channel")

_F32 = Operator(
    check_f32,
    lower_f32,
    ("FLOAT32",),
    (*_FEATURES, "extreme-values", "computed-weights", "scalar"),
)
_HYBRID = Operator(
    check_hybrid,
    lower_hybrid,
    ("FLOAT32",),
    (*_FEATURES, "per-channel"),
    roles=(("weights", ("INT8", "INT4")),),
)

register_variants("FLOAT32", {"FULLY_CONNECTED": by_weights(_F32, _HYBRID)})
for _type, _roles in CLAIMED_ROLES.items():
    _computed = ("computed-weights",) if _type == "INT8" else ()
    _int8 = Operator(check_int8, lower_int8, (_type,), (*_INT8_FEATURES, *_computed), roles=_roles)
    register_variants(_type, {"FULLY_CONNECTED": _int8})
