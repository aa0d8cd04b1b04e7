"""Operators of one number: roots, logarithms, angles, roundings, parts of complex numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from delegraph_flex.data_types import HALVES, DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.registry import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REAL,
    SIGNED,
    functions,
    operator,
    step_of,
)

Array = NDArray[Any]


def through_float32(function: Step, type: DataType) -> Step:
    """Return *function*, but for 16-bit floats a function that computes in float32 and rounds."""
    if type not in HALVES:
        return function
    dtype = type.dtype
    return lambda *values: function(*(x.astype(np.float32) for x in values)).astype(dtype)


functions({"Abs": np.abs}, FLOATS | SIGNED)  # the lowest integer is unchanged
functions({"Neg": np.negative}, FLOATS | SIGNED | COMPLEX)
functions({"Square": np.square}, NUMBERS)
functions({"Invert": np.invert}, INTEGERS)
functions({"Conj": np.conjugate}, COMPLEX)
functions(
    {
        "Floor": np.floor,
        "Ceil": np.ceil,
        "Round": np.rint,  # ties go to the even number
        "Rint": np.rint,
        "IsNan": np.isnan,
        "IsInf": np.isinf,
        "IsFinite": np.isfinite,
    },
    FLOATS,
)
functions(
    {
        "Exp": np.exp,
        "Expm1": np.expm1,
        "Log": np.log,
        "Log1p": np.log1p,
        "Sqrt": np.sqrt,
        "Sin": np.sin,
        "Cos": np.cos,
        "Tan": np.tan,
        "Asin": np.arcsin,
        "Acos": np.arccos,
        "Atan": np.arctan,
        "Sinh": np.sinh,
        "Cosh": np.cosh,
        "Tanh": np.tanh,
        "Asinh": np.arcsinh,
        "Acosh": np.arccosh,
        "Atanh": np.arctanh,
    },
    FLOATS | COMPLEX,
)


@operator("Sign", types=FLOATS | SIGNED | COMPLEX)
def sign(node: FlexNode) -> Step:
    """Return a function that computes -1, 0 or 1; x / |x| for complex x; NaN gives NaN."""
    if node.type("T") not in COMPLEX:
        return np.sign

    def run(x: Array) -> Array:
        return np.where(x == 0, x, x / np.abs(x))

    return run


def functions_of_one(steps: Mapping[str, Step], types: Collection[DataType]) -> None:
    """Register steps whose first argument is the number 1 in the operator's type.

    A Python number in its place would be slower, and give float64 in older versions of NumPy.
    """
    for name, step in steps.items():

        def bind(node: FlexNode, step: Step = step) -> Step:
            return partial(step, node.type("T").dtype.type(1))

        operator(name, types=types, broadcasts=True)(bind)


functions_of_one(
    {
        "Inv": lambda one, x: np.divide(one, x),
        "Reciprocal": lambda one, x: np.divide(one, x),
        "Rsqrt": lambda one, x: one / np.sqrt(x),
    },
    FLOATS | COMPLEX,
)


@operator("Sigmoid", types=FLOATS | COMPLEX)
def sigmoid(node: FlexNode) -> Step:
    """Return a function that computes 1 / (1 + exp(-x))."""
    type = node.type("T")
    if type in COMPLEX:
        one = type.dtype.type(1)
        return lambda x: one / (one + np.exp(-x))
    step: Step = special.expit
    return through_float32(step, type)


@step_of("PopulationCount", types=INTEGERS)
def population_count(x: Array) -> Any:
    """Return the number of set bits in x, as uint8."""
    octets = np.ascontiguousarray(x).reshape(*np.shape(x), 1).view(np.uint8)
    return np.unpackbits(octets, axis=-1).sum(axis=-1, dtype=np.uint8)


@step_of("ClipByValue", types=REAL)
def clip(x: Array, low: Array, high: Array) -> Array:
    """Return *x* clamped between bounds, which are scalars or arrays of its shape.

    Where the low bound is above the high bound, the low bound is the result.
    """
    for bound in (low, high):
        if np.ndim(bound) and np.shape(bound) != np.shape(x):
            raise ValueError(f"bound has shape {list(bound.shape)}, expected {list(x.shape)} or []")
    below = np.where(x > high, high, x)
    return np.where(below < low, low, below)


_PARTS = {DataType.FLOAT32: DataType.COMPLEX64, DataType.FLOAT64: DataType.COMPLEX128}
_OF_COMPLEX: dict[str, Step] = {
    "Angle": lambda x: np.arctan2(x.imag, x.real),
    "ComplexAbs": np.abs,
    "Imag": lambda x: x.imag,
    "Real": lambda x: x.real,
}


@operator(*_OF_COMPLEX, types=COMPLEX)
def real_of_complex(node: FlexNode) -> Step:
    """Return a function that computes a real number from each complex number."""
    types = (node.type("Tout", DataType.FLOAT32), node.type("T", DataType.COMPLEX64))
    if types not in _PARTS.items():
        raise Unsupported(f"{node.op} makes {types[0].name} of {types[1].name}", "dtype")
    return _OF_COMPLEX[node.op]


@operator("Complex", broadcasts=True)
def complex_number(node: FlexNode) -> Step:
    """Return a function that computes the complex number x + iy, broadcast."""
    types = (node.type("T", DataType.FLOAT32), node.type("Tout", DataType.COMPLEX64))
    if types not in _PARTS.items():
        raise Unsupported(f"Complex makes {types[1].name} of {types[0].name}", "dtype")
    dtype = types[1].dtype

    def run(real: Array, imaginary: Array) -> Array:
        result = np.empty(np.broadcast(real, imaginary).shape, dtype)
        result.real, result.imag = real, imaginary
        return result

    return run
