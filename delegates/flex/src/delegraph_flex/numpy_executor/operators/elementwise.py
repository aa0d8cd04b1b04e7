"""Operators of one number: roots, logarithms, angles, roundings, parts of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.registry import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REAL,
    SIGNED,
    operator,
)

Array = NDArray[Any]

HALVES = frozenset({DataType.FLOAT16, DataType.BFLOAT16})


def through_float32(function: Step, type: DataType) -> Step:
    """Return *function*; for a 16-bit float *type*, one that computes in float32 and rounds."""
    if type not in HALVES:
        return function
    dtype = type.dtype
    return lambda *values: function(*(x.astype(np.float32) for x in values)).astype(dtype)


@operator("Abs", types=FLOATS | SIGNED)
def absolute(node: FlexNode) -> Step:
    """Step that computes |x|; the lowest integer is unchanged."""
    return np.abs


@operator("Neg", types=FLOATS | SIGNED | COMPLEX)
def negative(node: FlexNode) -> Step:
    """Step that computes -x."""
    return np.negative


@operator("Sign", types=FLOATS | SIGNED | COMPLEX)
def sign(node: FlexNode) -> Step:
    """Step that computes -1, 0 or 1; x / |x| for complex x; NaN gives NaN."""
    if node.type("T") not in COMPLEX:
        return np.sign

    def run(x: Array) -> Array:
        return np.where(x == 0, x, x / np.abs(x))

    return run


@operator("Exp", types=FLOATS | COMPLEX)
def exponential(node: FlexNode) -> Step:
    """Step that computes exp(x)."""
    return np.exp


@operator("Expm1", types=FLOATS | COMPLEX)
def exponential_minus_1(node: FlexNode) -> Step:
    """Step that computes exp(x) - 1."""
    return np.expm1


@operator("Log", types=FLOATS | COMPLEX)
def logarithm(node: FlexNode) -> Step:
    """Step that computes the natural logarithm of x."""
    return np.log


@operator("Log1p", types=FLOATS | COMPLEX)
def logarithm_of_1_plus(node: FlexNode) -> Step:
    """Step that computes log(1 + x)."""
    return np.log1p


@operator("Sqrt", types=FLOATS | COMPLEX)
def square_root(node: FlexNode) -> Step:
    """Step that computes the square root of x."""
    return np.sqrt


@operator("Rsqrt", types=FLOATS | COMPLEX)
def reciprocal_square_root(node: FlexNode) -> Step:
    """Step that computes 1 / sqrt(x)."""
    one = node.type("T").dtype.type(1)
    return lambda x: one / np.sqrt(x)


@operator("Square", types=NUMBERS)
def square(node: FlexNode) -> Step:
    """Step that computes x times x."""
    return np.square


@operator("Reciprocal", "Inv", types=FLOATS | COMPLEX)
def reciprocal(node: FlexNode) -> Step:
    """Step that computes 1 / x."""
    one = node.type("T").dtype.type(1)
    return lambda x: np.divide(one, x)


@operator("Floor", types=FLOATS)
def floor(node: FlexNode) -> Step:
    """Step that rounds x down to a whole number."""
    return np.floor


@operator("Ceil", types=FLOATS)
def ceiling(node: FlexNode) -> Step:
    """Step that rounds x up to a whole number."""
    return np.ceil


@operator("Round", "Rint", types=FLOATS)
def round_half_to_even(node: FlexNode) -> Step:
    """Step that rounds x to the nearest whole number; ties go to the even number."""
    return np.rint


@operator("Sin", types=FLOATS | COMPLEX)
def sine(node: FlexNode) -> Step:
    """Step that computes the sine of x."""
    return np.sin


@operator("Cos", types=FLOATS | COMPLEX)
def cosine(node: FlexNode) -> Step:
    """Step that computes the cosine of x."""
    return np.cos


@operator("Tan", types=FLOATS | COMPLEX)
def tangent(node: FlexNode) -> Step:
    """Step that computes the tangent of x."""
    return np.tan


@operator("Asin", types=FLOATS | COMPLEX)
def arcsine(node: FlexNode) -> Step:
    """Step that computes the angle whose sine is x."""
    return np.arcsin


@operator("Acos", types=FLOATS | COMPLEX)
def arccosine(node: FlexNode) -> Step:
    """Step that computes the angle whose cosine is x."""
    return np.arccos


@operator("Atan", types=FLOATS | COMPLEX)
def arctangent(node: FlexNode) -> Step:
    """Step that computes the angle whose tangent is x."""
    return np.arctan


@operator("Sinh", types=FLOATS | COMPLEX)
def hyperbolic_sine(node: FlexNode) -> Step:
    """Step that computes the hyperbolic sine of x."""
    return np.sinh


@operator("Cosh", types=FLOATS | COMPLEX)
def hyperbolic_cosine(node: FlexNode) -> Step:
    """Step that computes the hyperbolic cosine of x."""
    return np.cosh


@operator("Tanh", types=FLOATS | COMPLEX)
def hyperbolic_tangent(node: FlexNode) -> Step:
    """Step that computes the hyperbolic tangent of x."""
    return np.tanh


@operator("Asinh", types=FLOATS | COMPLEX)
def inverse_hyperbolic_sine(node: FlexNode) -> Step:
    """Step that computes the inverse hyperbolic sine of x."""
    return np.arcsinh


@operator("Acosh", types=FLOATS | COMPLEX)
def inverse_hyperbolic_cosine(node: FlexNode) -> Step:
    """Step that computes the inverse hyperbolic cosine of x."""
    return np.arccosh


@operator("Atanh", types=FLOATS | COMPLEX)
def inverse_hyperbolic_tangent(node: FlexNode) -> Step:
    """Step that computes the inverse hyperbolic tangent of x."""
    return np.arctanh


@operator("Sigmoid", types=FLOATS | COMPLEX)
def sigmoid(node: FlexNode) -> Step:
    """Step that computes 1 / (1 + exp(-x))."""
    type = node.type("T")
    if type in COMPLEX:
        one = type.dtype.type(1)
        return lambda x: one / (one + np.exp(-x))
    step: Step = special.expit
    return through_float32(step, type)


@operator("IsNan", types=FLOATS)
def is_nan(node: FlexNode) -> Step:
    """Step that computes whether x is NaN."""
    return np.isnan


@operator("IsInf", types=FLOATS)
def is_infinite(node: FlexNode) -> Step:
    """Step that computes whether x is an infinity."""
    return np.isinf


@operator("IsFinite", types=FLOATS)
def is_finite(node: FlexNode) -> Step:
    """Step that computes whether x is neither an infinity nor NaN."""
    return np.isfinite


@operator("Invert", types=INTEGERS)
def invert(node: FlexNode) -> Step:
    """Step that inverts all bits of x."""
    return np.invert


@operator("PopulationCount", types=INTEGERS)
def population_count(node: FlexNode) -> Step:
    """Step that computes the number of set bits in x, as uint8."""

    def run(x: Array) -> Any:
        octets = np.ascontiguousarray(x).reshape(*np.shape(x), 1).view(np.uint8)
        return np.unpackbits(octets, axis=-1).sum(axis=-1, dtype=np.uint8)

    return run


@operator("ClipByValue", types=REAL)
def clip(node: FlexNode) -> Step:
    """Step that clamps x between bounds, which are scalars or arrays of x's shape.

    Where the low bound is above the high bound, the low bound is the result.
    """

    def run(x: Array, low: Array, high: Array) -> Array:
        for bound in (low, high):
            if np.ndim(bound) and np.shape(bound) != np.shape(x):
                raise ValueError(
                    f"bound has shape {list(bound.shape)}, expected {list(x.shape)} or []"
                )
        below = np.where(x > high, high, x)
        return np.where(below < low, low, below)

    return run


@operator("Real", types=COMPLEX)
def real_part(node: FlexNode) -> Step:
    """Step that computes the real part of x."""
    _check_part(node)
    return lambda x: x.real


@operator("Imag", types=COMPLEX)
def imaginary_part(node: FlexNode) -> Step:
    """Step that computes the imaginary part of x."""
    _check_part(node)
    return lambda x: x.imag


@operator("Angle", types=COMPLEX)
def angle(node: FlexNode) -> Step:
    """Step that computes the angle of complex x to the real axis."""
    _check_part(node)
    return lambda x: np.arctan2(x.imag, x.real)


@operator("ComplexAbs", types=COMPLEX)
def complex_absolute(node: FlexNode) -> Step:
    """Step that computes the magnitude of complex x."""
    _check_part(node)
    return np.abs


@operator("Conj", types=COMPLEX)
def conjugate(node: FlexNode) -> Step:
    """Step that computes the complex conjugate of x."""
    return np.conjugate


@operator("Complex", broadcasts=True)
def complex_number(node: FlexNode) -> Step:
    """Step that computes the complex number x + iy, broadcast."""
    types = (node.type("T", DataType.FLOAT32), node.type("Tout", DataType.COMPLEX64))
    if types not in _PARTS.items():
        raise Unsupported(f"Complex makes {types[1].name} of {types[0].name}", "dtype")
    dtype = types[1].dtype

    def run(real: Array, imaginary: Array) -> Array:
        result = np.empty(np.broadcast(real, imaginary).shape, dtype)
        result.real, result.imag = real, imaginary
        return result

    return run


_PARTS = {DataType.FLOAT32: DataType.COMPLEX64, DataType.FLOAT64: DataType.COMPLEX128}


def _check_part(node: FlexNode) -> None:
    types = (node.type("Tout", DataType.FLOAT32), node.type("T", DataType.COMPLEX64))
    if types not in _PARTS.items():
        raise Unsupported(f"{node.op} makes {types[0].name} of {types[1].name}", "dtype")
