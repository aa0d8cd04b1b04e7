"""Operators that make ranges and one-hot vectors, or find positions between boundaries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import scalar
from delegraph_flex.numpy_executor.registry import FLOATS, operator

Array = NDArray[Any]


@operator("Range")
def range_(node: FlexNode) -> Step:
    """Return a function that returns start, start + delta, start + 2 delta, ... before limit."""
    dtype = node.type("Tidx", DataType.INT32).dtype

    def run(start: Array, limit: Array, delta: Array) -> Any:
        first, last, step = start.item(), limit.item(), delta.item()
        if step == 0 or not (last - first) * step >= 0:
            raise ValueError(f"range from {first} to {last} by {step} never ends")
        if isinstance(step, int):
            count = -(-(last - first) // step)
            require((count,), dtype)
            return first + step * np.arange(count, dtype=dtype)
        places = abs(float((limit - start) / delta))  # rounded to the operator's type
        if not math.isfinite(places):
            raise ValueError(f"range from {first} to {last} by {step} never ends")
        count = math.ceil(places)
        require((count,), np.int64)
        return start + np.arange(count).astype(dtype) * delta

    return run


@operator("LinSpace", types=FLOATS)
def linspace(node: FlexNode) -> Step:
    """Return a function that returns equally spaced numbers from start to stop, both included."""
    dtype = node.type("T").dtype

    def run(start: Array, stop: Array, num: Array) -> Any:
        count = scalar(num, "num")
        if start.size != 1 or stop.size != 1:
            raise ValueError(f"start and stop have shapes {start.shape} and {stop.shape}")
        require((count,), np.int64)
        if count < 1:
            raise ValueError(f"num is {count}, expected at least 1")
        if count == 1:
            return start.reshape(1)
        step = (stop - start) / dtype.type(count - 1)
        result = start + np.arange(count).astype(dtype) * step
        result[-1] = stop
        return result

    return run


@operator("OneHot")
def one_hot(node: FlexNode) -> Step:
    """Return a function that makes one-hot vectors along a new axis, with values for on and off."""
    axis = node.int("axis", -1)
    if axis < -1:
        raise Unsupported(f"attribute 'axis' is {axis}, expected -1 or more")

    def run(indices: Array, depth: Array, on: Array, off: Array) -> Array:
        rank = indices.ndim
        at = rank if axis == -1 else axis
        if at > rank:
            raise ValueError(f"axis is {axis}, expected it in [-1, {rank}]")
        shape = list(indices.shape)
        shape.insert(at, depth.item())
        require(shape, np.result_type(on, off))
        places = np.arange(shape[at]).reshape(-1, *[1] * (rank - at))
        before = (slice(None),) * at
        return np.where(indices[(*before, None, ...)] == places, on, off)

    return run


@operator("Bucketize")
def bucketize(node: FlexNode) -> Step:
    """Return a function that returns the number of boundaries not above each value, as int32."""
    boundaries = np.array(node.floats("boundaries"), np.float32)
    if (boundaries[1:] < boundaries[:-1]).any():
        raise Unsupported("attribute 'boundaries' is not sorted")
    # Values are compared as float64, so that integers of 32 bits stay exact.
    wide = boundaries.astype(np.float64)
    return lambda x: np.searchsorted(wide, x, "right").astype(np.int32)
