"""Claims and lowering of SPACE_TO_DEPTH and DEPTH_TO_SPACE."""

from __future__ import annotations

from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, check_moved
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder

BLOCK_TYPES = ("FLOAT32", "INT8", "UINT8", "INT32", "INT64")


def lower_space_to_depth(call: Call, builder: ProgramBuilder) -> None:
    """Add a kernel call that copies the pixels of each block to the channels of one pixel."""
    x, y = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    n, h, w, _ = y.array.shape
    size = int(call.options.block_size)
    c = x.array.shape[3]
    blocks = x.array.reshape(n, h, size, w, size, c).transpose(0, 1, 3, 2, 4, 5)
    move(builder, x.seen(blocks), y.seen(y.array.reshape(blocks.shape)))


def lower_depth_to_space(call: Call, builder: ProgramBuilder) -> None:
    """Add a kernel call that copies the channels of each pixel to the pixels of a block."""
    x, y = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    n, h, w, _ = x.array.shape
    size = int(call.options.block_size)
    c = y.array.shape[3]
    pixels = x.array.reshape(n, h, w, size, size, c).transpose(0, 1, 3, 2, 4, 5)
    move(builder, x.seen(pixels), y.seen(y.array.reshape(pixels.shape)))


register(
    {
        "SPACE_TO_DEPTH": Operator(check_moved, lower_space_to_depth, BLOCK_TYPES, FEATURES),
        "DEPTH_TO_SPACE": Operator(check_moved, lower_depth_to_space, BLOCK_TYPES, FEATURES),
    }
)
