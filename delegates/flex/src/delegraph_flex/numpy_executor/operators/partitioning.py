"""Operators that distribute rows over several tensors, and that merge them again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import zeros
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_range
from delegraph_flex.numpy_executor.registry import operator


@operator("DynamicPartition")
def dynamic_partition(node: FlexNode) -> Step:
    """Function that distributes slices over several tensors, by their partition numbers."""
    count = node.int("num_partitions")
    if count < 1:
        raise Unsupported(f"num_partitions is {count}, expected at least 1")

    def run(data: NDArray[Any], numbers: NDArray[Any]) -> list[NDArray[Any]]:
        if data.shape[: numbers.ndim] != numbers.shape:
            raise ValueError(
                f"partitions have shape {list(numbers.shape)}, expected the beginning of"
                f" {list(data.shape)}"
            )
        check_range(numbers, count, "partitions")
        return [data[numbers == number] for number in range(count)]

    return run


@operator("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(node: FlexNode) -> Step:
    """Function that merges slices at their indices, of equal ones the last; other places are 0."""
    count = node.int("N")

    def run(*inputs: NDArray[Any]) -> NDArray[Any]:
        indices, data = inputs[:count], inputs[count:]
        inner = data[0].shape[indices[0].ndim :]
        for where, values in zip(indices, data, strict=True):
            if values.shape != where.shape + inner:
                raise ValueError(
                    f"data of shape {list(values.shape)} at indices of shape {list(where.shape)},"
                    f" expected {list(where.shape + inner)}"
                )
        places = np.concatenate([where.reshape(-1) for where in indices])
        shape = (int(places.max(initial=-1)) + 1, *inner)
        require(shape, data[0].dtype)
        check_range(places, shape[0])
        result = zeros(shape, data[0].dtype)
        for where, values in zip(indices, data, strict=True):
            result[where] = values
        return result

    return run
