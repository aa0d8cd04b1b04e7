"""Functions on vectors of bytes that need instructions of AVX2 or AVX-512."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from delegraph_numba_cpu.codegen import avx512
from delegraph_numba_cpu.codegen.intrinsics import I8, I16, I32, call
from delegraph_numba_cpu.codegen.lanes import Lanes, by_parts
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.codegen.vector_ir import integer, load

VECTOR_BYTES = level().vector_bytes

IS_THERE = level().machine == "x86_64" and VECTOR_BYTES >= 32
"""Whether kernels may use the functions of this module."""

_FAMILY, _SUFFIX = ("avx512", ".512") if avx512.IS_THERE else ("avx2", "")
_PART = 16
"""Number of adjacent bytes within which an instruction shuffles or packs bytes."""


def nearest_integer(x: Lanes) -> Lanes:
    """Return the int32 nearest to floats, halves to even; the least int32 if none is near."""
    kind = ir.VectorType(I32, VECTOR_BYTES // 4)

    def convert(builder: Any, x: Any) -> Any:
        if not avx512.IS_THERE:
            return call(builder, "llvm.x86.avx.cvt.ps2dq.256", kind, [x])
        arguments = [x, ir.Constant(kind, [0] * 16), avx512.ALL, avx512.CURRENT_ROUNDING]
        return call(builder, "llvm.x86.avx512.mask.cvtps2dq.512", kind, arguments)

    return by_parts(kind.count, convert, x)


def saturated_bytes(x: Lanes, *, signed: bool, zero: Lanes | None = None) -> Lanes:
    """Return int32 as the nearest bytes, int8 if *signed*, otherwise uint8.

    They are first clamped to int16, to which *zero* is added if given. There are as many elements
    as a vector has bytes.
    """
    builder, quarter = x.builder, VECTOR_BYTES // 4
    words, kind = ir.VectorType(I16, 2 * quarter), ir.VectorType(I8, VECTOR_BYTES)
    parts = [x.taken(range(i, i + quarter)).value for i in range(0, VECTOR_BYTES, quarter)]
    halves = [_packed(builder, "packssdw", words, *parts[i : i + 2]) for i in (0, 2)]
    if zero is not None:
        summand = zero.narrow(I16).taken(range(2 * quarter)).value
        name = f"llvm.sadd.sat.v{2 * quarter}i16"
        halves = [call(builder, name, words, [half, summand]) for half in halves]
    zipped = _packed(builder, "packsswb" if signed else "packuswb", kind, *halves)
    dwords = Lanes(builder, builder.bitcast(zipped, ir.VectorType(I32, quarter)))
    # Each 16 bytes hold four elements of each part.
    count = VECTOR_BYTES // _PART
    order = [4 * (i % count) + i // count for i in range(quarter)]
    return Lanes(builder, builder.bitcast(dwords.taken(order).value, kind))


def looked_up(x: Lanes, table: Any) -> Lanes:
    """Return the bytes at the indices *x* of a constant table of 256 bytes at address *table*.

    A shuffle selects one of 16 entries by an index, and gives 0 for a negative index. There is a
    shuffle for each 16 entries. From one to the next, 16 is subtracted from the indices, and the
    entries are xored with the 16 entries before. So the xor of all results is the entry that the
    last non-negative index selects.
    """
    builder, kind = x.builder, x.type
    found = []
    for half in (0, 128):
        index, before = x ^ half, None
        for start in range(half, half + 128, _PART):
            entries = _entries(x, table, start)
            chosen = entries if before is None else entries ^ before
            shuffled = call(
                builder, f"llvm.x86.{_FAMILY}.pshuf.b{_SUFFIX}", kind, [chosen.value, index.value]
            )
            found.append(Lanes(builder, shuffled))
            before = entries
            less = [index.value, index.constant(_PART)]
            index = Lanes(builder, call(builder, f"llvm.ssub.sat.v{kind.count}i8", kind, less))
    total = found[0]
    for each in found[1:]:
        total = total ^ each
    return total


def _entries(x: Lanes, table: Any, start: int) -> Lanes:
    """Return 16 entries of a constant table from number *start*, repeated in a vector like *x*."""
    builder = x.builder
    part = load(builder, builder.add(table, integer(start)), ir.VectorType(I8, _PART))
    # The table never changes, so the loop need not read it again.
    part.set_metadata("invariant.load", builder.module.add_metadata([]))
    return Lanes(builder, part).taken(i % _PART for i in range(x.type.count))


def _packed(builder: Any, name: str, kind: Any, first: Any, second: Any) -> Any:
    return call(builder, f"llvm.x86.{_FAMILY}.{name}{_SUFFIX}", kind, [first, second])
