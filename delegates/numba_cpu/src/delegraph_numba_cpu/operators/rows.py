"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION."""

from __future__ import annotations

import math

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic.lookup_table import exponentials
from delegraph.errors import OperatorError
from delegraph_numba_cpu.blocks import Block
from delegraph_numba_cpu.blocks.rows import L2_NORMALIZATION, LOG_SOFTMAX, SOFTMAX, SOFTMAX_8_BIT
from delegraph_numba_cpu.operators.elementwise import activation_of, check_shapes
from delegraph_numba_cpu.operators.evaluation import evaluate
from delegraph_numba_cpu.operators.registry import (
    Call,
    Operator,
    check_types,
    first_rejection,
    register_variants,
)
from delegraph_numba_cpu.program import ProgramBuilder

FLOAT_BLOCKS = {
    "SOFTMAX": SOFTMAX,
    "LOG_SOFTMAX": LOG_SOFTMAX,
    "L2_NORMALIZATION": L2_NORMALIZATION,
}

FEATURES = ("empty", "many-dims", "dynamic-shapes")

ELEMENTS_A_TILE = 1 << 14

JUST_BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))


def check_float_rows(call: Call) -> Rejection | None:
    """Let pass float32 with at least one dimension."""
    x = call.input(0)
    if not x.shape:
        return Rejection("rank", actual=0, expected="at least 1", tensor=x.index)
    if call.name == "SOFTMAX" and not call.options.beta > 0:
        return Rejection("beta", actual=call.options.beta, expected="above 0")
    if activation_of(call):
        return Rejection("activation", actual=activation_of(call).name, expected="NONE")
    return first_rejection(check_types(call, "FLOAT32"), check_shapes(call, 1))


def lower_float_rows(call: Call, builder: ProgramBuilder) -> None:
    """Emit the kernel of the operator."""
    scratch_bytes = 8 * builder.level.vector_bytes  # the end of a row, before and after
    words = {"beta": call.options.beta} if call.name == "SOFTMAX" else {}
    scratch = builder.scratch(scratch_bytes * builder.workers)
    _emit(
        call,
        builder,
        FLOAT_BLOCKS[call.name],
        scratch=scratch,
        scratch_bytes=scratch_bytes,
        **words,
    )


def _emit(call: Call, builder: ProgramBuilder, block: Block, **words: object) -> None:
    shape = call.output().shape
    size = math.prod(shape)
    if not size:
        return
    rows = size // shape[-1]
    tiles = max(1, min(rows, size // ELEMENTS_A_TILE, 4 * builder.workers))
    source, target = builder.tensor(call.input(0).index), builder.tensor(call.output().index)
    replaceable = ("source",) if block in (SOFTMAX, SOFTMAX_8_BIT) else ()
    builder.emit(
        block, tiles, replaceable,
        source=source, target=target, rows=rows, length=shape[-1], **words,
    )  # fmt: skip


def check_8_bit_softmax(call: Call) -> Rejection | None:
    """Let pass what the core's kernel takes, rounded as the builtin kernels do."""
    x = call.input(0)
    if not x.shape:
        return Rejection("rank", actual=0, expected="at least 1", tensor=x.index)
    if call.context.numerics != "builtin":
        return Rejection("numerics", actual=call.context.numerics, expected="builtin")
    rejection = first_rejection(check_types(call, x.type.name), check_shapes(call, 1))
    if rejection is None:
        try:
            evaluate(call, [np.zeros((1, 2), x.dtype)])
        except OperatorError as error:
            rejection = Rejection("parameters", actual=str(error))
    return rejection


def lower_8_bit_softmax(call: Call, builder: ProgramBuilder) -> None:
    """Emit the kernel, with a table of exponentials."""
    x, y = call.input(0), call.output()
    is_signed = x.type.name == "INT8"
    _emit(
        call,
        builder,
        SOFTMAX_8_BIT,
        table=builder.constant(exponentials(x.scale, float(call.options.beta))),
        flip=128 if is_signed else 0,
        scale=y.scale,
        half=JUST_BELOW_HALF if is_signed else 0.5,
        zero_point=y.zero_point if is_signed else 0,
    )


register_variants(
    "FLOAT32",
    dict.fromkeys(
        FLOAT_BLOCKS,
        Operator(check_float_rows, lower_float_rows, ("FLOAT32",), (*FEATURES, "extreme-values")),
    ),
)
for _type in ("INT8", "UINT8"):
    register_variants(
        _type,
        {"SOFTMAX": Operator(check_8_bit_softmax, lower_8_bit_softmax, (_type,), FEATURES)},
    )
