"""Fixed-point products of single values, as the official integer kernels round them."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import jit

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


@jit
def wrapped(value):
    """Return the low 32 bits of an int64 as a signed number."""
    return ((value - INT32_MIN) & 0xFFFFFFFF) + INT32_MIN


@jit
def scaled(value, multiplier, shift, is_up):
    """Return ``value * multiplier * 2**(shift - 31)``, rounded after each of two steps.

    The second rounding rounds halves up if *is_up*, else away from zero.
    """
    product = wrapped(value << max(shift, 0)) * multiplier
    high = min((product + (1 << 30)) >> 31, INT32_MAX)
    right = max(-shift, 0)
    half = (1 << right) >> 1
    if high < 0 and right > 0 and not is_up:
        half -= 1
    return (high + half) >> right
