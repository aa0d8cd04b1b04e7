"""Packs computed 8-bit matrices at run time, in place of constant packed weights."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import conv_int8 as instructions
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import Product
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder, aligned

MATRIX_BYTES = 8 * len(instructions.MATRIX.names)

BYTES_A_TILE = 20_000
"""Number of bytes of matrices that a tile packs, in some microseconds."""


def emit_packed(
    call: Call,
    builder: ProgramBuilder,
    product: Product,
    source: Memory,
    images: int,
    weight_zero: int,
) -> Memory:
    """Add a kernel call that packs computed 8-bit matrices; return the memory of their records.

    Args:
        call: the node that is turned into kernel calls.
        builder: builder of the program, to which the kernel call is added.
        product: constants of a product whose weights are computed at run time.
        source: the matrices, ``[images, O, K], int8``.
        images: number of matrices.
        weight_zero: zero point of the matrices.
    """
    outputs, depth = product.weight.shape
    blocks_of_16, steps = -(-outputs // 16), -(-depth // 4)
    record = {
        "weights": 0, "headers": 0, "depth": depth, "steps": steps, "block_bytes": 64 * steps,
        "outputs": outputs, "low": product.low, "high": product.high,
        "rounding": product.rounding(builder.exact), "out_flip": product.out_flip(0),
        "sum_factor": -weight_zero,
    }  # fmt: skip
    name = (call.node.outputs[0], builder.exact, outputs, depth)
    headers = aligned(MATRIX_BYTES * images)
    weights = headers + instructions.HEADER_BYTES * blocks_of_16 * images
    packed = builder.scratch(weights + 64 * steps * blocks_of_16 * images)
    packed.instruction = instructions.MATRIX
    made = record | {"weights": packed + weights, "headers": packed + headers}
    packed.records = (made,) * images
    size = images * outputs * depth
    builder.emit(
        instructions.PACK_STACK,
        max(1, min(builder.workers, images * -(-outputs // 64), size // BYTES_A_TILE)),
        source=source,
        weights=packed + weights,
        headers=packed + headers,
        matrices=packed,
        header=builder.packed(("headers", *name), lambda: product.headers(builder.exact)),
        matrix=builder.record(instructions.MATRIX, **record),
        images=images,
        depth=depth,
        outputs=outputs,
        zero=product.zero - builder.level.byte_shift,
        weight_zero=weight_zero,
    )
    return packed
