"""Random numbers as a function of a seed, equal to TensorFlow's bit for bit.

Normal numbers need a logarithm, a sine and a cosine; the C library computes them, as in TensorFlow.

Source:
    core/kernels/stateless_random_ops.cc and stateless_random_ops_v2.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import requested_shape
from delegraph_flex.numpy_executor.philox import (
    Philox,
    flat_long_words,
    flat_words,
    normal,
    truncated_normal,
    uniform,
)
from delegraph_flex.numpy_executor.random_classes import draw_classes
from delegraph_flex.numpy_executor.registry import FLOATS, functions, operator, step_of

Draw = Callable[[Philox, int], NDArray[Any]]
"""Function that draws a number of values from a position in the stream."""

_PHILOX, _AUTOMATIC = 1, 3
_INTEGERS = {
    DataType.INT32: DataType.UINT32,
    DataType.INT64: DataType.UINT64,
    DataType.UINT32: DataType.UINT32,
    DataType.UINT64: DataType.UINT64,
}


def result_type(node: FlexNode, name: str, default: DataType, types: Any) -> np.dtype[Any]:
    """Return the dtype in the attribute *name*.

    Raises:
        Unsupported: the dtype is not in *types*.
    """
    type = node.type(name, default)
    if type not in types:
        known = " or ".join(sorted(known.name for known in types))
        raise Unsupported(f"{node.op} of {type.name}, expected {known}", "dtype")
    return type.dtype


def place(key: NDArray[Any], counter: NDArray[Any], alg: NDArray[Any]) -> Philox:
    """Return the Philox generator at the position given by key and counter.

    *alg* is the number of the algorithm, which is checked.
    """
    if np.ndim(alg) or int(alg) not in (_PHILOX, _AUTOMATIC):
        raise ValueError(f"algorithm is {alg}, expected {_PHILOX} (Philox) or {_AUTOMATIC}")
    if key.shape != (1,) or counter.ndim != 1 or len(counter) < 2:
        shapes = f"{list(key.shape)} and {list(counter.shape)}"
        raise ValueError(f"key and counter have shapes {shapes}, expected [1] and [2]")
    return Philox(int(key[0]), int(counter[1]) << 64 | int(counter[0]))


def _drawing(node: FlexNode, draw: Draw) -> Step:
    """Return the function of a shape and a seed that draws numbers.

    From version 2 on, key, counter and algorithm are in place of the seed.
    """
    start = place if node.op.endswith("V2") else Philox.of_stateless_seed

    def run(shape: NDArray[Any], *seed: NDArray[Any]) -> NDArray[Any]:
        dims = requested_shape(shape, np.int64)
        return draw(start(*seed), int(np.prod(dims))).reshape(dims)

    return run


_DISTRIBUTIONS = {
    "StatelessRandomUniform": uniform,  # in [0, 1)
    "StatelessRandomNormal": normal,
    "StatelessTruncatedNormal": truncated_normal,  # within two standard deviations
}


@operator(*_DISTRIBUTIONS, *(f"{name}V2" for name in _DISTRIBUTIONS))
def random_floats(node: FlexNode) -> Step:
    """Return a function that draws floats of a distribution."""
    dtype = result_type(node, "dtype", DataType.FLOAT32, FLOATS)
    return _drawing(node, partial(_DISTRIBUTIONS[node.op.removesuffix("V2")], dtype=dtype))


def integers(random: Philox, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return integers of *dtype* with all bits random: ``[count]``."""
    words = flat_long_words(random, count) if dtype.itemsize == 8 else flat_words(random, count)
    numbers: NDArray[Any] = words.view(dtype)
    return numbers


def integers_between(
    random: Philox, count: int, low: NDArray[Any], high: NDArray[Any]
) -> NDArray[Any]:
    """Return integers in [low, high): ``[count]``, of the dtype of the limits.

    Raises:
        ValueError: the limits are no scalars, or the range is empty.
    """
    dtype = np.asarray(low).dtype
    if np.ndim(low) or np.ndim(high):
        shapes = f"{list(np.shape(low))} and {list(np.shape(high))}"
        raise ValueError(f"limits have shapes {shapes}, expected scalars")
    if count and not low < high:
        raise ValueError(f"limits are {low} and {high}, expected the first to be less")
    unsigned = np.dtype(f"u{dtype.itemsize}")
    room = max(int(high) - int(low), 1)
    words = integers(random, count, unsigned) % unsigned.type(room)
    offset = unsigned.type(int(low) & (1 << 8 * dtype.itemsize) - 1)
    numbers: NDArray[Any] = (words + offset).view(dtype)
    return numbers


@operator("StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2")
def random_bits(node: FlexNode) -> Step:
    """Return a function that draws integers with all bits random."""
    dtype = result_type(node, "dtype", DataType.UINT64, _INTEGERS)
    return _drawing(node, partial(integers, dtype=dtype))


@operator("StatelessRandomUniformInt", "StatelessRandomUniformIntV2")
def random_integers(node: FlexNode) -> Step:
    """Return a function that draws integers between two limits, which are the last inputs."""
    result_type(node, "dtype", DataType.INT64, (DataType.INT32, DataType.INT64))

    def run(shape: NDArray[Any], *inputs: Any) -> Any:
        *seed, low, high = inputs
        return _drawing(node, partial(integers_between, low=low, high=high))(shape, *seed)

    return run


@step_of("StatelessRandomGetKeyCounter")
def stateless_random_get_key_counter(seed: NDArray[Any]) -> list[NDArray[Any]]:
    """Return key and counter from a seed."""
    random = Philox.of_stateless_seed(seed)
    halves = [random.counter & (1 << 64) - 1, random.counter >> 64]
    return [np.array([random.key], np.uint64), np.array(halves, np.uint64)]


functions(
    {
        "StatelessRandomGetAlg": lambda: np.array(_PHILOX, np.int32),
        "StatelessRandomGetKeyCounterAlg": lambda seed: [
            *stateless_random_get_key_counter(seed),
            np.array(_PHILOX, np.int32),
        ],
    }
)


@operator("StatelessMultinomial")
def stateless_multinomial(node: FlexNode) -> Step:
    """Return a function that draws classes by the logits in each row, from a seed."""
    dtype = result_type(node, "output_dtype", DataType.INT64, (DataType.INT32, DataType.INT64))

    def run(logits: NDArray[Any], count: NDArray[Any], seed: NDArray[Any]) -> NDArray[Any]:
        return draw_classes(logits, count, lambda _: Philox.of_stateless_seed(seed), dtype)

    return run
