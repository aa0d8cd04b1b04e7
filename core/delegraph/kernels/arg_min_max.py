"""Kernels of ARG_MAX and ARG_MIN: positions of the largest or smallest elements along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.output_shape import integers, normalized_axis, size_output
from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import require_type, tensor_types, tensors_of, type_option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INPUTS = tensor_types("FLOAT32 UINT8 INT8 INT32 BOOL")
_INDICES = {TensorType.INT32, TensorType.INT64}
_SHORT = 32  # longest row that is searched column by column
_MANY = 2048  # number of rows from which column by column is faster
_SMALL = 1 << 14  # number of elements up to which all are searched
_BLOCK_BYTES = 1 << 19  # rows handled at a time, so that they stay in cache


@kernel("ARG_MAX")
def prepare_arg_max(context: OpContext, node: Node) -> Eval:
    """Prepare ARG_MAX: positions of the largest elements along an axis; of equals, the first.

    NaN is never the result; if all elements are NaN, the result is 0.

    Source:
        tflite/kernels/arg_min_max.cc. If several consecutive elements are NaN, the official kernel
        may return the position of a NaN.
    """
    return _prepare(context, node, _Search(np.argmax, np.greater, np.maximum, np.fmax))


@kernel("ARG_MIN")
def prepare_arg_min(context: OpContext, node: Node) -> Eval:
    """Prepare ARG_MIN: positions of the smallest elements; equal elements and NaN as in ARG_MAX."""
    return _prepare(context, node, _Search(np.argmin, np.less, np.minimum, np.fmin))


@dataclass(frozen=True)
class _Search:
    """Functions that find the largest (ARG_MAX) or the smallest (ARG_MIN) element.

    Attributes:
        first: function that finds the first best element, or the first NaN.
        is_better: function of two elements; true if the first one is better.
        better: function that returns the better of two elements, or NaN.
        better_number: function that returns the better of two elements; if one is NaN, the other.
    """

    first: Callable[..., Any]
    is_better: Callable[..., Any]
    better: Callable[..., Any]
    better_number: Any

    def first_number(self, x: NDArray[Any], axis: int) -> NDArray[np.intp]:
        """Return the position along *axis* of the best element that is first; 0 if all are NaN."""
        best = self.better_number.reduce(x, axis=axis, keepdims=True)
        return np.asarray(np.argmax(x == best, axis=axis))


def _prepare(context: OpContext, node: Node, search: _Search) -> Eval:
    x, axis, y = tensors_of(context, node, 2)
    require_type(x, _INPUTS)
    require_type(axis, _INDICES)
    y.adopt_type(type_option(node, "output_type", y.type))
    require_type(y, _INDICES)
    if np.prod(axis.shape) != 1 or not x.shape:
        raise OperatorError(
            f"input and axis have shapes {x.shape} and {axis.shape}, expected a dimension in the "
            "first and one element in the second"
        )

    is_float = x.type is TensorType.FLOAT32

    def plan() -> tuple[tuple[int, ...], Eval]:
        along = normalized_axis(integers(axis)[0], len(x.shape))
        if x.shape[along] == 0:
            raise OperatorError(f"axis {along} of {x.shape} is empty, expected elements")

        def run() -> None:
            found = search.first(x.data, axis=along)
            if is_float and _has_nan(x.data, found, along):
                found = search.first_number(x.data, along)
            y.data[...] = found

        shape = x.shape[:along] + x.shape[along + 1 :]
        if axis.is_constant_or_persistent and _has_many_short_rows(x, along):
            return shape, _along_rows(context, x, y, search)
        return shape, run

    return size_output(context, y, plan, shape_inputs=(axis,))


def _has_nan(x: NDArray[Any], positions: NDArray[np.intp], axis: int) -> bool:
    """Whether *x* has NaN.

    *positions* are those of the best elements along *axis*, found by a function that takes NaN for
    the best. So only the elements there need to be looked at.
    """
    if positions.size == 1:
        return math.isnan(x.item(positions.item()))
    if 0 < x.size <= _SMALL:
        return math.isnan(x.max())
    return bool(np.isnan(np.take_along_axis(x, np.expand_dims(positions, axis), axis)).any())


def _has_many_short_rows(x: Tensor, along: int) -> bool:
    is_last = along == len(x.shape) - 1
    is_short = x.shape[along] <= _SHORT and x.type is not TensorType.BOOL
    return is_last and is_short and math.prod(x.shape[:along]) >= _MANY


def _along_rows(context: OpContext, x: Tensor, y: Tensor, search: _Search) -> Eval:
    """Return the evaluation for many short rows of *x*: *search* compares whole columns.

    ``argmax`` takes more time for starting each row than for the elements of a short row.
    """
    length = x.shape[-1]
    size = max(_MANY, _BLOCK_BYTES // (length * x.dtype.itemsize))
    size = min(size, math.prod(x.shape[:-1]))
    columns = context.scratch((length, size), x.dtype)
    # Whether an element is better, its position, and the best element.
    marks = context.scratch((3, size), np.uint8)
    is_float = x.type is TensorType.FLOAT32
    positions = [np.array(i, np.uint8) for i in range(length)]

    def run() -> None:
        rows, out = x.data.reshape(-1, length), y.data.reshape(-1)
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            best, *others = columns.data[:, : len(block)]
            found, candidate, index = marks.data[:, : len(block)]
            np.copyto(columns.data[:, : len(block)], block.T)
            index.fill(0)
            for column, position in zip(others, positions[1:], strict=True):
                search.is_better(column, best, out=found.view(np.bool_))
                np.multiply(found, position, candidate)
                np.maximum(index, candidate, out=index)  # positions only increase
                search.better(best, column, out=best)
            if is_float and np.isnan(best.max()):
                index = search.first_number(block, 1)
            out[start : start + len(block)] = index

    return run
