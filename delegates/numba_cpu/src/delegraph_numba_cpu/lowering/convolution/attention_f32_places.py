"""Places of an attention's operands: numbers of batches, heads and rows, and their distances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from delegraph import Tensor
from delegraph_numba_cpu.lowering.fusion import Partition
from delegraph_numba_cpu.lowering.moves.moves import placeholder
from delegraph_numba_cpu.lowering.moves.seen_tensors import (
    Array,
    SeenTensor,
    after,
    before,
    merged_levels,
)
from delegraph_numba_cpu.lowering.registry import Call

MASK_LEVELS = 3
"""Number of words for distances between rows of a mask."""

Levels = list[tuple[int, int]]
"""Size of each dimension of an operand, outermost first, and the bytes between its neighbours."""


@dataclass(frozen=True, slots=True)
class Places:
    """Stored operands of an attention, and the words that describe their places to the kernel.

    Attributes:
        x: tensor that is read as the left operand of the first product.
        keys: tensor that is read as the right operand of the first product.
        values: tensor that is read as the right operand of the second product.
        y: tensor that is written as the result.
        words: numbers of batches, heads and queries, and the distances of all operands in bytes.
    """

    x: SeenTensor
    keys: SeenTensor
    values: SeenTensor
    y: SeenTensor
    words: dict[str, int]

    @property
    def members(self) -> set[int]:
        """Positions of the nodes that move operands; the fused kernel replaces these nodes."""
        return {m for seen in (self.x, self.keys, self.values, self.y) for m in seen.members}


def places(
    partition: Partition,
    first: Call,
    second: Call,
    mask: Tensor | None,
    scores: tuple[int, ...],
) -> Places | None:
    """Return the places of an attention's operands; None if the kernel cannot address them.

    Args:
        partition: the partition that has the nodes.
        first: the product of queries and keys.
        second: the product by the values.
        mask: tensor that is added to the scores, or None.
        scores: shape of the scores when the mask is added.
    """
    mask_words = _mask_words(mask, scores)
    if mask_words is None:
        return None
    batch = first.output().shape[:-2]
    choices = (
        [s for s in before(partition, first.input(0)) if _has_rows(_left(first, s))],
        [s for s in before(partition, first.input(1)) if _is_near(s)],
        [s for s in before(partition, second.input(1)) if _is_near(s)],
        [s for s in after(partition, second.output()) if _has_rows(s.array)],
    )
    for operands in product(*choices):
        x, keys, values, y = operands
        arrays = (_left(first, x), right(first, keys), right(second, values), y.array)
        shapes = (batch, batch, second.output().shape[:-2], second.output().shape[:-2])
        levels = [_levels(array, shape) for array, shape in zip(arrays, shapes, strict=True)]
        words = _row_words(arrays[0], arrays[3], levels)
        if words is not None:
            return Places(*operands, words | _steps(arrays[1], arrays[2]) | mask_words)
    return None


def _left(call: Call, seen: SeenTensor) -> Array:
    return seen.array.swapaxes(-1, -2) if call.options.adj_x else seen.array


def right(call: Call, seen: SeenTensor) -> Array:
    """Return the right matrices of a product as a strided view, ``[..., depth, columns]``.

    Args:
        call: the BATCH_MATMUL node.
        seen: the stored tensor, with a view in the shape of the node's second input.
    """
    return seen.array.swapaxes(-1, -2) if call.options.adj_y else seen.array


def _has_rows(array: Array) -> bool:
    """Whether the values of each row are adjacent in memory."""
    return array.shape[-1] == 1 or array.strides[-1] == array.itemsize


def _is_near(seen: SeenTensor) -> bool:
    """Whether a tensor's matrices can be read fast in the place where they are stored.

    Rows whose distance is a multiple of half a page compete for the same few places of a cache.
    Matrices with these rows are copied first.
    """
    return not seen.members or max(seen.array.strides[-2:]) % 2048 != 0


def _levels(array: Array, batch: Sequence[int]) -> Levels:
    """Return the sizes and the distances in bytes of each batch dimension of an operand.

    Dimensions are merged where possible. The last two of *array* are matrices, and *batch* are the
    dimensions to which these are broadcast.
    """
    repeated = np.broadcast_to(array, (*batch, *array.shape[-2:]))
    return merged_levels(batch, repeated.strides[:-2])


def _steps(keys: Array, values: Array) -> dict[str, int]:
    """Return the words, by name, for *keys*, ``[..., depth, keys]``, and values.

    Those are ``[..., keys, columns]``.
    """
    return {
        "keys_row": keys.strides[-1],
        "keys_column": keys.strides[-2],
        "values_row": values.strides[-2],
        "values_column": values.strides[-1],
    }


def _row_words(x: Array, y: Array, levels: Sequence[Levels]) -> dict[str, int] | None:
    """Return the kernel's operands, by name, for the batches, heads and rows of all four matrices.

    The result is None if the matrices have more than two batch dimensions.
    """
    queries, images = x.shape[-2], math.prod(y.shape[:-2])
    # All products share keys and values.
    if not any(step for each in levels[1:3] for _, step in each):
        merged = [
            merged_levels((*(n for n, _ in each), queries), (*(s for _, s in each), a.strides[-2]))
            for each, a in ((levels[0], x), (levels[3], y))
        ]
        if all(len(each) <= 1 for each in merged):
            x_row, y_row = (each[0][1] if each else 0 for each in merged)
            levels, queries, images = ([], [], [], []), images * queries, 1
            return _words(levels, images, queries, x_row, y_row)
    return _words(levels, images, queries, x.strides[-2], y.strides[-2])


def _words(
    levels: Sequence[Levels], images: int, queries: int, x_row: int, y_row: int
) -> dict[str, int] | None:
    cuts = {cut for each in levels for cut in _cuts(each)}
    if len(cuts) > 1:
        return None
    heads = cuts.pop() if cuts else images
    words = {"batches": images // heads, "heads": heads, "queries": queries}
    for name, each in zip(("x", "keys", "values", "y"), levels, strict=True):
        words[f"{name}_batch"], words[f"{name}_head"] = (_distance(each, i) for i in (heads, 1))
    return words | {"x_row": x_row, "y_row": y_row}


def _cuts(levels: Levels) -> Iterable[int]:
    """Return the numbers of matrices at which the distance to the next matrix changes."""
    sizes = [size for size, _ in levels]
    return (math.prod(sizes[i:]) for i in range(1, len(sizes)))


def _distance(levels: Levels, number: int) -> int:
    """Return the distance in bytes from the first matrix of an operand to matrix *number*.

    Matrices are counted over all batch dimensions, of which the outermost is the first.
    """
    distance = 0
    for size, step in reversed(levels):
        distance += number % size * step
        number //= size
    return distance


def _mask_words(mask: Tensor | None, scores: tuple[int, ...]) -> dict[str, int] | None:
    """Return the kernel's operands, by name, for the places of the mask's rows.

    The result is None if these operands cannot describe how the mask is broadcast.
    """
    if mask is None:
        levels, step = Levels(), 0
    else:
        repeated = np.broadcast_to(placeholder(mask.shape, np.float32), scores)
        levels = merged_levels(scores[:-1], repeated.strides[:-1])
        step = 0 if mask.shape[-1:] in ((), (1,)) else 4
    if len(levels) > MASK_LEVELS:
        return None
    (_, outer), (middles, middle), (inners, inner) = [
        *[(1, 0)] * (MASK_LEVELS - len(levels)), *levels
    ]  # fmt: skip
    return {
        "mask_rows": middles * inners,
        "mask_inner": inners,
        "mask_outer_step": outer,
        "mask_middle_step": middle,
        "mask_inner_step": inner,
        "mask_step": step,
    }
