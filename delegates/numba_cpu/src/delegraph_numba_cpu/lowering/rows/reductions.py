"""Claims and lowering of SUM, MEAN, REDUCE_MAX, REDUCE_MIN and REDUCE_PROD."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from delegraph import Rejection, Tensor
from delegraph.arithmetic import integers, normalized_axis, quantize_multiplier
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions import reductions as instructions
from delegraph_numba_cpu.instructions.moves import COPY
from delegraph_numba_cpu.lowering.checks import (
    check_constant_parameter,
    check_multiplier,
    check_same_type,
    check_type,
    first_rejection,
)
from delegraph_numba_cpu.lowering.moves.moves import Part, fill, move
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder

TYPES = ("FLOAT32", "INT8", "UINT8", "INT32")

PRODUCT_TYPES = ("FLOAT32", "INT32")

FEATURES = ("empty", "many-dims", "scalar")

VALUES_A_NANOSECOND = 16
"""Approximate number of values that are reduced in a nanosecond."""

_SPATIAL_LANES = 16
"""Number of channels that the official mean over height and width processes at a time.

It rounds the remaining channels differently.
"""

_MASKS = {"INT8": -1, "UINT8": 255}
"""Mapping from a type to the mask that turns a sign-extended byte into its value."""


def check_reduction(call: Call, types: tuple[str, ...] = TYPES) -> Rejection | None:
    """Return a rejection unless the axes are constant and the types supported."""
    found = check_constant_parameter(call)
    if found is not None:
        return found
    x, y = call.input(0), call.output()
    return first_rejection(check_type(x, *types), check_same_type(x, y))


def check_scaled_reduction(call: Call) -> Rejection | None:
    """Return a rejection unless axes are constant, and 8-bit tensors have a scale."""
    rejection = check_reduction(call)
    if rejection is not None or call.input(0).type.name not in _MASKS:
        return rejection
    for tensor in (call.input(0), call.output()):
        if not tensor.scale > 0:
            return Rejection("quantization", expected="a scale", tensor=tensor.index)
    return None


def check_mean(call: Call) -> Rejection | None:
    """Return a rejection unless axes are constant, and 8-bit tensors have scales.

    The ratio of these scales must be below the kernels' limit.
    """
    rejection = check_scaled_reduction(call)
    if rejection is not None or call.input(0).type.name not in _MASKS:
        return rejection
    return check_multiplier(call.input(0).scale / call.output().scale)


@dataclass(frozen=True, slots=True)
class Axes:
    """A reduction over the middle axis of ``[outer, length, inner]``.

    Attributes:
        x: the node's input tensor.
        source: memory of the elements, in that shape.
        outer, length, inner: the three sizes.
    """

    x: Tensor
    source: Memory
    outer: int
    length: int
    inner: int

    @classmethod
    def of(cls, call: Call, builder: ProgramBuilder) -> Axes:
        """Return the sizes and the memory of a node's reduction.

        If the reduced axes are not adjacent, a kernel call that transposes the input is added. Axes
        of size 1 do not count for this.
        """
        x = call.input(0)
        rank, shape = len(x.shape), x.shape
        axes = sorted({normalized_axis(i, rank) for i in integers(call.input(1))}) if rank else []
        axes = [i for i in axes if shape[i] != 1]
        length = math.prod(shape[i] for i in axes)
        source = builder.tensor(x.index)
        between = range(axes[0], axes[-1] + 1) if axes else range(0)
        if all(i in axes or shape[i] == 1 for i in between):
            first = axes[0] if axes else rank
            last = axes[-1] + 1 if axes else rank
            return cls(x, source, math.prod(shape[:first]), length, math.prod(shape[last:]))
        kept = [i for i in range(rank) if i not in axes]
        part = Part.of(builder, x)
        view = part.array.transpose(*kept, *axes)
        target = Part.scratch(builder, view.shape, x.dtype)
        move(builder, part.seen(view), target)
        return cls(x, target.memory, math.prod(shape[i] for i in kept), length, 1)

    @property
    def count(self) -> int:
        """Number of elements of the output."""
        return self.outer * self.inner

    def emit(
        self,
        builder: ProgramBuilder,
        instruction: Instruction,
        target: Memory,
        tasks: int,
        **words: float,
    ) -> None:
        """Add to the program a kernel call that computes this reduction.

        Args:
            builder: builder of the program, to which the kernel call is added.
            instruction: the kernel that is called, with the names of its operands.
            target: memory of the result.
            tasks: largest number of parts into which the call can be divided.
            words: the kernel's remaining operands, by name.
        """
        work = self.count * self.length
        builder.emit(
            instruction,
            builder.tiles(work / VALUES_A_NANOSECOND, tasks),
            source=self.source,
            target=target,
            outer=self.outer,
            length=self.length,
            inner=self.inner,
            **words,
        )


def reduce(
    builder: ProgramBuilder, axes: Axes, instruction: Instruction, target: Memory, **words: float
) -> None:
    """Add to the program a kernel call that computes a reduction with vector instructions.

    Args:
        builder: builder of the program, to which the kernel call is added.
        axes: sizes and memory of the reduction.
        instruction: the kernel that is called, with the names of its operands.
        target: memory of the result.
        words: the kernel's remaining operands, by name.
    """
    strip = builder.level.vector_bytes  # four vectors
    axes.emit(builder, instruction, target, axes.outer * -(-axes.inner // strip), **words)


def reduce_int32(builder: ProgramBuilder, axes: Axes, target: Memory, operation: int) -> None:
    """Add to the program a kernel call that reduces int32 values.

    Args:
        builder: builder of the program, to which the kernel call is added.
        axes: sizes and memory of the reduction.
        target: memory of the result.
        operation: number of the operation, such as ``instructions.reductions.MIN``.
    """
    axes.emit(builder, instructions.INT32, target, axes.count, operation=operation)


def lower_extreme(call: Call, builder: ProgramBuilder, smallest: bool) -> None:
    """Add to the program a kernel call that finds the largest or smallest elements along axes.

    Args:
        call: the REDUCE_MAX or REDUCE_MIN node.
        builder: builder of the program, to which the kernel call is added.
        smallest: whether the smallest elements are found, not the largest.
    """
    axes, y = Axes.of(call, builder), call.output()
    target, type = builder.tensor(y.index), axes.x.type.name
    if not axes.count:
        return
    if axes.length == 1:  # nothing is compared, so NaN stays NaN
        builder.emit(COPY, source=axes.source, target=target, bytes=y.bytes)
    elif type == "INT32":
        reduce_int32(builder, axes, target, instructions.MIN if smallest else instructions.MAX)
    elif not axes.length:
        limits = np.finfo(y.dtype) if type == "FLOAT32" else np.iinfo(y.dtype)
        worst = limits.max if smallest else limits.min
        fill(builder, Part.of(builder, y), np.array(worst, y.dtype))
    elif type == "FLOAT32":
        reduce(builder, axes, instructions.MAX_F32, target, sign=-1.0 if smallest else 1.0)
    else:
        flip = -1 if smallest else 0
        reduce(builder, axes, instructions.MAX_BYTES, target, mask=_MASKS[type], flip=flip)


def lower_product(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that multiplies all elements along axes (REDUCE_PROD)."""
    axes, target = Axes.of(call, builder), builder.tensor(call.output().index)
    if axes.count and axes.x.type.name == "INT32":
        reduce_int32(builder, axes, target, instructions.PRODUCT)
    elif axes.count:
        reduce(builder, axes, instructions.PRODUCT_F32, target)


def lower_sum(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls that sum elements along axes; sums of 8-bit values are scaled in float32."""
    axes, y = Axes.of(call, builder), call.output()
    if not axes.count:
        return
    target = builder.tensor(y.index)
    if axes.x.type.name == "FLOAT32":
        reduce(builder, axes, instructions.SUM_F32, target, divisor=1.0)
        return
    if axes.x.type.name == "INT32":
        reduce_int32(builder, axes, target, instructions.SUM)
        return
    sums = _sums(builder, axes)
    scale = np.float32(axes.x.scale) / np.float32(y.scale)
    bias = np.float32(-axes.x.zero_point) * scale * np.float32(axes.length)
    low, high = np.iinfo(y.dtype).min, np.iinfo(y.dtype).max
    builder.emit(
        instructions.SCALE_REAL,
        source=sums,
        target=target,
        count=axes.count,
        low=low,
        high=high,
        zero=y.zero_point,
        scale=float(scale),
        bias=float(bias),
    )


def _sums(builder: ProgramBuilder, axes: Axes) -> Memory:
    """Add a kernel call that sums 8-bit values along axes; return the memory of the int32 sums."""
    sums = builder.scratch(4 * axes.count)
    mask = _MASKS[axes.x.type.name]
    reduce(builder, axes, instructions.SUM_BYTES, sums, mask=mask, flip=0)
    return sums


def lower_mean(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls for means along axes; means of 8-bit values are scaled in fixed point.

    Source:
        See ``delegraph.arithmetic.quantized_reductions``; the mean over height and width of images
        has a different arithmetic.
    """
    axes, y = Axes.of(call, builder), call.output()
    if not axes.count:
        return
    target = builder.tensor(y.index)
    if axes.x.type.name == "FLOAT32":
        reduce(builder, axes, instructions.SUM_F32, target, divisor=float(axes.length))
    elif axes.x.type.name == "INT32":
        reduce_int32(builder, axes, target, instructions.MEAN)
    elif not axes.length:
        fill(builder, Part.of(builder, y), np.zeros((), y.dtype))
    else:
        _scaled_mean(call, builder, axes, target)


def _scaled_mean(call: Call, builder: ProgramBuilder, axes: Axes, target: Memory) -> None:
    x, y = axes.x, call.output()
    if _is_spatial(call):
        x_scale, y_scale = np.float32(x.scale), np.float32(y.scale)
        offset = np.float32(x.zero_point) * x_scale / y_scale
        offset = offset + np.float32(0.5) if offset > 0 else offset - np.float32(0.5)
        real = float(x_scale / (np.float32(axes.length) * y_scale))
        multiplier, shift = quantize_multiplier(real)
        subtrahend, bias = 0, y.zero_point - int(offset)
        period = x.shape[3]
        up = period - period % _SPATIAL_LANES
    else:
        multiplier, shift = quantize_multiplier(x.scale / y.scale)
        bits = min(axes.length.bit_length() - 1, 32, 31 + shift)
        multiplier, shift = (multiplier << bits) // axes.length, shift - bits
        subtrahend, bias, period, up = x.zero_point * axes.length, y.zero_point, axes.count, 0
    builder.emit(
        instructions.SCALE,
        source=_sums(builder, axes),
        target=target,
        count=axes.count,
        low=int(np.iinfo(y.dtype).min),
        high=int(np.iinfo(y.dtype).max),
        subtrahend=subtrahend,
        multiplier=multiplier,
        shift=shift,
        period=period,
        up=up,
        bias=bias,
    )


def _is_spatial(call: Call) -> bool:
    """Whether the node is a mean over H and W of ``[N, H, W, C]`` that keeps both axes."""
    axes = sorted({axis % 4 for axis in integers(call.input(1))})
    keep = bool(call.options.keep_dims)
    return len(call.input(0).shape) == 4 and axes == [1, 2] and keep


def _extreme(smallest: bool) -> Operator:
    return Operator(check_reduction, partial(lower_extreme, smallest=smallest), TYPES, FEATURES)


register(
    {
        "SUM": Operator(check_scaled_reduction, lower_sum, TYPES, FEATURES),
        "MEAN": Operator(check_mean, lower_mean, TYPES, FEATURES),
        "REDUCE_MAX": _extreme(smallest=False),
        "REDUCE_MIN": _extreme(smallest=True),
        "REDUCE_PROD": Operator(
            partial(check_reduction, types=PRODUCT_TYPES), lower_product, PRODUCT_TYPES, FEATURES
        ),
    }
)
