"""Functions that need instructions of AVX-512, on vectors of a multiple of 16 float32."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from delegraph_numba_cpu.codegen.intrinsics import F32, I16, I32, call
from delegraph_numba_cpu.codegen.lanes import Lanes, by_parts
from delegraph_numba_cpu.codegen.registry import level

IS_THERE = level().vector_bytes == 64
"""Whether kernels may use the functions of this module."""

VECTOR = ir.VectorType(F32, 16)
ALL = ir.Constant(I16, -1)
CURRENT_ROUNDING = ir.Constant(I32, 4)
_THREE_QUARTERS = ir.Constant(I32, 0b0011)  # range from 0.75 to 1.5


def times_power_of_two(x: Lanes, n: Lanes) -> Lanes:
    """Return ``x * 2**n`` for integers n; the result may be denormal or infinity."""

    def scale(builder: Any, x: Any, n: Any) -> Any:
        name = "llvm.x86.avx512.mask.scalef.ps.512"
        return call(builder, name, VECTOR, [x, n, x, ALL, CURRENT_ROUNDING])

    return by_parts(16, scale, x, n)


def reciprocal(x: Lanes) -> Lanes:
    """Return ``1 / x`` to a unit in the last place, for numbers from 2**-60 to 2**60."""

    def estimate(builder: Any, x: Any) -> Any:
        return call(builder, "llvm.x86.avx512.rcp14.ps.512", VECTOR, [x, x, ALL])

    first = by_parts(16, estimate, x)
    return first * (-x).times_plus(first, 2.0)


def reciprocal_square_root(x: Lanes) -> Lanes:
    """Return ``1 / sqrt(x)`` to a unit in the last place; infinity for 0, NaN below 0."""
    first = _root_estimate(x)
    rest = -(x * first).times_plus(first, -1.0)  # NaN of 0 and of infinity
    better = (first * 0.5).times_plus(rest, first)
    return rest.equals(rest).choose(better, first)


def square_root(x: Lanes) -> Lanes:
    """Return the square root, nearly always rounded to the nearest float32."""
    estimate = _root_estimate(x)
    first = x * estimate  # NaN of 0 and of infinity
    lost = x.times_plus(estimate, -first)
    rest = (-first).times_plus(estimate, 1.0)
    better = first.times_plus(rest, lost).times_plus(0.5, first)
    special = estimate.equals(estimate).choose(x, estimate)
    return first.equals(first).choose(better, special)


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return n and m such that ``x = 2**n * m``; n is an integer, and m lies from 0.75 to 1.5.

    For 0 and infinity, n is -infinity and infinity; for negative numbers, both are undefined.
    """

    def mantissa(builder: Any, x: Any) -> Any:
        name = "llvm.x86.avx512.mask.getmant.ps.512"
        return call(builder, name, VECTOR, [x, _THREE_QUARTERS, x, ALL, CURRENT_ROUNDING])

    def exponent(builder: Any, x: Any) -> Any:
        name = "llvm.x86.avx512.mask.getexp.ps.512"
        return call(builder, name, VECTOR, [x, x, ALL, CURRENT_ROUNDING])

    m, n = by_parts(16, mantissa, x), by_parts(16, exponent, x)
    return (m < 1.0).choose(n + 1.0, n), m


def _root_estimate(x: Lanes) -> Lanes:
    """Return an estimate of ``1 / sqrt(x)`` that is precise to 14 bits."""

    def estimate(builder: Any, x: Any) -> Any:
        return call(builder, "llvm.x86.avx512.rsqrt14.ps.512", VECTOR, [x, x, ALL])

    return by_parts(16, estimate, x)
