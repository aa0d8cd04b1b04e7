"""Kernels of REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.interior_pad import InteriorPadding
from delegraph.arithmetic.output_shape import integers
from delegraph.errors import OperatorError
from delegraph.kernels.stablehlo.data_movement import sizes
from delegraph.kernels.stablehlo.elementwise import greater, less
from delegraph.operators.checks import (
    option,
    require_counts,
    require_same_type,
    require_type,
    tensor_types,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    CallableSubgraph,
    Eval,
    Node,
    OpContext,
    input_tensor,
    output_tensor,
)
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ReduceWindowFunction as Function
from delegraph.schema.enums import TensorType

Array = NDArray[Any]
Accumulate = Callable[[Array, Array], object]
"""Function that updates its first argument in place, by combining it with its second."""

_MAX_RANK = 6
_TYPES = tensor_types("BOOL INT8 INT16 INT32 INT64 UINT8 FLOAT32 FLOAT64")
_BODIES = {
    "ADD": Function.ADD,
    "LOGICAL_AND": Function.ALL,
    "LOGICAL_OR": Function.ANY,
    "MAXIMUM": Function.MAXIMUM,
    "MINIMUM": Function.MINIMUM,
    "MUL": Function.MUL,
    "STABLEHLO_ADD": Function.ADD,
    "STABLEHLO_AND": Function.ALL,
    "STABLEHLO_MAXIMUM": Function.MAXIMUM,
    "STABLEHLO_MINIMUM": Function.MINIMUM,
    "STABLEHLO_MULTIPLY": Function.MUL,
    "STABLEHLO_OR": Function.ANY,
}


@kernel("REDUCE_WINDOW")
def prepare_reduce_window(context: OpContext, node: Node) -> Eval:
    """Prepare REDUCE_WINDOW: each window of input 0, reduced to one element.

    Each reduction starts from the value in input 1.

    Inputs 2, 3 and 4 are the windows' size, strides and dilations.

    Source:
        TFLiteData, tflite/kernels/stablehlo_reduce_window.cc.
    """
    x, init, y = _operands(context, node, 5)
    parameters = [input_tensor(context, node, i) for i in (2, 3, 4)]
    for tensor in parameters:
        require_type(tensor, {TensorType.INT64})
        if not tensor.is_constant or tensor.shape != (len(x.shape),):
            raise OperatorError(
                f"tensor {tensor.name!r} has shape {list(tensor.shape)}, expected a constant of "
                f"{len(x.shape)} numbers"
            )
    windows = _Windows(x.shape, *(integers(tensor) for tensor in parameters))
    function = Function(option(node, "reduce_function", Function.UNSUPPORTED))
    if function == Function.UNSUPPORTED:
        raise OperatorError("reduce_function is UNSUPPORTED")
    context.resize_tensor(y, windows.counts)
    return _reduction(windows, x, init, _ACCUMULATE[function], y)


@kernel("STABLEHLO_REDUCE_WINDOW")
def prepare_stablehlo_reduce_window(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_REDUCE_WINDOW: each window, reduced to one element.

    Each reduction starts from the value in input 1.

    Input 0 is dilated and padded with input 1. A subgraph with one operator is the reduction.

    Source:
        StablehloData, tflite/kernels/stablehlo_reduce_window.cc.
    """
    x, init, y = _operands(context, node, 2)
    rank = len(x.shape)
    names = ("window_dimensions", "window_strides", "window_dilations", "base_dilations")
    window, strides, dilations, base = (sizes(node, name, rank) for name in names)
    _require_positive("base_dilations", base)
    padding = sizes(node, "padding", 2 * rank)
    gaps = [dilation - 1 for dilation in base]
    placement = InteriorPadding.of(x.shape, padding[::2], padding[1::2], gaps)
    if 0 in placement.shape:
        raise OperatorError(f"padding {list(padding)} leaves {list(placement.shape)}")
    windows = _Windows(placement.shape, window, strides, dilations)
    body = context.subgraph(int(option(node, "body_subgraph_index", 0)))
    accumulate = _ACCUMULATE[_function(body)]
    context.resize_tensor(y, windows.counts)
    if not any(padding) and not any(gaps):
        return _reduction(windows, x, init, accumulate, y)
    padded = context.scratch(placement.shape, x.dtype)

    def run() -> None:
        first = init.data.reshape(-1)[0]
        placement(x.data, first, padded.data)
        y.data.fill(first)
        windows.reduce(padded.data, accumulate, y.data)

    return run


def _reduction(
    windows: _Windows, x: Tensor, init: Tensor, accumulate: Accumulate, y: Tensor
) -> Eval:
    def run() -> None:
        y.data.fill(init.data.reshape(-1)[0])
        windows.reduce(x.data, accumulate, y.data)

    return run


def _operands(context: OpContext, node: Node, inputs: int) -> tuple[Tensor, Tensor, Tensor]:
    require_counts(node, inputs)
    x, init = input_tensor(context, node, 0), input_tensor(context, node, 1)
    y = output_tensor(context, node)
    require_type(x, _TYPES)
    if math.prod(init.shape) == 0:  # the first of several is used
        raise OperatorError(f"initial value has shape {list(init.shape)}, expected one element")
    for tensor in (init, y):
        require_same_type(tensor, x)
    if not 1 <= len(x.shape) <= _MAX_RANK:
        raise OperatorError(f"input has shape {list(x.shape)}, expected 1 to {_MAX_RANK} axes")
    return x, init, y


def _function(body: CallableSubgraph) -> Function:
    names = [operator.name for operator in body.operators]
    if len(names) != 1 or names[0] not in _BODIES:
        raise OperatorError(f"reduction is {names}, expected one of {', '.join(sorted(_BODIES))}")
    return _BODIES[names[0]]


def _require_positive(name: str, values: Sequence[int]) -> None:
    if min(values) < 1:
        raise OperatorError(f"{name} are {list(values)}, expected numbers from 1 up")


class _Windows:
    """Sizes, strides and dilations of the windows over all axes of an array.

    Attributes:
        counts: number of windows along each axis.
    """

    def __init__(
        self,
        shape: Sequence[int],
        window: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
    ) -> None:
        _require_positive("window dimensions", window)
        _require_positive("window strides", strides)
        _require_positive("window dilations", dilations)
        self._window, self._strides, self._dilations = window, strides, dilations
        self.counts = tuple(
            max((size - ((taps - 1) * dilation + 1)) // stride + 1, 0)
            for size, taps, stride, dilation in zip(shape, window, strides, dilations, strict=True)
        )

    def reduce(self, x: Array, accumulate: Accumulate, y: Array) -> None:
        """Combine the elements of each window of *x* into one element of *y*, in place.

        *accumulate* is called with *y* and the first elements of all windows, then with their
        second elements, and so on.
        """
        if not y.size:
            return
        for tap in np.ndindex(*self._window):
            steps = zip(tap, self._dilations, self._strides, self.counts, strict=True)
            index = tuple(
                slice(at * dilation, at * dilation + (count - 1) * stride + 1, stride)
                for at, dilation, stride, count in steps
            )
            accumulate(y, x[index])


def _add(y: Array, x: Array) -> None:
    np.add(y, x, out=y)


def _multiply(y: Array, x: Array) -> None:
    np.multiply(y, x, out=y)


def _maximum(y: Array, x: Array) -> None:
    greater(x, y, y)  # NaN is replaced by the next value


def _minimum(y: Array, x: Array) -> None:
    less(x, y, y)


def _all(y: Array, x: Array) -> None:
    np.copyto(y, np.logical_and(y, x))


def _any(y: Array, x: Array) -> None:
    np.copyto(y, np.logical_or(y, x))


_ACCUMULATE: dict[Function, Accumulate] = {
    Function.ADD: _add,
    Function.MUL: _multiply,
    Function.MINIMUM: _minimum,
    Function.MAXIMUM: _maximum,
    Function.ALL: _all,
    Function.ANY: _any,
}
