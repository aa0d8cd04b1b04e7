"""SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND, SPACE_TO_DEPTH and DEPTH_TO_SPACE: blocks of pixels."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from delegraph.arithmetic import integers
from delegraph.errors import OperatorError
from delegraph_numba_cpu.lowering.checks import require_asked
from delegraph_numba_cpu.lowering.moves.moves import Part, fill, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, check_moved, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_space_to_batch(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls that copy the pixels at each position of the blocks to a separate image.

    Padding is 0 or the zero point.
    """
    image, batches = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    if any(integers(call.input(2))):
        y = call.output()
        zero = y.zero_point if y.type.name in ("UINT8", "INT8") else 0
        fill(builder, batches, np.array(zero, y.dtype))
    for pixels, phase in _phases(call, image, batches):
        move(builder, pixels, phase)


def lower_batch_to_space(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls that copy each image's pixels to one position of the output's blocks.

    Cropped pixels are left out.
    """
    batches, image = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    for pixels, phase in _phases(call, image, batches):
        move(builder, phase, pixels)


def _phases(call: Call, image: Part, batches: Part) -> list[tuple[Part, Part]]:
    """Return, for each phase, its part of the image and its part of the batches.

    Pixel ``p`` of an axis is position ``q`` of phase ``f``: ``p = q * block + f - before``.

    Raises:
        OperatorError: the output's shape contradicts block sizes and paddings.
    """
    blocks, around = integers(call.input(1)), integers(call.input(2))
    shape, before = batches.array.shape, around[::2]
    if min(blocks, default=1) < 1 or min(around, default=0) < 0:
        raise OperatorError(f"blocks of {blocks} with {around} around them")
    sizes = image.array.shape[1 : len(blocks) + 1]
    wide = (n + a + b for n, a, b in zip(sizes, before, around[1::2], strict=True))
    require_asked("sizes", wide, (n * m for n, m in zip(shape[1:], blocks, strict=False)))
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


def lower_space_to_depth(call: Call, builder: ProgramBuilder) -> None:
    """Add a kernel call that copies the pixels of each block to the channels of one pixel."""
    image, deep = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    move(builder, *_by_blocks(call, image, deep))


def lower_depth_to_space(call: Call, builder: ProgramBuilder) -> None:
    """Add a kernel call that copies the channels of each pixel to the pixels of a block."""
    deep, image = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    blocks, pixels = _by_blocks(call, image, deep)
    move(builder, pixels, blocks)


def _by_blocks(call: Call, image: Part, deep: Part) -> tuple[Part, Part]:
    """Return the pixels of *image* and the channels of *deep*, both as ``[N, H, W, B, B, C]``."""
    n, h, w, _ = deep.array.shape
    size, c = int(call.options.block_size), image.array.shape[3]
    blocks = image.array.reshape(n, h, size, w, size, c).transpose(0, 1, 3, 2, 4, 5)
    return image.seen(blocks), deep.seen(deep.array.reshape(blocks.shape))


register(
    {
        "SPACE_TO_BATCH_ND": Operator(
            move_check(1, 2, inputs=3), lower_space_to_batch, TYPES, FEATURES
        ),
        "BATCH_TO_SPACE_ND": Operator(
            move_check(1, 2, inputs=3), lower_batch_to_space, TYPES, FEATURES
        ),
        "SPACE_TO_DEPTH": Operator(check_moved, lower_space_to_depth, BLOCK_TYPES, FEATURES),
        "DEPTH_TO_SPACE": Operator(check_moved, lower_depth_to_space, BLOCK_TYPES, FEATURES),
    }
)
