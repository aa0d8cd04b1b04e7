"""Operators that move blocks of pixels between space, batch and channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.registry import functions, operator

Array = NDArray[Any]


functions(
    {
        "SpaceToBatchND": lambda x, block, paddings: _space_to_batch(x, block.tolist(), paddings),
        "BatchToSpaceND": lambda x, block, crops: _batch_to_space(x, block.tolist(), crops),
    }
)


@operator("SpaceToBatch")
def space_to_batch_2d(node: FlexNode) -> Step:
    """Return a function that pads with zeros, and moves elements of square blocks to the batch."""
    block = [_block_size(node)] * 2
    return lambda x, paddings: _space_to_batch(x, block, paddings)


@operator("BatchToSpace")
def batch_to_space_2d(node: FlexNode) -> Step:
    """Return a function that moves elements from the batch to square blocks, and crops the result.

    It reverses :func:`space_to_batch_2d`.
    """
    block = [_block_size(node)] * 2
    return lambda x, crops: _batch_to_space(x, block, crops)


@operator("SpaceToDepth")
def space_to_depth(node: FlexNode) -> Step:
    """Function that reorders [n, h, w, c] to [n, h / block, w / block, block x block x c]."""
    node.choice("data_format", ("NHWC",), "NHWC")
    size = _block_size(node)

    def run(x: Array) -> Array:
        n, h, w, c = _four(x)
        if h % size or w % size:
            raise ValueError(f"a space of {h} x {w} is no multiple of blocks of {size}")
        split = x.reshape(n, h // size, size, w // size, size, c)
        return split.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // size, w // size, size * size * c)

    return run


@operator("DepthToSpace")
def depth_to_space(node: FlexNode) -> Step:
    """Return a function that reorders [n, h, w, block x block x c] to [n, h block, w block, c]."""
    node.choice("data_format", ("NHWC",), "NHWC")
    size = _block_size(node)

    def run(x: Array) -> Array:
        n, h, w, depth = _four(x)
        c, rest = divmod(depth, size * size)
        if rest:
            raise ValueError(f"{depth} channels are no multiple of {size} x {size}")
        split = x.reshape(n, h, w, size, size, c)
        return split.transpose(0, 1, 3, 2, 4, 5).reshape(n, h * size, w * size, c)

    return run


def _block_size(node: FlexNode) -> int:
    size = node.int("block_size")
    if size < 2:
        raise Unsupported(f"attribute 'block_size' is {size}, expected at least 2")
    return size


def _four(x: Array) -> tuple[int, int, int, int]:
    if x.ndim != 4:
        raise ValueError(f"input has shape {list(x.shape)}, expected four dimensions")
    n, h, w, c = x.shape
    return n, h, w, c


def _check_block(x: Array, block: list[int], borders: Array) -> None:
    """Check that a *block*'s sizes, and its paddings or crops *borders*, fit the input *x*."""
    if x.ndim <= len(block):
        raise ValueError(f"input has shape {list(x.shape)}, expected over {len(block)} dimensions")
    if min(block, default=1) < 1:
        raise ValueError(f"block is {block}, expected positive sizes")
    if borders.shape != (len(block), 2) or (borders.size and borders.min() < 0):
        raise ValueError(
            f"paddings or crops are {borders.tolist()}, expected {len(block)} pairs from 0"
        )


def _space_to_batch(x: Array, block: list[int], paddings: Array) -> Array:
    """Return *x* padded with zeros, with elements of blocks moved to the batch axis."""
    _check_block(x, block, paddings)
    n, count = x.shape[0], len(block)
    space, rest = x.shape[1 : 1 + count], x.shape[1 + count :]
    pads = paddings.tolist()
    padded = [a + dim + b for dim, (a, b) in zip(space, pads, strict=True)]
    if any(dim % size for dim, size in zip(padded, block, strict=True)):
        raise ValueError(f"a padded space of {padded} is no multiple of blocks of {block}")
    whole = x
    if tuple(padded) != space:
        require((n, *padded, *rest), x.dtype)
        whole = np.zeros((n, *padded, *rest), x.dtype)
        inside = (slice(a, a + dim) for dim, (a, _) in zip(space, pads, strict=True))
        whole[(slice(None), *inside)] = x
    counts = [dim // size for dim, size in zip(padded, block, strict=True)]
    split = whole.reshape(
        n, *(part for pair in zip(counts, block, strict=True) for part in pair), *rest
    )
    axes = range(count)
    order = [
        *(2 + 2 * i for i in axes),
        0,
        *(1 + 2 * i for i in axes),
        *range(1 + 2 * count, split.ndim),
    ]
    return split.transpose(order).reshape(n * math.prod(block), *counts, *rest)


def _batch_to_space(x: Array, block: list[int], crops: Array) -> Array:
    """Return *x* with elements of the batch axis moved to blocks, and cropped.

    It reverses :func:`_space_to_batch`.
    """
    _check_block(x, block, crops)
    count = len(block)
    n, left_over = divmod(x.shape[0], math.prod(block))
    if left_over:
        raise ValueError(f"a batch of {x.shape[0]} is no multiple of blocks of {block}")
    space, rest = x.shape[1 : 1 + count], x.shape[1 + count :]
    split = x.reshape(*block, n, *space, *rest)
    # Each spatial axis is followed by its axis of the block: [n, space, block, ..., rest].
    order = [count, *(axis for i in range(count) for axis in (count + 1 + i, i))]
    whole = split.transpose([*order, *range(1 + 2 * count, split.ndim)]).reshape(
        n, *(dim * size for dim, size in zip(space, block, strict=True)), *rest
    )
    inside = []
    for dim, (before, after) in zip(whole.shape[1:], crops.tolist(), strict=False):
        if before + after > dim:
            raise ValueError(f"crops {[before, after]} of {dim} elements leave less than none")
        inside.append(slice(before, dim - after))
    return whole[(slice(None), *inside)]
