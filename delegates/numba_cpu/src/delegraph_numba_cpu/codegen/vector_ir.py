"""Vectors in LLVM IR, for micro-kernels that keep a tile of results in registers.

These functions append instructions to an ``IRBuilder`` and return values; they run while Numba
compiles. They append plain IR, which LLVM can lower for any processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir

from delegraph_numba_cpu.codegen.intrinsics import F32, F64, I1, I8, I16, I32, I64, call, pointer
from delegraph_numba_cpu.codegen.registry import level

LANES = level().vector_bytes // 4
"""Number of float32 or int32 in a vector of the level."""

HAS_BYTE_MASKS = level().vector_bytes == 64
"""Whether loads and stores of the first bytes of a vector are single instructions."""

_NAMES = {F32: "f32", F64: "f64", I1: "i1", I8: "i8", I16: "i16", I32: "i32", I64: "i64"}


def vector(element: Any, lanes: int) -> Any:
    """Return the LLVM type of a vector of *lanes* values of type *element*."""
    return ir.VectorType(element, lanes)


def integer(value: int) -> Any:
    """Return an int64 constant."""
    return ir.Constant(I64, value)


def splat(builder: Any, value: Any, lanes: int) -> Any:
    """Return a vector of copies of a scalar."""
    kind = vector(value.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, first, ir.Constant(vector(I32, lanes), [0] * lanes))


def load(builder: Any, address: Any, kind: Any) -> Any:
    """Return the scalar or vector at an address, which may have any alignment."""
    value = builder.load(pointer(builder, address, kind))
    value.align = 1
    return value


def store(builder: Any, value: Any, address: Any) -> None:
    """Write a scalar or vector to an address, which may have any alignment."""
    done = builder.store(value, pointer(builder, address, value.type))
    done.align = 1


_ANCHORS, _SCALES = (0, 1, 2, 8, 3), (0, 1, 2, 4, 8)


def strided(builder: Any, first: Any, step: Any, count: int) -> list[Any]:
    """Return *count* addresses, at most 16, which begin at *first* and are *step* bytes apart.

    They are for use in the body of a loop. LLVM would keep a register for each address, or store it
    in memory. Three registers are enough, since x86 adds to an address another register times 1, 2,
    4 or 8 without an instruction. LLVM uses these forms only if it cannot see how the registers
    were computed.
    """
    units = {n: _hidden(builder, builder.mul(step, integer(n))) for n in (1, 3)}
    anchors = {0: first}
    found: list[Any] = []
    for number in range(count):
        anchor, unit, scale = next(
            (anchor, unit, scale)
            for anchor in _ANCHORS
            for unit in units
            for scale in _SCALES
            if anchor + unit * scale == number
        )
        if anchor not in anchors:
            anchors[anchor] = _hidden(builder, found[anchor])
        offset = builder.mul(units[unit], integer(scale))
        found.append(builder.add(anchors[anchor], offset))
    return found


def _hidden(builder: Any, value: Any) -> Any:
    """Return *value* after an empty instruction that hides from LLVM how it was computed."""
    kind = ir.FunctionType(I64, [I64])
    return builder.asm(kind, "", "=r,0", [value], side_effect=True)


def first_lanes(builder: Any, count: Any, lanes: int) -> Any:
    """Return a mask of the first *count* lanes; of none if *count* < 0, at most of all lanes."""
    if lanes == 64 and HAS_BYTE_MASKS:  # one instruction makes all 64 bits
        for name, bound in (("smax", 0), ("smin", 64)):
            count = call(builder, f"llvm.{name}.i64", I64, [count, integer(bound)])
        bits = call(builder, "llvm.x86.bmi.bzhi.64", I64, [integer(-1), count])
        return builder.bitcast(bits, vector(I1, lanes))
    numbers = ir.Constant(vector(I32, lanes), list(range(lanes)))
    return builder.icmp_signed("<", numbers, splat(builder, builder.trunc(count, I32), lanes))


def hidden_lanes(builder: Any, lanes: int, first: int) -> Any:
    """Return a mask of the lanes from *first* on, which LLVM does not recognize as a constant.

    Where LLVM recognizes the mask, it selects between copies of two values by a slow permutation.
    """
    bits = _hidden(builder, integer((1 << lanes) - (1 << first)))
    return builder.bitcast(builder.trunc(bits, ir.IntType(lanes)), vector(I1, lanes))


def masked_load(builder: Any, address: Any, mask: Any, kind: Any) -> Any:
    """Return a vector from memory; lanes outside *mask* are 0, and their memory is not read."""
    arguments = [
        pointer(builder, address, kind),
        ir.Constant(I32, 1),
        mask,
        ir.Constant(kind, [0] * kind.count),
    ]
    return call(builder, f"llvm.masked.load.{_suffix(kind)}.p0", kind, arguments)


def masked_store(builder: Any, value: Any, address: Any, mask: Any) -> None:
    """Write the lanes of *value* that are in *mask* to memory, and no others."""
    arguments = [value, pointer(builder, address, value.type), ir.Constant(I32, 1), mask]
    call(builder, f"llvm.masked.store.{_suffix(value.type)}.p0", ir.VoidType(), arguments)


def load_first(builder: Any, address: Any, count: Any, kind: Any) -> Any:
    """Return a vector of the first *count* elements at an address; other lanes are 0 and not read.

    On processors without masks for bytes, LLVM would test each byte. Pieces of 1, 2, 4, ... bytes
    take fewer tests.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        address: address of the first element.
        count: int64, less than the number of lanes; nothing is read if it is not positive.
        kind: type of the vector.
    """
    if HAS_BYTE_MASKS or kind.element != I8:
        return masked_load(builder, address, first_lanes(builder, count, kind.count), kind)
    count = call(builder, "llvm.smax.i64", I64, [count, integer(0)])
    found, size = ir.Constant(kind, [0] * kind.count), 1
    while size < kind.count:
        before = builder.block
        with builder.if_then(_has_bit(builder, count, size)):
            place = builder.add(address, builder.and_(count, integer(-2 * size)))
            piece = load(builder, place, vector(I8, size))
            longer = lanes_of(builder, piece, piece, [min(i, size - 1) for i in range(kind.count)])
            lanes = [i if i < size else kind.count + i - size for i in range(kind.count)]
            joined, inside = lanes_of(builder, longer, found, lanes), builder.block
        found, size = merged(builder, (found, before), (joined, inside)), 2 * size
    return found


def store_first(builder: Any, value: Any, address: Any, count: Any) -> None:
    """Write the first *count* elements of *value* to *address*; nothing if *count* is negative."""
    kind = value.type
    if HAS_BYTE_MASKS or kind.element != I8:
        masked_store(builder, value, address, first_lanes(builder, count, kind.count))
        return
    count, size = call(builder, "llvm.smax.i64", I64, [count, integer(0)]), kind.count // 2
    while size:
        before = builder.block
        with builder.if_then(_has_bit(builder, count, size)):
            store(builder, lanes_of(builder, value, value, range(size)), address)
            rest = [min(i + size, kind.count - 1) for i in range(kind.count)]
            rest_at = builder.add(address, integer(size))
            shifted, inside = lanes_of(builder, value, value, rest), builder.block
        value = merged(builder, (value, before), (shifted, inside))
        address = merged(builder, (address, before), (rest_at, inside))
        size //= 2


def _has_bit(builder: Any, count: Any, bit: int) -> Any:
    return builder.icmp_signed("!=", builder.and_(count, integer(bit)), integer(0))


def lanes_of(builder: Any, a: Any, b: Any, lanes: Iterable[int]) -> Any:
    """Return those elements of two vectors, counted together, that have the numbers *lanes*."""
    numbers = list(lanes)
    return builder.shuffle_vector(a, b, ir.Constant(vector(I32, len(numbers)), numbers))


def halves_of(builder: Any, x: Any) -> tuple[Any, Any]:
    """Return the first and the second half of a vector's lanes."""
    count = x.type.count // 2
    first, second = (lanes_of(builder, x, x, range(n, n + count)) for n in (0, count))
    return first, second


def joined(builder: Any, x: Any, y: Any = None) -> Any:
    """Return a vector of the lanes of *x* and then of *y*; without *y*, the lanes of *x* twice."""
    return lanes_of(builder, x, x if y is None else y, range(2 * x.type.count))


def multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x * y + z of floats, rounded once where the processor has that instruction."""
    return call(builder, f"llvm.fmuladd.{_suffix(x.type)}", x.type, [x, y, z])


def widened_halves(builder: Any, x: Any) -> Any:
    """Return finite float16, given as int16, as float32."""
    kinds = [vector(element, x.type.count) for element in (I32, F32)]
    bits = builder.shl(builder.sext(x, kinds[0]), _splat_of(kinds[0], 13))
    bits = builder.and_(bits, _splat_of(kinds[0], 0x8FFFE000 - (1 << 32)))
    # Exponents have another bias; a product is right for subnormal numbers as well.
    return builder.fmul(builder.bitcast(bits, kinds[1]), _splat_of(kinds[1], 2.0**112))


def _splat_of(kind: Any, value: float) -> Any:
    """Return a vector of copies of a constant."""
    return ir.Constant(kind, [value] * kind.count)


def clamp(builder: Any, x: Any, low: Any, high: Any) -> Any:
    """Return floats clamped to the range from *low* to *high*; NaN stays NaN."""
    x = builder.select(builder.fcmp_ordered("<", x, low), low, x)
    return builder.select(builder.fcmp_ordered(">", x, high), high, x)


def merged(builder: Any, *values: tuple[Any, Any]) -> Any:
    """Return the value whose LLVM block has just run (a phi node), from pairs (value, block)."""
    phi = builder.phi(values[0][0].type)
    for value, block in values:
        phi.add_incoming(value, block)
    return phi


class Loop:
    """A loop that counts from 0 up in steps; its body runs at least once.

    Attributes:
        index: int64, 0, *step*, 2 * *step*, ... in the body.
    """

    def __init__(self, builder: Any, end: Any, step: int = 1) -> None:
        self._builder, self._end, self._step = builder, end, step
        self._before = builder.block
        self._body = builder.append_basic_block("body")
        self._phis: list[Any] = []
        builder.branch(self._body)
        builder.position_at_end(self._body)
        self.index = self.carried(integer(0))

    def carried(self, start: Any) -> Any:
        """Return a loop variable: at first *start*, later the value given to :meth:`close`."""
        phi = self._builder.phi(start.type)
        phi.add_incoming(start, self._before)
        self._phis.append(phi)
        return phi

    def close(self, *values: Any) -> None:
        """End the body of the loop; *values* are the loop variables' next values, in order."""
        builder = self._builder
        following = builder.add(self.index, integer(self._step))
        again = builder.icmp_signed("<", following, self._end)
        end = builder.block
        for phi, value in zip(self._phis, (following, *values), strict=True):
            phi.add_incoming(value, end)
        after = builder.append_basic_block("after")
        builder.cbranch(again, self._body, after)
        builder.position_at_end(after)


def repeated(
    builder: Any,
    start: Any,
    end: Any,
    step: int,
    values: list[Any],
    body: Callable[[Any, list[Any]], list[Any]],
) -> tuple[Any, list[Any]]:
    """Append a loop over the whole steps from *start* to *end*; return its end index and values.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        start: int64.
        end: int64; the last step ends there or before.
        step: difference of consecutive indices.
        values: start values of the loop variables.
        body: function ``(index, values)`` that appends one step and returns the next values.
    """
    before, head = builder.block, builder.append_basic_block("head")
    inside, after = builder.append_basic_block("body"), builder.append_basic_block("after")
    last = builder.sub(end, integer(step))
    builder.branch(head)
    builder.position_at_end(head)
    phis = [builder.phi(value.type) for value in (start, *values)]
    for phi, value in zip(phis, (start, *values), strict=True):
        phi.add_incoming(value, before)
    builder.cbranch(builder.icmp_signed("<=", phis[0], last), inside, after)
    builder.position_at_end(inside)
    found = (builder.add(phis[0], integer(step)), *body(phis[0], phis[1:]))
    for phi, value in zip(phis, found, strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return phis[0], phis[1:]


def _suffix(kind: Any) -> str:
    """Return the name of a type as it is part of intrinsics' names, such as ``v16f32``."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_NAMES[kind.element]}"
    return _NAMES[kind]
