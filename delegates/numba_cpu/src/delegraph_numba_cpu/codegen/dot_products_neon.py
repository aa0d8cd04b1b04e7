"""Dot products of four bytes on AArch64, in LLVM IR: four for each pair of 16-byte vectors.

The feature ``dotprod`` has an instruction for signed bytes; ``i8mm`` has one for unsigned times
signed bytes. Older processors add products of 8 bytes in pairs to int32, so sums are in two halves.
"""

from __future__ import annotations

from llvmlite import ir

from delegraph_numba_cpu.codegen.intrinsics import I8, I16, I32, call
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.codegen.vector_ir import vector

IS_THERE = level().machine == "aarch64"
"""Whether kernels may use the functions of this module."""

V4I32, V16I8 = vector(I32, 4), vector(I8, 16)
_V8I16 = vector(I16, 8)

_HAS_DOT = "dotprod" in level().needs
_HAS_MIXED_DOT = "i8mm" in level().needs
_ZERO = ir.Constant(V4I32, [0] * 4)

NOTHING = (_ZERO,) if _HAS_DOT else (_ZERO, _ZERO)
"""Start value of the sums of :func:`dot`: zeros."""


def dot(builder, sums, activations, weights):
    """Return *sums* plus four dot products, each of four activations and four weights.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        sums: the previous sums, at first :data:`NOTHING`.
        activations: 16 bytes: unsigned if the processor has ``i8mm``. Otherwise they are signed,
            the unsigned activations minus 128; see :func:`dot_products.seen`.
        weights: 16 signed bytes.
    """
    if _HAS_MIXED_DOT:
        arguments = [*sums, activations, weights]
        return [call(builder, "llvm.aarch64.neon.usdot.v4i32.v16i8", V4I32, arguments)]
    if _HAS_DOT:
        arguments = [*sums, weights, activations]  # LLVM looks for a lane in the last operand
        return [call(builder, "llvm.aarch64.neon.sdot.v4i32.v16i8", V4I32, arguments)]
    found = []
    for half, total in enumerate(sums):
        lanes = ir.Constant(vector(I32, 8), list(range(8 * half, 8 * half + 8)))
        operands = [builder.shuffle_vector(x, x, lanes) for x in (activations, weights)]
        products = call(builder, "llvm.aarch64.neon.smull.v8i16", _V8I16, operands)
        pairs = call(builder, "llvm.aarch64.neon.saddlp.v4i32.v8i16", V4I32, [products])
        found.append(builder.add(total, pairs))
    return found


def total(builder, sums):
    """Return the four int32 sums from *sums*, which :func:`dot` holds in one or two vectors."""
    if _HAS_DOT:
        return sums[0]
    return call(builder, "llvm.aarch64.neon.addp.v4i32", V4I32, sums)


def quarters(builder, x):
    """Return a vector of 16 int32 as four vectors of 4 int32."""
    four = vector(I32, 4)
    return [
        builder.shuffle_vector(x, x, ir.Constant(four, list(range(i, i + 4))))
        for i in range(0, 16, 4)
    ]


def joined(builder, parts):
    """Return four vectors of 4 int32 as one vector of 16."""
    while len(parts) > 1:
        count = 2 * parts[0].type.count
        lanes = ir.Constant(vector(I32, count), list(range(count)))
        parts = [builder.shuffle_vector(*parts[i : i + 2], lanes) for i in range(0, len(parts), 2)]
    return parts[0]


def dot_of_16(builder, acc, activations, weights):
    """Return 16 int32: *acc* plus dot products of four activations and four signed weights.

    *activations* and *weights* are vectors of 16 int32, each of which holds four bytes. Activations
    are unsigned or signed as for :func:`dot`.
    """
    found = []
    four = zip(*(quarters(builder, each) for each in (acc, activations, weights)), strict=True)
    for start, *operands in four:
        sums = dot(builder, NOTHING, *(builder.bitcast(each, V16I8) for each in operands))
        found.append(builder.add(start, total(builder, sums)))
    return joined(builder, found)
