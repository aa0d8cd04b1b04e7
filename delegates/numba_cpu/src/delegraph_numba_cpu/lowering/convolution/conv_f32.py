"""Float32 products of windows and weights, or of two matrices."""

from __future__ import annotations

import math
from typing import Any

from delegraph import Rejection, Tensor
from delegraph.arithmetic import float_activation_range
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph_numba_cpu.instructions.conv_f32 import CONV
from delegraph_numba_cpu.lowering.checks import check_bias, check_types, first_rejection
from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import (
    block_widths,
    emit_packed,
    packed_matrix,
)
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import (
    READING,
    Windows,
    split,
    window_words,
)
from delegraph_numba_cpu.lowering.dequantized_constants import widened_constant
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder

CLAMPS = (Act.NONE, Act.RELU, Act.RELU_N1_TO_1, Act.RELU6)

Range = tuple[float, float]

UNLIMITED: Range = (-math.inf, math.inf)

UNCLAMPED = {
    "residual": 0,
    "low": UNLIMITED[0],
    "high": UNLIMITED[1],
    "sum_low": UNLIMITED[0],
    "sum_high": UNLIMITED[1],
}
"""Instruction words of a product without a residual and without a clamp."""


def check_weighted(call: Call, rank: int, *, may_be_computed: bool = False) -> Rejection | None:
    """Return a rejection unless the kernels can multiply by the weights of *call*.

    Types must be float32, the weights dense with *rank* dimensions, and the activation a clamp. The
    weights must be constant unless *may_be_computed*.
    """
    found = first_rejection(check_types(call, "FLOAT32"), check_bias(call))
    if found is not None:
        return found
    for position in (1, 2):
        tensor = call.optional_input(position)
        if tensor is not None and (tensor.is_constant or not may_be_computed):
            found = check_constant(call, position)
            if found is not None:
                return found
    weight = call.input(1)
    if len(weight.shape) != rank or 0 in weight.shape:
        return Rejection("weights-shape", actual=list(weight.shape), expected=f"{rank} dimensions")
    return check_clamp(call)


def check_clamp(call: Call) -> Rejection | None:
    """Return a rejection unless the fused activation is a clamp."""
    activation = Act(call.options.fused_activation_function)
    if activation in CLAMPS:
        return None
    return Rejection("activation", actual=activation.name, expected="a clamp")


def check_constant(call: Call, position: int) -> Rejection | None:
    """Return a rejection unless input *position* depends on constants alone.

    A constant must be dense.
    """
    tensor = call.input(position)
    if not tensor.is_constant_or_persistent and widened_constant(call, tensor.index) is None:
        return Rejection("computed-weights", expected="constant weights", tensor=tensor.index)
    if tensor.sparsity is not None:
        return Rejection("sparse", expected="weights stored in full", tensor=tensor.index)
    return None


def clamp_range(call: Call) -> Range:
    """Return the smallest and largest value that a node's fused activation allows."""
    return float_activation_range(call.options.fused_activation_function)


def emit_products(
    builder: ProgramBuilder, over: Windows, kernel: tuple[int, int], **words: Any
) -> None:
    """Add to the program a call of the kernel ``CONV``: float32 windows multiplied by weights.

    Args:
        builder: builder of the program, to which the kernel call is added.
        over: geometry of the windows over the input.
        kernel: height and width of the window.
        words: operands of the kernel by name: all addresses, and the numbers that differ from an
            unclamped convolution's.
    """
    if over.pixels == 0:
        return
    merged = over.across.dilation == 1
    taps = (kernel[0], 1, 0) if merged else (*kernel, over.across.dilation * over.pixel)
    widths = block_widths(over.columns, builder.level.vector_bytes // 4)
    weights = sum(widths) * kernel[0] * kernel[1] * over.pixel // 4
    work = weights * max(over.pixels, READING)
    parts = split(over, builder, work, len(widths), is_dense="out_row" not in words)
    tap_bytes = (kernel[1] if merged else 1) * over.pixel
    everything = window_words(over, parts, taps, builder) | {
        "weight_image": 0,
        "tap_bytes": tap_bytes,
        **UNCLAMPED,
        **words,
    }
    builder.emit(CONV, parts.tiles, **everything)


def emit_dense(
    call: Call, builder: ProgramBuilder, target: Memory, bias: Tensor | None, limits: Range
) -> None:
    """Add to the program the float32 product of a node's input 0, as rows, and input 1, ``[O, K]``.

    Args:
        call: the node that is turned into kernel calls.
        builder: builder of the program, to which the kernel call is added.
        target: memory of the result.
        bias: tensor that is added to the result, or None.
        limits: clamping range.
    """
    x, weight = call.input(0), call.input(1)
    outputs, depth = weight.shape
    rows = math.prod(x.shape) // depth
    if not rows or not outputs:
        return
    low, high = limits
    emit_products(
        builder,
        Windows.of_rows(rows, depth, outputs),
        (1, 1),
        x=builder.tensor(x.index),
        y=target,
        weight=_dense_weights(builder, weight, bias),
        low=low,
        high=high,
    )


def _dense_weights(builder: ProgramBuilder, weight: Tensor, bias: Tensor | None) -> Memory:
    """Return the memory of packed weights ``[O, K]`` with their bias.

    If they are computed, the kernel call that packs them is added.
    """
    outputs, depth = weight.shape
    given = [tensor for tensor in (weight, bias) if tensor is not None]
    if all(tensor.is_constant_or_persistent for tensor in given):
        return packed_matrix(builder, weight, bias, outputs)
    return emit_packed(
        builder,
        builder.tensor(weight.index),
        (1, depth, outputs),
        is_transposed=True,
        bias=0 if bias is None else builder.tensor(bias.index),
    )
