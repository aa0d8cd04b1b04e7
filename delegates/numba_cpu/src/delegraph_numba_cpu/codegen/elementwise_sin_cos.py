"""Sine and cosine of any float32, including large ones.

A float32 is ``m * 2**e``, where m has 24 bits. Multiples of 4 in ``2**e * 2 / pi`` are whole turns
and are dropped. A table holds the remainder for each exponent, as a sum of three float64. The
products of m and the first two float64 are exact. The result is the angle in quarters of a turn,
and the number of its quarter.

Source:
    Payne and Hanek, Radian reduction for trigonometric functions, SIGNUM Newsletter 18 (1983).
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from delegraph_numba_cpu.codegen.elementwise_operations import QUARTER, operation
from delegraph_numba_cpu.codegen.intrinsics import F32, F64, I1, I32, I64, call
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.codegen.vector_ir import splat
from delegraph_numba_cpu.instructions.elementwise import Operation

SINE = [(-1) ** n / math.factorial(2 * n + 1) for n in (6, 5, 4, 3, 2, 1)]
COSINE = [(-1) ** n / math.factorial(2 * n) for n in (6, 5, 4, 3, 2, 1)]
"""Coefficients of the Taylor series of cosine after the constant 1, highest power first."""


def _series(square: Lanes, coefficients: list[float]) -> Lanes:
    """Return ``1 + square * p(square)``; *coefficients* are those of p, highest power first."""
    value = square.filled(coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * square + coefficient
    return value * square + 1.0


@operation(Operation.SINE, "ti", QUARTER)
def sine(x: Lanes, table: Any, quarter: Lanes) -> Lanes:
    """Return the sine of *x* plus *quarter* quarters of a turn.

    *table* is the address of the remainders, three float64 for each exponent.
    """
    bits = x.bits()
    exponent = (bits >> 23) & 255
    mantissa = exponent.equals(0).choose(bits & 0x7FFFFF, (bits & 0x7FFFFF) | 0x800000)
    m = mantissa.to_float().with_sign_of(x).to_float(F64)
    first, second, third = _parts(exponent, table)
    turned = m * first
    whole = (turned + (x < 0.0).choose(turned.filled(-0.5), 0.5)).to_integer()
    angle = (turned - whole.to_float(F64) + m * second + m * third) * (math.pi / 2)
    square = angle * angle
    count = whole + quarter
    is_odd, is_negative = (count & 1).equals(1), (count & 2).equals(2)
    value = is_odd.choose(_series(square, COSINE), _series(square, SINE) * angle)
    value = is_negative.choose(-value, value).to_float(F32)
    return exponent.equals(255).choose(math.nan, value)


def _parts(exponent: Lanes, table: Any) -> list[Lanes]:
    """Return the three float64 of the table that belong to each lane's exponent."""
    builder, count = exponent.builder, exponent.type.count
    places = exponent.widen(I64, signed=False) * 24 + Lanes(builder, splat(builder, table, count))
    return [_gathered(places + 8 * i) for i in range(3)]


def _gathered(places: Lanes) -> Lanes:
    """Return the float64 at each of the addresses *places*."""
    builder, count = places.builder, places.type.count
    pointers = ir.VectorType(F64.as_pointer(), count)
    kind = places.vector(F64)
    arguments = [
        builder.inttoptr(places.value, pointers),
        ir.Constant(I32, 8),
        ir.Constant(places.vector(I1), [1] * count),
        ir.Constant(kind, [0.0] * count),
    ]
    name = f"llvm.masked.gather.v{count}f64.v{count}p0"
    return Lanes(builder, call(builder, name, kind, arguments))
