"""Diagonals and bands of matrices."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType, zeros
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_matrices, scalar
from delegraph_flex.numpy_executor.registry import NUMBERS, operator, step_of


class Band(NamedTuple):
    """Positions of the elements of several diagonals, in matrices and in the packed form.

    The packed form has a row for each diagonal, from the highest to the lowest; all rows have the
    length of the longest diagonal.

    Attributes:
        shape: shape of the packed form; one dimension for a single diagonal.
        packed: indices into the packed form, after the indices of the batch.
        rows: row of each packed element in the matrix.
        columns: column of each packed element in the matrix.
    """

    shape: tuple[int, ...]
    packed: tuple[Any, ...]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]


@lru_cache(maxsize=64)
def band(rows: int, columns: int, low: int, high: int, align: str) -> Band:
    """Return the positions of diagonals *low* to *high* of matrices.

    *align* is the alignment, in the rows of the packed form, of diagonals above and below the main
    diagonal, such as ``"RIGHT_LEFT"``. Diagonals below the main diagonal are negative.
    """
    above, below = align.split("_")
    spans = []  # diagonal, first row, length
    for k in range(high, low - 1, -1):
        first = max(0, -k)
        spans.append((k, first, min(rows - first, columns - max(0, k))))
    longest = max(length for _, _, length in spans)
    where, i, j, n = [], [], [], []
    for row, (k, first, length) in enumerate(spans):
        steps = np.arange(length)
        is_left = (k >= 0 and above == "LEFT") or (k <= 0 and below == "LEFT")
        where.append(steps + (0 if is_left else longest - length))
        n.append(np.full(length, row))
        i.append(steps + first)
        j.append(steps + first + k)
    packed = (..., np.concatenate(n), np.concatenate(where))
    if low == high:
        return Band((longest,), (..., packed[2]), np.concatenate(i), np.concatenate(j))
    return Band((high - low + 1, longest), packed, np.concatenate(i), np.concatenate(j))


_ALIGNS = tuple(f"{above}_{below}" for above in ("LEFT", "RIGHT") for below in ("LEFT", "RIGHT"))


def _align(node: FlexNode) -> str:
    """Return the alignment of diagonals: an attribute in version 3, always ``LEFT_LEFT`` before."""
    return node.choice("align", _ALIGNS, "RIGHT_LEFT") if node.op.endswith("3") else "LEFT_LEFT"


def _diagonals(k: NDArray[Any]) -> tuple[int, int]:
    """Return the lowest and highest diagonal from *k*, which has one or two numbers."""
    numbers: list[int] = np.asarray(k).reshape(-1).tolist()
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        raise ValueError(f"k is {numbers}, expected one number, or two that increase")
    return numbers[0], numbers[-1]


def _check_inside(low: int, high: int, rows: int, columns: int) -> None:
    for k in (low, high):
        if k and not -rows < k < columns:
            raise ValueError(f"diagonal {k} is not inside a matrix of {rows} x {columns}")


@operator("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part(node: FlexNode) -> Step:
    """Return a function that returns one or several diagonals of matrices."""
    align = _align(node)

    def run(x: NDArray[Any], k: NDArray[Any], padding: NDArray[Any]) -> NDArray[Any]:
        check_matrices(x)
        low, high = _diagonals(k)
        _check_inside(low, high, *x.shape[-2:])
        at = band(*x.shape[-2:], low, high, align)
        result = np.full(x.shape[:-2] + at.shape, padding, x.dtype)
        result[at.packed] = x[..., at.rows, at.columns]
        return result

    def main(x: NDArray[Any]) -> NDArray[Any]:
        check_matrices(x)
        return x.diagonal(axis1=-2, axis2=-1).copy()

    return main if node.op == "MatrixDiagPart" else run


@operator("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(node: FlexNode) -> Step:
    """Return a function that replaces one or several diagonals of matrices."""
    align = _align(node)

    def run(x: NDArray[Any], diagonal: NDArray[Any], k: NDArray[Any]) -> NDArray[Any]:
        check_matrices(x)
        low, high = _diagonals(k)
        _check_inside(low, high, *x.shape[-2:])
        at = band(*x.shape[-2:], low, high, align)
        expected = x.shape[:-2] + at.shape
        if diagonal.shape != expected:
            raise ValueError(
                f"diagonal has shape {list(diagonal.shape)}, expected {list(expected)}"
            )
        result = x.copy()
        result[..., at.rows, at.columns] = diagonal[at.packed]
        return result

    zero = np.zeros((), np.int32)
    return (lambda x, d: run(x, d, zero)) if node.op == "MatrixSetDiag" else run


@operator("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def matrix_diag(node: FlexNode) -> Step:
    """Function that makes matrices with the given diagonals, and a padding value elsewhere."""
    align = _align(node)

    def run(
        diagonal: NDArray[Any],
        k: NDArray[Any],
        rows: NDArray[Any],
        columns: NDArray[Any],
        padding: NDArray[Any],
    ) -> NDArray[Any]:
        low, high = _diagonals(k)
        count = high - low + 1
        if diagonal.ndim < 1 + (count > 1) or (count > 1 and diagonal.shape[-2] != count):
            raise ValueError(
                f"diagonal has shape {list(diagonal.shape)}, expected {count} diagonals"
            )
        size = scalar(rows, "num_rows"), scalar(columns, "num_cols")
        height, width = _matrix_size(diagonal.shape[-1], low, high, *size)
        at = band(height, width, low, high, align)
        shape = (*diagonal.shape[: diagonal.ndim - len(at.shape)], height, width)
        require(shape, diagonal.dtype)
        result = np.full(shape, padding, diagonal.dtype)
        result[..., at.rows, at.columns] = diagonal[at.packed]
        return result

    zero, unknown = np.zeros((), np.int32), np.full((), -1, np.int32)
    padding = zeros((), node.type("T").dtype)
    if node.op == "MatrixDiag":
        return lambda diagonal: run(diagonal, zero, unknown, unknown, padding)
    return run


def _matrix_size(longest: int, low: int, high: int, rows: int, columns: int) -> tuple[int, int]:
    """Return the size of matrices with a longest diagonal of length *longest*.

    *low* and *high* are the lowest and highest diagonal.

    A *rows* or *columns* of -1 is computed.

    Raises:
        ValueError: a dimension is too small, or the diagonals would have to be longer.
    """
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows, columns = least_rows if rows == -1 else rows, least_columns if columns == -1 else columns
    fits = rows >= least_rows and columns >= least_columns
    if not fits or (rows != least_rows and columns != least_columns):
        raise ValueError(
            f"a matrix of {rows} x {columns} does not have diagonals {low} to {high} of length"
            f" {longest}"
        )
    require((rows, columns), np.bool_)
    _check_inside(low, high, rows, columns)
    return rows, columns


@step_of("MatrixBandPart", types=frozenset(DataType))
def matrix_band_part(x: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any]) -> NDArray[Any]:
    """Return matrices with zeros outside a band, which lies around the main diagonal."""
    check_matrices(x)
    rows, columns = x.shape[-2:]
    low, high = scalar(lower, "num_lower"), scalar(upper, "num_upper")
    if low > rows or high > columns:
        raise ValueError(f"a band of {low} below and {high} above in {rows} x {columns}")
    keep = _inside_band(rows, columns, low, high)
    return np.where(keep, x, zeros((), x.dtype))


@lru_cache(maxsize=16)
def _inside_band(rows: int, columns: int, low: int, high: int) -> NDArray[np.bool_]:
    offset = np.arange(columns) - np.arange(rows)[:, None]
    return ((low < 0) | (offset >= -low)) & ((high < 0) | (offset <= high))


@step_of("Diag", types=NUMBERS)
def diag(x: NDArray[Any]) -> NDArray[Any]:
    """Return a tensor of twice the rank, with *x* on its diagonal."""
    if not x.ndim:
        raise ValueError("input is a scalar, expected at least one dimension")
    require(x.shape * 2, x.dtype)
    result = np.zeros((x.size, x.size), x.dtype)
    np.fill_diagonal(result, x.reshape(-1))
    return result.reshape(x.shape * 2)


@step_of("DiagPart", types=NUMBERS)
def diag_part(x: NDArray[Any]) -> NDArray[Any]:
    """Return the elements for which both halves of the index are equal."""
    half = x.ndim // 2
    if not x.ndim or x.shape[:half] != x.shape[half:]:
        raise ValueError(f"input has shape {list(x.shape)}, expected a shape twice")
    size = math.prod(x.shape[:half])
    return x.reshape(size, size).diagonal().reshape(x.shape[:half]).copy()
