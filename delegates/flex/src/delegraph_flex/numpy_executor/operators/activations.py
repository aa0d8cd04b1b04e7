"""Activation functions, and the gradients that training inside a model needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.operators.elementwise import functions_of_one, through_float32
from delegraph_flex.numpy_executor.registry import COMPLEX, FLOATS, REAL, functions, operator

SELU_SCALE = 1.0507009873554804934193349852946
SELU_ALPHA = 1.6732632423543772848170429916717


@operator("Relu", types=REAL)
def relu(node: FlexNode) -> Step:
    """Return a function that computes max(x, 0); NaN gives NaN."""
    zero = node.type("T").dtype.type(0)
    return lambda x: np.maximum(x, zero)


@operator("Relu6", types=REAL)
def relu6(node: FlexNode) -> Step:
    """Return a function that computes min(max(x, 0), 6); NaN gives NaN."""
    zero, six = map(node.type("T").dtype.type, (0, 6))
    return lambda x: np.minimum(np.maximum(x, zero), six)


@operator("LeakyRelu")
def leaky_relu(node: FlexNode) -> Step:
    """Return a function that computes x where x is positive, ``alpha * x`` otherwise."""
    alpha = _alpha(node)
    return lambda x: np.where(x > 0, x, x * alpha)


functions({"Elu": lambda x: np.where(x < 0, np.expm1(x), x)}, FLOATS)


@operator("Selu", types=FLOATS)
def selu(node: FlexNode) -> Step:
    """Return a function that computes SELU, the scaled ELU of self-normalising networks."""
    number = node.type("T").dtype.type
    scale, negative = number(SELU_SCALE), number(SELU_SCALE * SELU_ALPHA)
    return lambda x: np.where(x < 0, negative * np.expm1(x), scale * x)


@operator("Softplus", types=FLOATS)
def softplus(node: FlexNode) -> Step:
    """Return a function that computes log(1 + exp(x))."""
    type = node.type("T")
    return through_float32(lambda x: np.logaddexp(x, x.dtype.type(0)), type)


@operator("ReluGrad", types=REAL, broadcasts=True)
def relu_gradient(node: FlexNode) -> Step:
    """Return a function that computes dy where x, or the ReLU of x, is positive, else 0."""
    zero = node.type("T").dtype.type(0)
    return lambda dy, x: np.where(x > zero, dy, zero)


@operator("Relu6Grad", types=REAL, broadcasts=True)
def relu6_gradient(node: FlexNode) -> Step:
    """Return a function that computes dy where x, or ReLU6 of x, is between 0 and 6, else 0."""
    zero, six = map(node.type("T").dtype.type, (0, 6))
    return lambda dy, x: np.where((x > zero) & (x < six), dy, zero)


@operator("LeakyReluGrad", broadcasts=True)
def leaky_relu_gradient(node: FlexNode) -> Step:
    """Return a function that computes dy where x is positive, ``alpha * dy`` otherwise."""
    alpha = _alpha(node)
    return lambda dy, x: np.where(x > 0, dy, dy * alpha)


@operator("SeluGrad", types=FLOATS, broadcasts=True)
def selu_gradient(node: FlexNode) -> Step:
    """Return a function that computes the gradient of a SELU from dy and the SELU's output y."""
    number = node.type("T").dtype.type
    scale, negative = number(SELU_SCALE), number(SELU_SCALE * SELU_ALPHA)
    return lambda dy, y: np.where(y < 0, dy * (y + negative), dy * scale)


functions_of_one(
    {
        "EluGrad": lambda one, dy, y: np.where(y < 0, (y + one) * dy, dy),  # y is the ELU
        "SoftplusGrad": lambda one, dy, x: np.divide(dy, one + np.exp(-x)),
        "Softsign": lambda one, x: np.divide(x, one + np.abs(x)),
        "SoftsignGrad": lambda one, dy, x: np.divide(dy, np.square(one + np.abs(x))),
    },
    FLOATS,
)
functions_of_one(
    {
        "SigmoidGrad": lambda one, y, dy: dy * y * (one - y),  # y is the sigmoid
        "TanhGrad": lambda one, y, dy: dy * (one - y * y),  # y is the tanh
    },
    FLOATS | COMPLEX,
)


@operator("SqrtGrad", types=FLOATS | COMPLEX, broadcasts=True)
def square_root_gradient(node: FlexNode) -> Step:
    """Return a function that computes the gradient ``dy / (2 * y)``; y is the square root.

    For complex numbers, y is conjugated first.
    """
    half = node.type("T").dtype.type(0.5)
    return _of_conjugate(lambda y, dy: half * dy / y, node)


@operator("RsqrtGrad", types=FLOATS | COMPLEX, broadcasts=True)
def reciprocal_square_root_gradient(node: FlexNode) -> Step:
    """Return a function that computes ``-dy * y**3 / 2``.

    Here y is the reciprocal of a square root; complex y is conjugated.
    """
    half = node.type("T").dtype.type(-0.5)
    return _of_conjugate(lambda y, dy: half * dy * (y * y * y), node)


@operator("ReciprocalGrad", "InvGrad", types=FLOATS | COMPLEX, broadcasts=True)
def reciprocal_gradient(node: FlexNode) -> Step:
    """Return a function that computes ``-dy * y**2``.

    Here y is the reciprocal; complex y is conjugated.
    """
    return _of_conjugate(lambda y, dy: -dy * (y * y), node)


def _of_conjugate(gradient: Step, node: FlexNode) -> Step:
    """Return *gradient*; for complex types, a step that applies *gradient* to y's conjugate."""
    if node.type("T") not in COMPLEX:
        return gradient
    return lambda y, dy: gradient(np.conj(y), dy)


def _alpha(node: FlexNode) -> Any:
    """Return the slope as a number of the operator's type; the attribute is a float32."""
    return node.type("T", DataType.FLOAT32).dtype.type(np.float32(node.float("alpha", 0.2)))
