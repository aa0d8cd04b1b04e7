"""Claims and lowering of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from delegraph.arithmetic import integers
from delegraph.errors import OperatorError
from delegraph_numba_cpu.lowering.checks import require_asked
from delegraph_numba_cpu.lowering.moves.moves import Part, fill, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, move_check
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


register(
    {
        "SPACE_TO_BATCH_ND": Operator(
            move_check(1, 2, inputs=3), lower_space_to_batch, TYPES, FEATURES
        ),
        "BATCH_TO_SPACE_ND": Operator(
            move_check(1, 2, inputs=3), lower_batch_to_space, TYPES, FEATURES
        ),
    }
)
