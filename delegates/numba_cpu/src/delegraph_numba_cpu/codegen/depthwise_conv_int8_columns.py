"""Packing of columns of 8-bit images, in LLVM IR: words of four vertically adjacent bytes."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import dot_products
from delegraph_numba_cpu.codegen.dot_products import V16I8, V16I32, constant
from delegraph_numba_cpu.codegen.intrinsics import I8, I16, I32
from delegraph_numba_cpu.codegen.vector_ir import integer, load, load_first, splat, store

i64 = types.int64


@intrinsic
def pack_column(context, a, b, c, d, count, flip, target):
    """Store at *target* 16 words of four bytes: a byte each from the addresses *a*, *b*, *c*, *d*.

    Word i is for channel i, whose bytes are i bytes after these addresses. Each byte is xored with
    a byte of *flip*, which has four equal bytes. If *count* is below 16, only the bytes of the
    first *count* channels are read; all others are taken as 0.
    """

    def generate(lowering, builder, signature, arguments):
        *rows, count, flip, target = arguments
        whole = builder.icmp_signed(">=", count, integer(16))
        function = builder.function
        plain, masked, after = (function.append_basic_block(n) for n in ("plain", "part", "then"))
        builder.cbranch(whole, plain, masked)
        builder.position_at_end(plain)
        loaded = [load(builder, row, V16I8) for row in rows]
        builder.branch(after)
        builder.position_at_end(masked)
        some = [load_first(builder, row, count, V16I8) for row in rows]
        masked = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        packed = None
        for i, (full, part) in enumerate(zip(loaded, some, strict=True)):
            byte = builder.phi(V16I8)
            byte.add_incoming(full, plain)
            byte.add_incoming(part, masked)
            rows[i] = byte
        if dot_products.ZIPS_16:
            for i, four in enumerate(dot_products.zipped_16(builder, rows)):
                mask = splat(builder, builder.trunc(flip, I16), 8)
                store(builder, builder.xor(four, mask), builder.add(target, integer(16 * i)))
            return lowering.get_dummy_value()
        for i, byte in enumerate(rows):
            wide = builder.zext(byte, V16I32)
            shifted = builder.shl(wide, constant(8 * i)) if i else wide
            packed = shifted if packed is None else builder.or_(packed, shifted)
        turned = builder.xor(packed, splat(builder, builder.trunc(flip, I32), 16))
        store(builder, turned, target)
        return lowering.get_dummy_value()

    return types.void(i64, i64, i64, i64, i64, i64, i64), generate


@intrinsic
def pack_column_64(context, a, b, c, d, flip, target, apart):
    """Store 64 words of four bytes: a byte each from the addresses *a*, *b*, *c* and *d*.

    The words are in the order of :func:`dot_products.zipped`; each byte is xored with the low byte
    of *flip*. The four vectors of 16 words are stored from *target* on, *apart* bytes apart.
    """

    def generate(lowering, builder, signature, arguments):
        *rows, flip, target, apart = arguments
        mask = splat(builder, builder.trunc(flip, I8), 64)
        kind = ir.VectorType(I8, 64)
        loaded = [builder.xor(load(builder, row, kind), mask) for row in rows]
        for i, packed in enumerate(dot_products.zipped(builder, loaded)):
            store(builder, packed, builder.add(target, builder.mul(apart, integer(i))))
        return lowering.get_dummy_value()

    return types.void(*[i64] * 7), generate
