"""What AVX-512 has and LLVM's plain vectors have not: on vectors of a multiple of 16 float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from delegraph_numba_cpu.kernels.lanes import Lanes
from delegraph_numba_cpu.kernels.machine import F32, I16, I32, call
from delegraph_numba_cpu.kernels.registry import level

IS_THERE = level().vector_bytes == 64
"""Whether kernels may use these functions."""

VECTOR = ir.VectorType(F32, 16)
ALL = ir.Constant(I16, -1)
CURRENT_ROUNDING = ir.Constant(I32, 4)


def times_power_of_two(x: Lanes, n: Lanes) -> Lanes:
    """Return ``x * 2**n`` for whole numbers n; denormals and infinity where they are due."""

    def scale(builder: Any, x: Any, n: Any) -> Any:
        name = "llvm.x86.avx512.mask.scalef.ps.512"
        return call(builder, name, VECTOR, [x, n, x, ALL, CURRENT_ROUNDING])

    return _by_sixteen(scale, x, n)


def reciprocal(x: Lanes) -> Lanes:
    """Return ``1 / x`` to a unit in the last place, for numbers from 2**-60 to 2**60."""

    def estimate(builder: Any, x: Any) -> Any:
        return call(builder, "llvm.x86.avx512.rcp14.ps.512", VECTOR, [x, x, ALL])

    first = _by_sixteen(estimate, x)
    return first * (-x).times_plus(first, 2.0)


def _by_sixteen(function: Callable[..., Any], *operands: Lanes) -> Lanes:
    """Return the results of a function of vectors of 16."""
    builder, count = operands[0].builder, operands[0].type.count
    parts = [
        function(builder, *(_elements(x.value, builder, range(i, i + 16)) for x in operands))
        for i in range(0, count, 16)
    ]
    while len(parts) > 1:
        parts = [_joined(builder, *parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return Lanes(builder, parts[0])


def _elements(vector: Any, builder: Any, numbers: range) -> Any:
    mask = ir.Constant(ir.VectorType(I32, len(numbers)), list(numbers))
    return builder.shuffle_vector(vector, vector, mask)


def _joined(builder: Any, first: Any, second: Any) -> Any:
    count = 2 * first.type.count
    mask = ir.Constant(ir.VectorType(I32, count), list(range(count)))
    return builder.shuffle_vector(first, second, mask)
