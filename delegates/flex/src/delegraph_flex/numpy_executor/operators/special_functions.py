"""Special functions of mathematics, each computed by a function of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.operators.elementwise import through_float32
from delegraph_flex.numpy_executor.registry import FLOATS, operator


def _but(
    function: Callable[..., Any], *exceptions: tuple[Callable[..., Any], float]
) -> Callable[..., Any]:
    """Return *function* with some results replaced.

    Each of *exceptions* is a condition on the arguments, and the result where the condition holds.
    If several conditions hold, the last counts.
    """

    def run(*arrays: NDArray[Any]) -> Any:
        result = function(*arrays)
        for holds, value in exceptions:
            result = np.where(holds(*arrays), arrays[0].dtype.type(value), result)
        return result

    return run


def _is_negative(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x < 0)


def _is_zero(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x == 0)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "BesselI0": special.i0,
    "BesselI0e": special.i0e,
    "BesselI1": special.i1,
    "BesselI1e": special.i1e,
    "BesselJ0": special.j0,
    "BesselJ1": special.j1,
    "BesselK0": _but(special.k0, (_is_negative, np.inf)),
    "BesselK0e": _but(special.k0e, (_is_negative, np.inf)),
    "BesselK1": _but(special.k1, (_is_negative, np.inf)),
    "BesselK1e": _but(special.k1e, (_is_negative, np.inf)),
    "BesselY0": _but(special.y0, (_is_negative, -np.inf)),
    "BesselY1": _but(special.y1, (_is_negative, -np.inf), (_is_zero, np.nan)),
    "Dawsn": special.dawsn,
    "Digamma": _but(special.psi, (_is_zero, np.nan)),
    "Erf": lambda x: _erf(x) if x.size >= _MANY and x.dtype == np.float32 else special.erf(x),
    "Erfc": special.erfc,
    "Erfinv": special.erfinv,
    "Expint": _but(special.expi, (lambda x: (x < 0) | (x == np.inf), np.nan)),
    "FresnelCos": lambda x: special.fresnel(x)[1],
    "FresnelSin": lambda x: special.fresnel(x)[0],
    "Igamma": _but(special.gammainc, (lambda a, x: ~(a > 0), np.nan), (lambda a, x: x == 0, 0)),
    "Igammac": _but(special.gammaincc, (lambda a, x: ~(a > 0), np.nan)),
    "Lgamma": _but(special.gammaln, (lambda x: x == -np.inf, np.inf)),
    "Ndtri": special.ndtri,
    "Spence": special.spence,
}


_MANY = 1024
"""Number of elements from which on a few passes over all are faster than a call for each."""
_BLOCK = 1 << 14
_ERF_END = 3.92
_ERF = (
    0.000393740871,
    -0.000939271922,
    0.000552894696,
    -0.00104527798,
    0.00437964608,
    -0.00817048326,
    0.0121779272,
    -0.0196174901,
    0.0306243252,
    -0.0435857343,
    0.0581674347,
    -0.0739898904,
    0.0906245114,
    -0.109181854,
    0.134083299,
    -0.180108562,
    0.360736821,
)
"""Coefficients of erf(x) / x in u, highest power first; u is x², scaled to [-1, 1].

The range of x is 0 to 3.92. The coefficients come from interpolation at Chebyshev points; the error
in float32 is below 2e-7.

Larger x are clamped.
"""


def _erf(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return erf of *x*, computed in blocks that fit in the cache."""
    result = np.empty(x.shape, np.float32)
    source, target = x.reshape(-1), result.reshape(-1)
    for begin in range(0, source.size, _BLOCK):
        z = np.clip(source[begin : begin + _BLOCK], -_ERF_END, _ERF_END)
        u = z * z
        u *= 2 / _ERF_END**2
        u -= 1
        made = target[begin : begin + _BLOCK]
        made[...] = _ERF[0]
        for coefficient in _ERF[1:]:
            made *= u
            made += coefficient
        made *= z
        np.clip(made, -1, 1, out=made)
    return result


@operator(*_FUNCTIONS, types=FLOATS, broadcasts=True)
def special_function(node: FlexNode) -> Step:
    """Function that computes a special function of each element; 16-bit floats use float32."""
    return through_float32(_FUNCTIONS[node.op], node.type("T"))


@operator(
    "Zeta", "Betainc", "Polygamma", types={DataType.FLOAT32, DataType.FLOAT64}, broadcasts=True
)
def special_function_of_several(node: FlexNode) -> Step:
    """Return a function that computes a special function of several tensors' elements."""
    functions: dict[str, Step] = {
        "Zeta": special.zeta,
        "Betainc": _but(special.betainc, (lambda a, b, x: (a <= 0) | (b <= 0), np.nan)),
        "Polygamma": _polygamma,
    }
    return functions[node.op]


def _polygamma(order: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return the derivative of digamma at *x* given by *order*; NaN at poles.

    The result is also NaN for orders that are no whole numbers.
    """
    n = np.asarray(order, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        sign = np.where(n % 2 == 0, -1.0, 1.0)
        derived = sign * special.gamma(n + 1) * special.zeta(n + 1, x)
        result = np.where(n == 0, special.psi(np.asarray(x, np.float64)), derived)
        is_pole = (n % 2 == 0) & (x <= 0) & (x == np.floor(x))
        known = (n >= 0) & (n == np.floor(n)) & ~is_pole
        return np.where(known, result, np.nan).astype(x.dtype)
