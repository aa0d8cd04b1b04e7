"""Functions of float32 vectors, to a few units in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from delegraph_numba_cpu.codegen import avx512
from delegraph_numba_cpu.codegen.lanes import Lanes

LN2_HIGH = 0.693359375
"""ln 2 rounded to so few bits that its product with an integer exponent is exact."""
LN2_LOW = math.log(2) - LN2_HIGH


def fit(function: Callable[[float], float], degree: int, low: float, high: float) -> list[float]:
    """Return coefficients of a polynomial that approximates *function* from *low* to *high*.

    The polynomial has the degree *degree*, and equals the function at the interval's Chebyshev
    points. Its largest error is little more than that of the best polynomial. The highest power
    comes first.
    """
    curve = Chebyshev.interpolate(np.vectorize(function), degree, domain=[low, high])
    return [float(c) for c in curve.convert(kind=Polynomial).coef[::-1]]


EXP_FIT = fit(lambda r: math.expm1(r) / r if r else 1.0, 5, -math.log(2) / 2, math.log(2) / 2)
"""Coefficients of a polynomial for ``(exp(r) - 1) / r``, where r is the remainder of an
exponent."""

LOG_SERIES = [2 / n for n in (9, 7, 5, 3)]

ERFC_FIT = (
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
    -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223,
)  # fmt: skip
"""Coefficients of the official kernels' approximation of erfc.

Source:
    Press et al., Numerical Recipes, section 6.2.
"""

LARGEST = 3.4028234663852886e38


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """Return the value at *x* of a polynomial, by Horner's rule; the highest power comes first."""
    first, second, *others = coefficients
    value = x.times_plus(first, second)
    for coefficient in others:
        value = value.times_plus(x, coefficient)
    return value


def split_exp(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return n and e such that ``exp(x) = 2**n * (1 + e)``, n an integer and e small."""
    n = (x * math.log2(math.e)).nearest()
    r = n.times_plus(-LN2_HIGH, x)
    r = n.times_plus(-LN2_LOW, r)
    return n, r * polynomial(r, EXP_FIT)


def power_of_two(n: Lanes) -> Lanes:
    """Return ``2**n`` as float32 for int32 from -126 to 127; 0 for -127."""
    return ((n + 127) << 23).as_float()


def exp(x: Lanes) -> Lanes:
    """Return the exponential; denormal results, infinity and NaN included."""
    return falling_exp(x.at_most(89.0))


def falling_exp(x: Lanes) -> Lanes:
    """Return the exponential of numbers up to 89, -infinity included; NaN stays NaN."""
    return bounded_exp(x.at_least(-176.0))


def bounded_exp(x: Lanes) -> Lanes:
    """Return the exponential of numbers from -176 to 89; NaN stays NaN.

    Masked scores are clamped to -176. There both factors of the result are 0, because a product
    that underflows would be slow.
    """
    n, e = split_exp(x)
    if avx512.IS_THERE:
        return avx512.times_power_of_two(e + 1.0, n)
    whole = n.nearest_integer()
    half = whole >> 1
    return (e + 1.0) * power_of_two(half) * power_of_two(whole - half)


def expm1(x: Lanes) -> Lanes:
    """Return ``exp(x) - 1`` for x <= 0, precise near zero."""
    n, e = split_exp(x.at_least(-60.0))
    scale = power_of_two(n.nearest_integer())
    return scale.times_plus(e, scale - 1.0)


def reciprocal(x: Lanes) -> Lanes:
    """Return ``1 / x`` for numbers from 2**-60 to 2**60."""
    return avx512.reciprocal(x) if avx512.IS_THERE else 1.0 / x


def square_root(x: Lanes) -> Lanes:
    """Return the square root."""
    return avx512.square_root(x) if avx512.IS_THERE else x.square_root()


def reciprocal_square_root(x: Lanes) -> Lanes:
    """Return ``1 / sqrt(x)``."""
    return avx512.reciprocal_square_root(x) if avx512.IS_THERE else 1.0 / x.square_root()


def tanh(x: Lanes) -> Lanes:
    """Return the hyperbolic tangent."""
    e = expm1(x.magnitude() * -2.0)
    return (e.magnitude() * reciprocal(e + 2.0)).with_sign_of(x)


def logistic(x: Lanes) -> Lanes:
    """Return ``1 / (1 + exp(-x))``.

    For x < 0 it is computed as ``exp(x) / (1 + exp(x))``, so that no exponential overflows.
    """
    e = exp(-x.magnitude())
    share = reciprocal(e + 1.0)
    return (x < 0.0).choose(e * share, share)


def log(x: Lanes) -> Lanes:
    """Return the natural logarithm; -infinity for 0, NaN below 0."""
    n, rest = avx512.split(x) if avx512.IS_THERE else split(x)
    s = (rest - 1.0) * reciprocal(rest + 1.0)
    squared = s * s
    series = polynomial(squared, LOG_SERIES) * squared * s
    value = n.times_plus(LN2_LOW, series) + s + s
    value = n.times_plus(LN2_HIGH, value)
    value = n.magnitude().equals(math.inf).choose(n, value)
    return (x >= 0.0).choose(value, math.nan)


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return n and m such that ``x = 2**n * m``, n an integer and m from sqrt(1/2) to sqrt(2).

    For 0 and infinity, n is -infinity and infinity; for negative numbers, both are undefined.
    """
    is_tiny = x < 2.0**-126
    scaled = is_tiny.choose(x * 2.0**32, x)
    bits = scaled.bits()
    exponent = (bits - 0x3F3504F3) >> 23
    m = (bits - (exponent << 23)).as_float()
    n = exponent.to_float() - is_tiny.choose(x.filled(32.0), 0.0)
    n = (x > LARGEST).choose(x, n)
    return x.equals(0.0).choose(-math.inf, n), m


def gelu(x: Lanes) -> Lanes:
    """Return ``x / 2 * erfc(-x / sqrt(2))``, with erfc by :data:`ERFC_FIT`."""
    v = x * -math.sqrt(0.5)
    z = v.magnitude().at_most(10.1)  # beyond this, erfc is 0 or 2 in float32
    t = reciprocal(z.times_plus(0.5, 1.0))
    exponent = polynomial(t, ERFC_FIT) - z * z
    half = t * 0.5 * bounded_exp(exponent)
    return x * (v >= 0.0).choose(half, 1.0 - half)


def gelu_by_tanh(x: Lanes) -> Lanes:
    """Return ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``."""
    inner = (x * x * x * 0.044715 + x) * math.sqrt(2 / math.pi)
    return x * 0.5 * (tanh(inner) + 1.0)


def rounded(x: Lanes) -> Lanes:
    """Return any float32 rounded to integers, halves to even."""
    magnitude = x.magnitude()
    whole = (magnitude + 2.0**23) - 2.0**23
    return (magnitude < 2.0**23).choose(whole.with_sign_of(x), x)


def floor(x: Lanes) -> Lanes:
    """Return each element rounded down to an integer."""
    whole = rounded(x)
    return ((whole > x).choose(whole - 1.0, whole)).magnitude().with_sign_of(x)


def ceil(x: Lanes) -> Lanes:
    """Return each element rounded up to an integer."""
    whole = rounded(x)
    return ((whole < x).choose(whole + 1.0, whole)).magnitude().with_sign_of(x)
