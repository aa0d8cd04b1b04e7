"""Random numbers from a stream that continues from call to call.

With seeds that are not both 0, a node's numbers equal those of a separate TensorFlow kernel, in
every interpreter and at every call. If both seeds are 0, the operating system provides other seeds.
The interpreter keeps each node's position in its stream, so numbers continue after a new
allocation.

Source:
    core/kernels/random_op.cc, multinomial_op.cc, random_shuffle_op.cc.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import requested_shape
from delegraph_flex.numpy_executor.operators.stateless_random import integers_between, result_type
from delegraph_flex.numpy_executor.philox import (
    Philox,
    Stream,
    flat_words,
    normal,
    truncated_normal,
    uniform,
)
from delegraph_flex.numpy_executor.random_classes import draw_classes
from delegraph_flex.numpy_executor.registry import FLOATS, operator


def stream_of(node: FlexNode) -> Stream:
    """Return the random stream of *node*, which its interpreter keeps."""
    seeds = node.int("seed", 0), node.int("seed2", 0)
    key = f"flex random {node.index} {node.op} {seeds}"
    stream = node.around.resources.get(key)
    if stream is None:
        if seeds == (0, 0):
            seeds = secrets.randbits(64), secrets.randbits(64)
        stream = node.around.resources[key] = Stream(*seeds)
    found: Stream = stream
    return found


def _drawn(node: FlexNode, draw: Callable[[Philox, int], NDArray[Any]]) -> Step:
    stream = stream_of(node)

    def run(shape: NDArray[Any]) -> NDArray[Any]:
        dims = requested_shape(shape, np.int64)
        count = int(np.prod(dims))
        return draw(stream.reserve_outputs(count), count).reshape(dims)

    return run


_DISTRIBUTIONS = {
    "RandomUniform": uniform,  # in [0, 1)
    "RandomStandardNormal": normal,
    "TruncatedNormal": truncated_normal,  # within two standard deviations
}


@operator(*_DISTRIBUTIONS)
def random_floats(node: FlexNode) -> Step:
    """Return a function that draws floats of a distribution, of a given shape."""
    dtype = result_type(node, "dtype", DataType.FLOAT32, FLOATS)
    return _drawn(node, partial(_DISTRIBUTIONS[node.op], dtype=dtype))


@operator("RandomUniformInt")
def random_uniform_int(node: FlexNode) -> Step:
    """Return a function that draws integers between two limits, of a given shape."""
    result_type(node, "Tout", DataType.INT64, (DataType.INT32, DataType.INT64))
    stream = stream_of(node)

    def run(shape: NDArray[Any], low: Any, high: Any) -> NDArray[Any]:
        dims = requested_shape(shape, np.int64)
        count = int(np.prod(dims))
        return integers_between(stream.reserve_outputs(count), count, low, high).reshape(dims)

    return run


@operator("Multinomial")
def multinomial(node: FlexNode) -> Step:
    """Return a function that draws classes by the logits in each row."""
    dtype = result_type(node, "output_dtype", DataType.INT64, (DataType.INT32, DataType.INT64))
    stream = stream_of(node)
    return lambda logits, count: draw_classes(logits, count, stream.reserve_outputs, dtype)


@operator("RandomShuffle")
def random_shuffle(node: FlexNode) -> Step:
    """Return a function that shuffles slices along the first axis."""
    stream = stream_of(node)

    def run(values: NDArray[Any]) -> NDArray[Any]:
        if values.ndim == 0 or values.size <= 1 or len(values) <= 1:
            return values
        count = len(values) - 1
        words = flat_words(stream.reserve(-(-count // 4)), count)
        steps = (words % np.arange(count + 1, 1, -1, dtype=np.uint32)).tolist()
        order = list(range(count + 1))
        for i, step in enumerate(steps):
            order[i], order[i + step] = order[i + step], order[i]
        return values[order]

    return run
