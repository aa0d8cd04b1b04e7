"""Copies windows of an input as rows of matrices (im2col), one cache-sized tile at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.padding import Window
from delegraph.operators.registration import OpContext

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

TILE_VALUES = 1 << 18
"""Number of matrix entries in a tile: one megabyte of float32."""

LEAST_ROWS = 128
"""Number of rows below which BLAS spends most of its time on packing the weights."""


class Patches:
    """The windows of one image, copied to matrices in tiles of output rows.

    Any number of spatial dimensions is allowed; channels are the last axis. If windows are
    pointwise and the dtype fits, the image itself is used and nothing is copied.

    Args:
        context: context that provides working memory.
        windows: windows along each spatial axis.
        channels: channels of the image.
        groups: number of groups into which the channels are divided; each has its own matrix.
        image_dtype: dtype of the image.
        dtype: dtype of the matrix.
        outputs: number of columns of the product that is computed from a tile, which limits the
            rows of a tile.

    Attributes:
        rows: number of windows of one image.
        depth: number of values in a window and group: taps times channels of the group.
        tile_rows: largest number of rows in a tile.
    """

    def __init__(
        self,
        context: OpContext,
        windows: tuple[Window, ...],
        channels: int,
        groups: int,
        image_dtype: DTypeLike,
        dtype: DTypeLike,
        outputs: int,
    ) -> None:
        self._windows = windows
        self._channels = channels
        self._groups = groups
        self._sizes = tuple(window.output for window in windows)
        self.rows = math.prod(self._sizes)
        self.depth = math.prod(window.kernel for window in windows) * channels // groups
        self._tiles = _tiles(self._sizes, _rows_of_tile(self.depth, outputs))
        self.tile_rows = max((stop - start for _, start, stop in self._tiles), default=0)
        self._is_pointwise = groups == 1 and all(window.is_pointwise for window in windows)
        self._is_view = self._is_pointwise and np.dtype(image_dtype) == np.dtype(dtype)
        self._is_padded = any(w.before or w.after for w in windows)
        if self._is_padded:
            shape = (*(window.padded for window in windows), channels)
            self._padded = context.scratch(shape, image_dtype)
        if not self._is_view:
            self._matrix = context.scratch((groups, self.tile_rows * self.depth), dtype)

    def tiles(
        self, image: NDArray[Any], pad_value: float = 0
    ) -> Iterator[tuple[slice, list[NDArray[Any]]]]:
        """Yield tiles in order: a slice of windows, and each group's matrix of their values.

        Args:
            image: ``[*spatial, C]``, contiguous.
            pad_value: value around the image.

        A matrix is ``[windows, depth]``, valid until the next tile.
        """
        if self._is_pointwise:
            yield from self._pointwise_tiles(image.reshape(-1, self._channels))
            return
        views = self._views(self._surrounded(image, pad_value))
        for index, start, stop in self._tiles:
            parts = []
            for view, memory in zip(views, self._matrix.data, strict=True):
                tile, matrix = view[index], memory[: (stop - start) * self.depth]
                np.copyto(matrix.reshape(tile.shape), tile)
                parts.append(matrix.reshape(stop - start, self.depth))
            yield slice(start, stop), parts

    def _pointwise_tiles(self, image: NDArray[Any]) -> Iterator[tuple[slice, list[NDArray[Any]]]]:
        for _, start, stop in self._tiles:
            tile = image[start:stop]
            if not self._is_view:
                matrix = self._matrix.data[0, : tile.size].reshape(tile.shape)
                np.copyto(matrix, tile)
                tile = matrix
            yield slice(start, stop), [tile]

    def _surrounded(self, image: NDArray[Any], pad_value: float) -> NDArray[Any]:
        if not self._is_padded:
            return image
        padded: NDArray[Any] = self._padded.data
        padded.fill(pad_value)
        padded[tuple(slice(w.before, w.before + w.input) for w in self._windows)] = image
        return padded

    def _views(self, image: NDArray[Any]) -> list[NDArray[Any]]:
        """Return each group's windows of *image*, a view ``[*outputs, *kernels, C / groups]``."""
        steps = image.strides[:-1]
        taps = tuple(window.kernel for window in self._windows)
        width = self._channels // self._groups
        windows: NDArray[Any] = np.ndarray(  # as_strided takes five times as long
            (*self._sizes, *taps, self._channels),
            image.dtype,
            image,
            strides=(
                *(step * w.stride for step, w in zip(steps, self._windows, strict=True)),
                *(step * w.dilation for step, w in zip(steps, self._windows, strict=True)),
                image.itemsize,
            ),
        )
        if self._groups == 1:
            return [windows]
        return [windows[..., i * width : (i + 1) * width] for i in range(self._groups)]


def split_groups(matrix: NDArray[Any], groups: int) -> tuple[NDArray[Any], ...]:
    """Split the columns of a matrix ``[K, O]``: one matrix ``[K, O / groups]`` for each group."""
    return tuple(np.split(matrix, groups, axis=1))


def multiply_groups(
    parts: Sequence[NDArray[Any]], matrices: Sequence[NDArray[Any]], out: NDArray[Any]
) -> None:
    """Store the matrix product of each group in the columns of *out* that belong to the group.

    Args:
        parts: the input of each group, ``[M, K]``.
        matrices: the weights of each group, ``[K, O / groups]``, of the same dtype.
        out: ``[M, O]``, of the same dtype.
    """
    if len(parts) == 1:
        np.matmul(parts[0], matrices[0], out=out)
        return
    columns = np.split(out, len(parts), axis=1)
    for part, matrix, column in zip(parts, matrices, columns, strict=True):
        np.matmul(part, matrix, out=column)


def _rows_of_tile(depth: int, outputs: int) -> int:
    return max(TILE_VALUES // max(depth, outputs, 1), LEAST_ROWS)


def _tiles(sizes: tuple[int, ...], limit: int) -> list[tuple[tuple[slice, ...], int, int]]:
    """Return blocks of at most *limit* windows that are consecutive in memory.

    *sizes* is the number of windows along each axis.

    Each block is an index into the window grid, with the first and end of its windows in row-major
    order.

    >>> [(start, stop) for _, start, stop in _tiles((3, 4), 8)]
    [(0, 8), (8, 12)]
    """
    lengths = _box(sizes, limit)
    ranges = [range(0, size, length) for size, length in zip(sizes, lengths, strict=True)]
    tiles, start = [], 0
    for corner in product(*ranges):
        index = tuple(
            slice(at, min(at + length, size))
            for at, length, size in zip(corner, lengths, sizes, strict=True)
        )
        stop = start + math.prod(s.stop - s.start for s in index)
        tiles.append((index, start, stop))
        start = stop
    return tiles


def _box(sizes: tuple[int, ...], limit: int) -> tuple[int, ...]:
    """Return the side lengths of a block of at most *limit* windows.

    A block covers inner axes completely before it extends along outer axes. *sizes* is the number
    of windows along each axis.
    """
    lengths = []
    for size in reversed(sizes):
        length = max(min(size, limit), 1)
        lengths.append(length)
        limit = limit // length if length == size else 1
    return tuple(reversed(lengths))
