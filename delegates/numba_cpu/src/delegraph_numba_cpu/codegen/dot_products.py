"""Dot products of four bytes, and their conversion to bytes, in LLVM IR for each level.

All functions compute 16 int32 at once; LLVM splits them for shorter vectors. Activations are
unsigned and weights signed, as in VNNI's instruction. AArch64 without such an instruction
subtracts 128 from activations; see :func:`seen`.
"""

from __future__ import annotations

from llvmlite import ir

from delegraph_numba_cpu.codegen import dot_products_neon
from delegraph_numba_cpu.codegen.intrinsics import F32, F64, I8, I16, I32, I64, call
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.codegen.vector_ir import (
    halves_of,
    lanes_of,
    load,
    merged,
    splat,
    vector,
)

LANES = 16
"""Number of channels that are computed together on every level."""

V16I32, V16F32, V16F64 = vector(I32, LANES), vector(F32, LANES), vector(F64, LANES)
V16I8 = vector(I8, LANES)

_HAS_AVX512 = "avx512vnni" in level().needs
_HAS_AVX2 = level().vector_bytes == 32
_HAS_VNNI = _HAS_AVX512 or "avxvnni" in level().needs
HAS_MADD = level().has_int16_pairs
"""Whether bytes are multiplied as int16, and adjacent products added, by ``vpmaddwd``.

That instruction never saturates.
"""
_ROUND_DOWN = 9  # towards negative infinity, and no floating-point exceptions


def constant(value, kind=V16I32):
    """Return a vector of copies of the constant *value*."""
    return ir.Constant(kind, [value] * kind.count)


SEEN = int.from_bytes(bytes([level().byte_shift]) * 4, "little")
"""Number with which four unsigned activations are xored before they are multiplied."""


def seen(builder, x):
    """Return unsigned activations *x* as products need them: on some levels, minus 128.

    *x* is a vector of bytes, or an integer of 8 or 32 bits. See ``CpuLevel.byte_shift``.
    """
    if not level().byte_shift:
        return x
    lanes = getattr(x.type, "count", None)
    width = (x.type.element if lanes else x.type).width
    bits = SEEN & ((1 << width) - 1)
    return builder.xor(x, ir.Constant(x.type, [bits] * lanes if lanes else bits))


def prepare_weights(builder, weights):
    """Return weights in the form that :func:`dot` takes: 16 times four signed bytes.

    The result serves for all activations.
    """
    if _HAS_VNNI or dot_products_neon.IS_THERE:
        return weights
    if HAS_MADD:
        pairs = builder.bitcast(weights, vector(I16, 2 * weights.type.count))
        eight = constant(8, pairs.type)
        even = builder.ashr(builder.shl(pairs, eight), eight)
        return even, builder.ashr(pairs, eight)
    shifted = [builder.shl(weights, constant(24 - 8 * i)) for i in range(3)] + [weights]
    return [builder.ashr(each, constant(24)) for each in shifted]


def nibbles(builder, packed):
    """Return the weights in the low halves of bytes, and those in the high halves, all times 16.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        packed: a vector of bytes, or of four in an int32; weights are signed.
    """
    high = constant(0xF0F0F0F0 & ((1 << packed.type.element.width) - 1), packed.type)
    low = builder.shl(packed, constant(4, packed.type))
    return builder.and_(low, high), builder.and_(packed, high)


def dot(builder, acc, activations, weights):
    """Return 16 int32: *acc* plus dot products of four activations and four signed weights.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        acc: 16 int32.
        activations: four bytes in one int32 for all results, or in each of 16 int32: unsigned, or
            as :func:`seen` returns them.
        weights: see :func:`prepare_weights`.
    """
    if dot_products_neon.IS_THERE:
        return dot_products_neon.dot_of_16(builder, acc, _spread(builder, activations), weights)
    if not _HAS_VNNI and not HAS_MADD:
        for i, weight in enumerate(weights):
            taken = _field(builder, activations, 8 * i, 255)
            acc = builder.add(acc, builder.mul(_spread(builder, taken), weight))
        return acc
    if HAS_MADD:
        return dot_halves(builder, acc, _halves(builder, _spread(builder, activations)), weights)
    bytes_of = [
        builder.bitcast(each, vector(I8, 4 * LANES))
        for each in (_spread(builder, activations), weights)
    ]
    if _HAS_AVX512:
        return call(builder, "llvm.x86.avx512.vpdpbusd.512", V16I32, [acc, *bytes_of])
    return _by_ymm(builder, "llvm.x86.avx512.vpdpbusd.256", vector(I32, 8), acc, *bytes_of)


def add_sums(builder, accumulators, sums):
    """Return accumulators plus one number per row, which is added to all accumulators of the row.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        accumulators: a list of vectors for each row.
        sums: address of an int32 for each row; 0 if nothing is added.
    """
    before = builder.block
    with builder.if_then(builder.icmp_signed("!=", sums, ir.Constant(I64, 0)), likely=False):
        added = []
        for m, values in enumerate(accumulators):
            total = load(builder, builder.add(sums, ir.Constant(I64, 4 * m)), I32)
            added.append([builder.add(x, splat(builder, total, x.type.count)) for x in values])
        inside = builder.block
    return [
        [merged(builder, (x, before), (y, inside)) for x, y in zip(*rows, strict=True)]
        for rows in zip(accumulators, added, strict=True)
    ]


def dot_halves(builder, acc, halves, weights):
    """Return *acc* plus the dot products of weights and activations that are int16 pairs.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        acc: 8 or 16 int32.
        halves: the even and the odd bytes of unsigned activations, each as pairs of int16.
        weights: see :func:`prepare_weights`.
    """
    for half, weight in zip(halves, weights, strict=True):
        pairs = builder.bitcast(_spread(builder, half, acc.type.count), weight.type)
        acc = builder.add(acc, add_pairs(builder, pairs, weight))
    return acc


def _halves(builder, value):
    """Return the even and the odd bytes of 32-bit words, each as pairs of int16."""
    return [half_of(builder, value, odd) for odd in (False, True)]


def half_of(builder, value, odd):
    """Return the even or, with *odd*, the odd bytes of 32-bit words as pairs of int16."""
    return _field(builder, value, 8 if odd else 0, 0x00FF00FF)


def spread_halves(builder, dwords):
    """Return 32-bit words as one int64 each: the even bytes as two int16, then the odd bytes."""
    wide = builder.zext(dwords, vector(I64, dwords.type.count))
    even = _field(builder, wide, 0, 0x00FF00FF)
    odd = builder.shl(wide, constant(24, wide.type))
    return builder.or_(even, builder.and_(odd, constant(0x00FF00FF << 32, wide.type)))


def _field(builder, value, shift, mask):
    """Return ``(value >> shift) & mask`` of a scalar, or of each lane of a vector."""
    kind = value.type
    number = (lambda n: constant(n, kind)) if isinstance(kind, ir.VectorType) else kind
    if shift:
        value = builder.lshr(value, number(shift))
    return builder.and_(value, number(mask))


def _spread(builder, value, lanes=LANES):
    return value if isinstance(value.type, ir.VectorType) else splat(builder, value, lanes)


def add_pairs(builder, a, b):
    """Return int32: the products of two int16 vectors, added in pairs; exact for *a* < 256."""
    return _by_ymm(builder, "llvm.x86.avx2.pmadd.wd", vector(I32, 8), a, b)


_BITS = {I8: 8, I16: 16, I32: 32, F32: 32}


def _by_ymm(builder, name, result, *operands):
    """Return the result of a 32-byte instruction, applied to each 32 bytes of longer vectors."""
    parts, first = [], operands[0].type
    for part in range(first.count * _BITS[first.element] // 256):
        taken = []
        for x in operands:
            size = 256 // _BITS[x.type.element]
            lanes = list(range(part * size, (part + 1) * size))
            taken.append(builder.shuffle_vector(x, x, ir.Constant(vector(I32, size), lanes)))
        parts.append(call(builder, name, result, taken))
    if len(parts) == 1:
        return parts[0]
    lanes = list(range(2 * result.count))
    return builder.shuffle_vector(*parts, ir.Constant(vector(I32, len(lanes)), lanes))


ROUNDS_QUICKLY = _HAS_AVX512 or _HAS_AVX2
"""Whether one instruction does :func:`rounded_to_even`, and one adds products without rounding."""


def rounded_to_even(builder, x):
    """Return 16 float32 as int32, rounded to nearest, halves to even."""
    if _HAS_AVX512:
        mask = ir.Constant(I16, -1)
        arguments = [x, constant(0), mask, ir.Constant(I32, 4)]
        return call(builder, "llvm.x86.avx512.mask.cvtps2dq.512", V16I32, arguments)
    if _HAS_AVX2:
        return _by_ymm(builder, "llvm.x86.avx.cvt.ps2dq.256", vector(I32, 8), x)
    return builder.fptosi(call(builder, "llvm.rint.v16f32", V16F32, [x]), V16I32)


def rounded_down(builder, x):
    """Return 16 float64 as int32, rounded down."""
    if not _HAS_AVX512:
        return builder.fptosi(call(builder, "llvm.floor.v16f64", V16F64, [x]), V16I32)
    halves, eight = [], vector(I32, 8)
    for start in (0, 8):
        lanes = ir.Constant(eight, list(range(start, start + 8)))
        half = builder.shuffle_vector(x, x, lanes)
        arguments = [half, constant(0, eight), ir.Constant(I8, -1), ir.Constant(I32, _ROUND_DOWN)]
        halves.append(call(builder, "llvm.x86.avx512.mask.cvtpd2dq.512", eight, arguments))
    return builder.shuffle_vector(*halves, ir.Constant(V16I32, list(range(LANES))))


def clamped(builder, x, low, high):
    """Return 16 int32 clamped between the vectors *low* and *high*."""
    for name, limit in (("smax", low), ("smin", high)):
        x = call(builder, f"llvm.{name}.v16i32", V16I32, [x, limit])
    return x


def narrowed(builder, vectors, low, high):
    """Return vectors of 16 int32 as bytes, clamped.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        vectors: any number; four of them are packed together where that is cheaper.
        low: int64, at least -128.
        high: int64, at most 255.
    """
    if len(vectors) == 4 and _HAS_AVX2:
        return _narrowed_by_ymm(builder, vectors, low, high)
    if len(vectors) != 4 or not _HAS_AVX512:
        limits = [splat(builder, builder.trunc(bound, I32), LANES) for bound in (low, high)]
        return [builder.trunc(clamped(builder, each, *limits), V16I8) for each in vectors]
    words, kind = vector(I16, 32), vector(I8, 64)
    halves = []
    for i in (0, 2):
        x = call(builder, "llvm.x86.avx512.packssdw.512", words, vectors[i : i + 2])  # saturates
        for name, bound in (("smax", low), ("smin", high)):
            limit = splat(builder, builder.trunc(bound, I16), words.count)
            x = call(builder, f"llvm.{name}.v32i16", words, [x, limit])
        halves.append(builder.bitcast(x, kind))
    # Every 16 bytes hold four int16 of one vector, then four of the next.
    return [
        builder.shuffle_vector(
            *halves,
            ir.Constant(
                vector(I32, LANES),
                [64 * (v // 2) + 16 * (c // 4) + 8 * (v % 2) + 2 * (c % 4) for c in range(LANES)],
            ),
        )
        for v in range(4)
    ]


def _narrowed_by_ymm(builder, vectors, low, high):
    """Return four vectors of 16 int32 as bytes, clamped to *low* and *high*, by AVX2."""
    words, limits = [], [splat(builder, builder.trunc(bound, I16), 16) for bound in (low, high)]
    for vector_of_16 in vectors:
        x = call(
            builder, "llvm.x86.avx2.packssdw", vector(I16, 16), halves_of(builder, vector_of_16)
        )  # saturates
        for name, limit in zip(("smax", "smin"), limits, strict=True):
            x = call(builder, f"llvm.{name}.v16i16", x.type, [x, limit])
        words.append(builder.and_(x, constant(255, x.type)))
    halves = []
    for pair in (words[:2], words[2:]):
        packed = call(builder, "llvm.x86.avx2.packuswb", vector(I8, 32), pair)
        dwords = builder.bitcast(packed, vector(I32, 8))  # of each row, 0 2 of 4, then 1 3
        ordered = lanes_of(builder, dwords, dwords, (0, 4, 1, 5, 2, 6, 3, 7))
        halves.append(halves_of(builder, builder.bitcast(ordered, packed.type)))
    return [row for pair in halves for row in pair]


GROUP = 4
"""Number of vectors of 16 channels whose lanes are interleaved, so that packing bytes is cheap."""


def zipped(builder, rows):
    """Return four vectors of 16 words; a word has one byte of each of four rows of 64 bytes.

    Lane e of vector j holds channel ``16 * (e // 4) + 4 * j + e % 4``. This order is the cheapest,
    because instructions zip two registers within each 16 bytes.
    """
    bytes_of = [
        [_zip(builder, a, b, high) for high in (False, True)]
        for a, b in (rows[:2], rows[2:])
    ]  # fmt: skip
    pairs = vector(I16, 32)
    above, below = ([builder.bitcast(each, pairs) for each in half] for half in bytes_of)
    found = [
        _zip(builder, a, b, high)
        for a, b in zip(above, below, strict=True)
        for high in (False, True)
    ]
    return [builder.bitcast(each, V16I32) for each in found]


ZIPS_16 = _HAS_AVX2
"""Whether :func:`zipped_16` is faster than widening bytes to words."""


def zipped_16(builder, rows):
    """Return 16 words as four vectors; a word has one byte of each of four rows of 16 bytes."""
    pairs = [
        [_zip_16(builder, a, b, half) for half in (0, 1)]
        for a, b in (rows[:2], rows[2:])
    ]  # fmt: skip
    words = [[builder.bitcast(x, vector(I16, 8)) for x in half] for half in pairs]
    return [
        _zip_16(builder, above, below, half)
        for above, below in zip(*words, strict=True)
        for half in (0, 1)
    ]


def _zip_16(builder, a, b, half):
    """Return elements of one half of *a* and of *b*, 16 bytes each, in turn.

    *half* is 0 for the first halves, and 1 for the second halves.
    """
    count = a.type.count
    return lanes_of(
        builder, a, b, [half * count // 2 + i // 2 + count * (i % 2) for i in range(count)]
    )


def _zip(builder, a, b, high):
    """Return elements of *a* and *b* in turn, from the low or the *high* half of each 16 bytes."""
    count = a.type.count
    run = count // 4  # elements of 16 bytes
    first = run // 2 if high else 0
    lanes = [part * run + first + i // 2 + count * (i % 2) for part in range(4) for i in range(run)]
    return builder.shuffle_vector(a, b, ir.Constant(vector(I32, count), lanes))


def unzipped(builder, vectors, low, high):
    """Return 64 clamped bytes from four int32 *vectors* in the order that :func:`zipped` gives.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        vectors: int32.
        low: int64, at least 0.
        high: int64, at most 255.
    """
    if _HAS_AVX512 or _HAS_AVX2:
        x = _packed(builder, vectors)  # saturates
        for name, bound in (("umax", low), ("umin", high)):
            limit = splat(builder, builder.trunc(bound, I8), 64)
            x = call(builder, f"llvm.{name}.v64i8", x.type, [x, limit])
        return x
    limits = [splat(builder, builder.trunc(bound, I32), LANES) for bound in (low, high)]
    parts = [builder.trunc(clamped(builder, each, *limits), V16I8) for each in vectors]
    wide = ir.Constant(vector(I32, 32), list(range(32)))
    halves = [builder.shuffle_vector(*parts[i : i + 2], wide) for i in (0, 2)]
    lanes = [16 * (c // 4 % 4) + c // 16 * 4 + c % 4 for c in range(64)]
    return builder.shuffle_vector(*halves, ir.Constant(vector(I32, 64), lanes))


def _packed(builder, vectors):
    """Return all int32 as saturated unsigned bytes; each 16 bytes have four of each vector."""
    words, kind = vector(I16, 32), vector(I8, 64)
    if _HAS_AVX512:
        halves = [
            call(builder, "llvm.x86.avx512.packssdw.512", words, vectors[i : i + 2]) for i in (0, 2)
        ]
        return call(builder, "llvm.x86.avx512.packuswb.512", kind, halves)
    halves = [
        _by_ymm(builder, "llvm.x86.avx2.packssdw", vector(I16, 16), *vectors[i : i + 2])
        for i in (0, 2)
    ]
    return _by_ymm(builder, "llvm.x86.avx2.packuswb", vector(I8, 32), *halves)
