"""Vectors whose Python operators write LLVM IR.

:class:`Lanes` wraps an LLVM vector of any length; LLVM splits or widens it for the processor.
Functions of ``math_functions.py`` and ``elementwise_operations.py`` take and return them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir

from delegraph_numba_cpu.codegen.intrinsics import F32, F64, I32, call

ROUNDING = float(3 << 22)
"""Number that, added to a float32 below 2**22, makes the low bits of the sum the rounded
integer."""


class Lanes:
    """A vector and the IR builder that computes with it; a mask is a vector of bits.

    Operands of arithmetic have equal types, or are Python numbers, which become constants.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value

    @property
    def type(self) -> Any:
        """The LLVM type of the vector."""
        return self.value.type

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats."""
        return self.type.element in (F32, F64)

    def constant(self, number: float) -> Any:
        """Return a vector constant of this type, all of whose elements are *number*."""
        return ir.Constant(self.type, [number] * self.type.count)

    def filled(self, number: float) -> Lanes:
        """Return a vector of copies of a number."""
        return Lanes(self.builder, self.constant(number))

    def vector(self, element: Any) -> Any:
        """Return the type of a vector of *element*, with as many elements as this vector."""
        return ir.VectorType(element, self.type.count)

    def _other(self, other: Any) -> Any:
        return other.value if isinstance(other, Lanes) else self.constant(other)

    def _apply(self, method: str, *operands: Any) -> Lanes:
        return Lanes(self.builder, getattr(self.builder, method)(*operands))

    def _binary(self, for_floats: str, for_integers: str, other: Any) -> Lanes:
        method = for_floats if self.is_float else for_integers
        return self._apply(method, self.value, self._other(other))

    def __add__(self, other: Any) -> Lanes:
        return self._binary("fadd", "add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Lanes:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Any) -> Lanes:
        return self.filled(other) - self

    def __mul__(self, other: Any) -> Lanes:
        return self._binary("fmul", "mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Lanes:
        return self._apply("fdiv", self.value, self._other(other))

    def __rtruediv__(self, other: Any) -> Lanes:
        return self.filled(other) / self

    def __neg__(self) -> Lanes:
        return self._apply("fneg", self.value) if self.is_float else 0 - self

    def __and__(self, other: Any) -> Lanes:
        return self._apply("and_", self.value, self._other(other))

    def __or__(self, other: Any) -> Lanes:
        return self._apply("or_", self.value, self._other(other))

    def __xor__(self, other: Any) -> Lanes:
        return self._apply("xor", self.value, self._other(other))

    def __lshift__(self, other: Any) -> Lanes:
        return self._apply("shl", self.value, self._other(other))

    def __rshift__(self, other: Any) -> Lanes:
        """Shift to the right by *other* bits, with copies of the sign bit."""
        return self._apply("ashr", self.value, self._other(other))

    def __lt__(self, other: Any) -> Lanes:
        return self._compare("<", other)

    def __gt__(self, other: Any) -> Lanes:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Lanes:
        return self._compare(">=", other)

    def equals(self, other: Any) -> Lanes:
        """Return a mask of equal elements."""
        return self._compare("==", other)

    def differs(self, other: Any) -> Lanes:
        """Return a mask of elements that differ, or of which one is NaN."""
        if self.is_float:
            return self._apply("fcmp_unordered", "!=", self.value, self._other(other))
        return self._compare("!=", other)

    def _compare(self, operator: str, other: Any) -> Lanes:
        method = "fcmp_ordered" if self.is_float else "icmp_signed"
        return self._apply(method, operator, self.value, self._other(other))

    def choose(self, yes: Any, no: Any) -> Lanes:
        """Return *yes* where this mask is set, else *no*; at least one of the two is a vector."""
        like = yes if isinstance(yes, Lanes) else no
        return self._apply("select", self.value, like._other(yes), like._other(no))

    def at_least(self, low: Any) -> Lanes:
        """Return the larger of each element and *low*; NaN stays NaN."""
        return self._compare("<", low).choose(low, self)

    def number_at_least(self, low: Any) -> Lanes:
        """Return the larger of each element and *low*; *low* for NaN."""
        return self._compare(">", low).choose(self, low)

    def at_most(self, high: Any) -> Lanes:
        """Return the smaller of each element and *high*; NaN stays NaN."""
        return self._compare(">", high).choose(high, self)

    def times_plus(self, factor: Any, summand: Any) -> Lanes:
        """Return ``self * factor + summand``, rounded once if the processor can."""
        name = f"llvm.fmuladd.v{self.type.count}f32"
        operands = [self.value, self._other(factor), self._other(summand)]
        return Lanes(self.builder, call(self.builder, name, self.type, operands))

    def square_root(self) -> Lanes:
        """Return the square root."""
        name = f"llvm.sqrt.v{self.type.count}f32"
        return Lanes(self.builder, call(self.builder, name, self.type, [self.value]))

    def bits(self) -> Lanes:
        """Return the bits of float32 elements as int32."""
        return self._apply("bitcast", self.value, self.vector(I32))

    def as_float(self) -> Lanes:
        """Return the float32 whose bits are these int32."""
        return self._apply("bitcast", self.value, self.vector(F32))

    def magnitude(self) -> Lanes:
        """Return the absolute values of float32."""
        return (self.bits() & 0x7FFFFFFF).as_float()

    def with_sign_of(self, other: Lanes) -> Lanes:
        """Return these float32, none of which may be negative, with the signs of *other*."""
        return (self.bits() | (other.bits() & -0x80000000)).as_float()

    def to_float(self, element: Any = F32) -> Lanes:
        """Return signed integers or floats as floats of type *element*."""
        if self.is_float:
            wider = self.type.element == F32
            return self._apply("fpext" if wider else "fptrunc", self.value, self.vector(element))
        return self._apply("sitofp", self.value, self.vector(element))

    def to_integer(self, element: Any = I32) -> Lanes:
        """Return floats, truncated towards zero, as signed integers; they must fit."""
        return self._apply("fptosi", self.value, self.vector(element))

    def widen(self, element: Any, *, signed: bool) -> Lanes:
        """Return integers extended to the wider type *element*."""
        return self._apply("sext" if signed else "zext", self.value, self.vector(element))

    def narrow(self, element: Any) -> Lanes:
        """Return integers cut to the narrower type *element*, which keeps their low bits."""
        return self._apply("trunc", self.value, self.vector(element))

    def nearest(self) -> Lanes:
        """Return float32 below 2**22 rounded to integers, halves to even."""
        return (self + ROUNDING) - ROUNDING

    def nearest_integer(self) -> Lanes:
        """Return :meth:`nearest` as int32."""
        return (self + ROUNDING).bits() - self.filled(ROUNDING).bits()

    def taken(self, numbers: Iterable[int]) -> Lanes:
        """Return the elements with the given numbers, in that order."""
        return joined(self, self, numbers)


def joined(first: Lanes, second: Lanes, numbers: Iterable[int]) -> Lanes:
    """Return those elements of two vectors, counted together, that have the given numbers."""
    lanes = list(numbers)
    mask = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
    return first._apply("shuffle_vector", first.value, second.value, mask)


def by_parts(count: int, function: Callable[..., Any], *operands: Lanes) -> Lanes:
    """Return the results of a function of shorter LLVM vectors for all elements of *operands*.

    Args:
        count: number of elements that *function* takes.
        function: function of the LLVM builder and of an LLVM vector for each operand.
        operands: vectors of a multiple of *count* elements, a power of two.
    """
    builder, total = operands[0].builder, operands[0].type.count
    parts = [
        Lanes(builder, function(builder, *(x.taken(range(i, i + count)).value for x in operands)))
        for i in range(0, total, count)
    ]
    while len(parts) > 1:
        count *= 2
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [joined(first, second, range(count)) for first, second in pairs]
    return parts[0]
