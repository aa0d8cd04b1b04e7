"""Operators that put all elements of their input into another order, some of them repeatedly."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic.output_shape import integers
from delegraph_numba_cpu.operators.moves import FEATURES, TYPES, WITH_HALVES, check_moved
from delegraph_numba_cpu.operators.places import Part, fill, move
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import ProgramBuilder


def check_arranged(call: Call) -> Rejection | None:
    """Let pass a constant second input."""
    return check_moved(call, parameters=(1,))


def lower_transpose(call: Call, builder: ProgramBuilder) -> None:
    """Move with the axes in another order."""
    x = Part.of(builder, call.input(0))
    move(
        builder,
        x.seen(x.array.transpose(integers(call.input(1)))),
        Part.of(builder, call.output()),
    )


def lower_tile(call: Call, builder: ProgramBuilder) -> None:
    """Move to ``[m0, d0, m1, d1, ...]``: the input is the same for all m."""
    x, y = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    times, shape = integers(call.input(1)), x.array.shape
    split = [n for pair in zip(times, shape, strict=True) for n in pair]
    source = x.array.reshape([n for size in shape for n in (1, size)])
    if y.array.size:
        move(builder, x.seen(np.broadcast_to(source, split)), y.seen(y.array.reshape(split)))


def lower_broadcast_to(call: Call, builder: ProgramBuilder) -> None:
    """Move with steps of no bytes where the input is repeated."""
    x, y = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    move(builder, x.seen(np.broadcast_to(x.array, y.array.shape)), y)


def check_reverse(call: Call) -> Rejection | None:
    """Let pass neighbouring axes, as the official kernel wants them."""
    found = check_moved(call, parameters=(1,))
    if found is not None:
        return found
    axes = _axes(call)
    if axes and axes != list(range(axes[0], axes[0] + len(axes))):
        return Rejection("axes", actual=axes, expected="neighbours")
    return None


def _axes(call: Call) -> list[int]:
    rank = len(call.input(0).shape)
    return sorted(axis + rank if axis < 0 else axis for axis in integers(call.input(1)))


def lower_reverse(call: Call, builder: ProgramBuilder) -> None:
    """Move with negative steps along the axes."""
    x = Part.of(builder, call.input(0))
    axes = _axes(call)
    index = (slice(None, None, -1 if i in axes else 1) for i in range(x.array.ndim))
    move(builder, x[(*index, ...)], Part.of(builder, call.output()))


def lower_space_to_depth(call: Call, builder: ProgramBuilder) -> None:
    """Move the pixels of each block behind one another."""
    x, y = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    n, h, w, _ = y.array.shape
    size = int(call.options.block_size)
    c = x.array.shape[3]
    blocks = x.array.reshape(n, h, size, w, size, c).transpose(0, 1, 3, 2, 4, 5)
    move(builder, x.seen(blocks), y.seen(y.array.reshape(blocks.shape)))


def lower_depth_to_space(call: Call, builder: ProgramBuilder) -> None:
    """Move the channels of each pixel to the pixels of a block."""
    x, y = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    n, h, w, _ = x.array.shape
    size = int(call.options.block_size)
    c = y.array.shape[3]
    pixels = x.array.reshape(n, h, w, size, size, c).transpose(0, 1, 3, 2, 4, 5)
    move(builder, x.seen(pixels), y.seen(y.array.reshape(pixels.shape)))


def check_space_batch(call: Call) -> Rejection | None:
    """Let pass constant blocks and borders."""
    if len(call.node.inputs) != 3:
        return Rejection("operands", actual=len(call.node.inputs), expected=3)
    return check_moved(call, parameters=(1, 2))


def lower_space_to_batch(call: Call, builder: ProgramBuilder) -> None:
    """Move the pixels of each phase to their images; what lies outside is the zero point."""
    image, batches = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    if any(integers(call.input(2))):
        y = call.output()
        fill(builder, batches, np.array(y.zero_point, y.dtype))
    for pixels, phase in _phases(call, image, batches):
        move(builder, pixels, phase)


def lower_batch_to_space(call: Call, builder: ProgramBuilder) -> None:
    """Move the images to the pixels of their phase, but for those that are cropped."""
    batches, image = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    for pixels, phase in _phases(call, image, batches):
        move(builder, phase, pixels)


def _phases(call: Call, image: Part, batches: Part) -> list[tuple[Part, Part]]:
    """Return for each phase its pixels of the image, and where in the batches they are.

    Pixel ``p`` of an axis is position ``q`` of phase ``f``: ``p = q * block + f - before``.
    """
    blocks, before = integers(call.input(1)), integers(call.input(2))[::2]
    shape = batches.array.shape
    split = batches.array.reshape(*blocks, shape[0] // math.prod(blocks), *shape[1:])
    found = []
    for phase in product(*map(range, blocks)):
        near: list[slice] = [slice(None)]
        far: list[slice] = [slice(None)]
        for axis, (f, block, lead) in enumerate(zip(phase, blocks, before, strict=True), 1):
            first = max(-((f - lead) // block), 0)
            last = min(-((f - lead - image.array.shape[axis]) // block), shape[axis])
            start = first * block + f - lead
            near.append(slice(start, start + (last - first) * block, block))
            far.append(slice(first, last))
            if last <= first:
                break
        else:
            pixels = image[tuple(near)]
            found.append((pixels, batches.seen(split[phase][tuple(far)])))
    return found


BLOCK_TYPES = ("FLOAT32", "INT8", "UINT8", "INT32", "INT64")

register(
    {
        "TRANSPOSE": Operator(check_arranged, lower_transpose, TYPES, FEATURES),
        "TILE": Operator(check_arranged, lower_tile, TYPES, FEATURES),
        "BROADCAST_TO": Operator(check_arranged, lower_broadcast_to, TYPES, FEATURES),
        "REVERSE_V2": Operator(check_reverse, lower_reverse, WITH_HALVES, FEATURES),
        "SPACE_TO_DEPTH": Operator(check_moved, lower_space_to_depth, BLOCK_TYPES, FEATURES),
        "DEPTH_TO_SPACE": Operator(check_moved, lower_depth_to_space, BLOCK_TYPES, FEATURES),
        "SPACE_TO_BATCH_ND": Operator(check_space_batch, lower_space_to_batch, TYPES, FEATURES),
        "BATCH_TO_SPACE_ND": Operator(check_space_batch, lower_batch_to_space, TYPES, FEATURES),
    }
)
