"""Random numbers of the gamma and Poisson distributions, equal to TensorFlow's bit for bit.

Each number is drawn by rejection sampling in double precision, from its own part of the random
stream.

Source:
    core/kernels/random_op.cc, stateless_random_gamma_op.cc, random_poisson_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import requested_shape, require
from delegraph_flex.numpy_executor.operators.stateful_random import stream_of
from delegraph_flex.numpy_executor.operators.stateless_random import place, result_type
from delegraph_flex.numpy_executor.philox import SMALLEST_UNIFORM, Philox, doubles
from delegraph_flex.numpy_executor.registry import operator

Array = NDArray[Any]
Pairs = Iterator[list[float]]
"""Iterator over pairs of uniform numbers, one pair from each group of random words."""

Draw = Callable[[Pairs, float], float]
"""Function that draws one number from uniform pairs, given the distribution's parameter."""

_PAIRS = 4  # number of pairs that are drawn at a time: enough for most numbers
_STRETCH = 256  # number of groups of the stream reserved for each number
_FLOATS = (DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT64)
_COUNTS = (*_FLOATS, DataType.INT32, DataType.INT64)


@operator("RandomGamma", types=_FLOATS)
def random_gamma(node: FlexNode) -> Step:
    """Function that draws gamma random numbers; the output shape is shape + alpha's shape."""
    return _continued(node, _gamma, node.type("T").dtype)


@operator("StatelessRandomGammaV2", "StatelessRandomGammaV3")
def stateless_random_gamma(node: FlexNode) -> Step:
    """Function that draws gamma random numbers; the output shape ends with the shape of alpha."""
    return _seeded(node, _gamma, result_type(node, "dtype", DataType.FLOAT32, _FLOATS))


@operator("RandomPoissonV2")
def random_poisson(node: FlexNode) -> Step:
    """Function that draws Poisson random numbers; the output shape is shape + rate's shape."""
    result_type(node, "R", DataType.FLOAT64, _COUNTS)
    return _continued(node, _poisson, result_type(node, "dtype", DataType.INT64, _COUNTS))


@operator("StatelessRandomPoisson")
def stateless_random_poisson(node: FlexNode) -> Step:
    """Return a function that draws Poisson random numbers.

    The output shape ends with the shape of the rate.
    """
    result_type(node, "Rtype", DataType.FLOAT64, _COUNTS)
    return _seeded(node, _poisson, result_type(node, "dtype", DataType.INT64, _COUNTS))


def _continued(node: FlexNode, draw: Draw, dtype: np.dtype[Any]) -> Step:
    """Return a function that draws from the node's own stream."""
    stream = stream_of(node)

    def run(shape: Array, parameters: Array) -> Array:
        dims = (*requested_shape(shape, dtype), *parameters.shape)
        require(dims, dtype)
        return _drawn(stream.reserve_outputs(math.prod(dims)), dims, parameters, draw, dtype)

    return run


def _seeded(node: FlexNode, draw: Draw, dtype: np.dtype[Any]) -> Step:
    """Return a function that draws from a seed; from key, counter and algorithm in version 3."""
    start = place if node.op.endswith("V3") else Philox.of_stateless_seed

    def run(shape: Array, *inputs: Array) -> Array:
        *seed, parameters = inputs
        return _drawn(start(*seed), requested_shape(shape, dtype), parameters, draw, dtype)

    return run


def _drawn(
    random: Philox, dims: tuple[int, ...], parameters: Array, draw: Draw, dtype: np.dtype[Any]
) -> Array:
    """Return random numbers of shape *dims*, which must end with the shape of *parameters*.

    *draw* computes one of them from pairs of uniform numbers, which *random* gives, and from one of
    the *parameters*.
    """
    if dims[len(dims) - parameters.ndim :] != parameters.shape or len(dims) < parameters.ndim:
        shapes = f"{list(dims)} and {list(parameters.shape)}"
        raise ValueError(f"shapes of output and parameter are {shapes}, expected an equal end")
    if not math.prod(dims):
        return np.zeros(dims, dtype)
    # For other parameters, some draws would never end.
    if not (np.isfinite(parameters) & (parameters >= 0)).all():
        raise ValueError("a parameter is negative or not finite")
    count = math.prod(dims)
    starts = np.arange(count) * _STRETCH
    pairs = doubles(random.blocks(starts, _PAIRS).reshape(-1)).reshape(count, _PAIRS, 2).tolist()
    each = np.repeat(parameters.reshape(-1), count // parameters.size).tolist()
    values = [
        draw(_endless(first, random.skipped(start + _PAIRS)), parameter)
        for first, start, parameter in zip(pairs, starts.tolist(), each, strict=True)
    ]
    return np.array(values).astype(dtype).reshape(parameters.size, -1).T.reshape(dims)


def _endless(first: list[list[float]], random: Philox) -> Pairs:
    """Yield the pairs of uniform numbers in *first*, then the next pairs of *random*, endlessly."""
    yield from first
    while True:
        yield from doubles(random.words(_PAIRS).reshape(-1)).reshape(_PAIRS, 2).tolist()
        random = random.skipped(_PAIRS)


def _gamma(pairs: Pairs, alpha: float) -> float:
    """Return a random number of the gamma distribution *alpha* (Marsaglia and Tsang's method).

    *pairs* has pairs of uniform numbers.
    """
    if alpha == 0:
        return 0.0
    if alpha == 1:
        return -math.log1p(-next(pairs)[1])
    normals: list[float] = []
    uniforms: list[float] = []

    def uniform() -> float:
        if not uniforms:
            uniforms.extend(next(pairs))
        return uniforms.pop()

    d = alpha + (2.0 / 3 if alpha < 1 else -1.0 / 3)
    c = 1.0 / 3 / math.sqrt(d)
    while True:
        if not normals:
            normals.extend(_normals(*next(pairs)))
        x = normals.pop()
        v = 1 + c * x
        if v <= 0:
            continue
        v = v * v * v
        u = uniform()
        squeezed = u < 1 - 0.0331 * (x * x) * (x * x)
        if squeezed or _log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
            return d * v * (uniform() ** (1 / alpha) if alpha < 1 else 1.0)


def _normals(first: float, second: float) -> tuple[float, float]:
    """Return two normally distributed numbers from the uniform numbers *first* and *second*.

    The method is Box and Muller's.
    """
    radius = math.sqrt(-2 * math.log(max(first, SMALLEST_UNIFORM)))
    angle = 2 * math.pi * second
    return math.sin(angle) * radius, math.cos(angle) * radius


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def _poisson(pairs: Pairs, rate: float) -> float:
    """Return a random number of the Poisson distribution with *rate*, from uniform *pairs*.

    The method is Knuth's for rates below 10, otherwise Hörmann's.
    """
    uniforms = (value for pair in pairs for value in reversed(pair))
    return _knuth(uniforms, rate) if rate < 10 else _hoermann(uniforms, rate)


def _knuth(uniforms: Iterator[float], rate: float) -> float:
    limit = math.exp(-rate)
    product, count = next(uniforms), 0
    while product > limit:
        product, count = product * next(uniforms), count + 1
    return count


def _hoermann(uniforms: Iterator[float], rate: float) -> float:
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    while True:
        u, v = next(uniforms) - 0.5, next(uniforms)
        shifted = 0.5 - abs(u)
        if shifted == 0:
            continue
        k = math.floor((2 * a / shifted + b) * u + rate + 0.43)
        if shifted >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (shifted < 0.013 and v > shifted):
            continue
        s = _log(v * inverse / (a / (shifted * shifted) + b))
        if s <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return k
