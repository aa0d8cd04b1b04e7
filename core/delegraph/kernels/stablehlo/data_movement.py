"""Kernels of StableHLO operators that move or copy elements.

The operators are STABLEHLO_BROADCAST_IN_DIM, CONCATENATE, DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE,
IOTA, RESHAPE, SLICE and TRANSPOSE. The official interpreter only parses them; these kernels follow
the StableHLO specification. For some operators, the model file has the shape of the result.

Source:
    https://openxla.org/stablehlo/spec
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.stablehlo.types import ANY, INTEGER, NUMBER
from delegraph.operators.checks import (
    option,
    require_counts,
    require_rank,
    require_same_type,
    require_shape,
    require_type,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Tensor


def _operand(context: OpContext, node: Node, inputs: int = 1) -> tuple[Tensor, Tensor]:
    require_counts(node, inputs)
    x, y = input_tensor(context, node, 0), output_tensor(context, node)
    require_type(x, ANY)
    require_same_type(x, y)
    return x, y


def axes(node: Node, name: str, rank: int) -> tuple[int, ...]:
    """Return the option *name*, which lists axes of a tensor with *rank* axes.

    Raises:
        OperatorError: an axis is outside ``[0, rank)``, or is listed twice.
    """
    values = tuple(int(axis) for axis in option(node, name, ()) or ())
    if len(set(values)) != len(values) or any(not 0 <= axis < rank for axis in values):
        raise OperatorError(f"{name} is {list(values)}, expected different axes below {rank}")
    return values


def sizes(node: Node, name: str, count: int) -> tuple[int, ...]:
    """Return the option *name*, which must have one number for each of *count* axes.

    Raises:
        OperatorError: the option does not have *count* numbers.
    """
    values = tuple(int(size) for size in option(node, name, ()) or ())
    if len(values) != count:
        raise OperatorError(f"{name} is {list(values)}, expected {count} numbers")
    return values


@kernel("STABLEHLO_RESHAPE")
def prepare_reshape(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_RESHAPE: the same elements in the output's declared shape."""
    x, y = _operand(context, node)
    if math.prod(x.shape) != math.prod(y.shape):
        raise OperatorError(f"input {list(x.shape)} does not fill an output {list(y.shape)}")
    shape = y.shape
    context.resize_tensor(y, shape)

    def run() -> None:
        np.copyto(y.data, x.data.reshape(shape))

    return run


@kernel("STABLEHLO_TRANSPOSE")
def prepare_transpose(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_TRANSPOSE: output axis i is axis ``permutation[i]``."""
    x, y = _operand(context, node)
    permutation = axes(node, "permutation", len(x.shape))
    if len(permutation) != len(x.shape):
        raise OperatorError(f"permutation {list(permutation)} of {len(x.shape)} axes")
    context.resize_tensor(y, [x.shape[axis] for axis in permutation])

    def run() -> None:
        np.copyto(y.data, x.data.transpose(permutation))

    return run


@kernel("STABLEHLO_BROADCAST_IN_DIM")
def prepare_broadcast_in_dim(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_BROADCAST_IN_DIM: elements repeated to the output's declared shape.

    Input axis i becomes output axis ``broadcast_dimensions[i]``; an axis of length 1 is repeated.
    """
    x, y = _operand(context, node)
    dimensions = axes(node, "broadcast_dimensions", len(y.shape))
    if len(dimensions) != len(x.shape):
        raise OperatorError(f"broadcast_dimensions {list(dimensions)} of {len(x.shape)} axes")
    for axis, size in zip(dimensions, x.shape, strict=True):
        if size not in (1, y.shape[axis]):
            raise OperatorError(f"input {list(x.shape)} does not broadcast to {list(y.shape)}")
    context.resize_tensor(y, y.shape)
    order = np.argsort(dimensions)
    shape = [1] * len(y.shape)
    for axis, size in zip(dimensions, x.shape, strict=True):
        shape[axis] = size

    def run() -> None:
        np.copyto(y.data, x.data.transpose(order).reshape(shape))

    return run


@kernel("STABLEHLO_IOTA")
def prepare_iota(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_IOTA: each element's index along ``iota_dimension``."""
    (y,) = tensors_of(context, node, 0)
    require_type(y, NUMBER)
    axis = int(option(node, "iota_dimension", 0))
    if not 0 <= axis < len(y.shape):
        raise OperatorError(f"iota_dimension is {axis}, expected one below {len(y.shape)}")
    context.resize_tensor(y, y.shape)
    column = np.arange(y.shape[axis]).reshape((-1,) + (1,) * (len(y.shape) - axis - 1))

    def run() -> None:
        np.copyto(y.data, column, casting="unsafe")

    return run


@kernel("STABLEHLO_CONCATENATE")
def prepare_concatenate(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_CONCATENATE: the inputs joined along ``dimension``."""
    if not node.inputs:
        raise OperatorError("no inputs, expected at least one")
    x, y = _operand(context, node, len(node.inputs))
    inputs = [input_tensor(context, node, i) for i in range(len(node.inputs))]
    axis = int(option(node, "dimension", 0))
    if not 0 <= axis < len(x.shape):
        raise OperatorError(f"dimension is {axis}, expected one below {len(x.shape)}")
    for tensor in inputs:
        require_same_type(tensor, x)
        require_rank(tensor, len(x.shape))
        require_shape(tensor, (*x.shape[:axis], tensor.shape[axis], *x.shape[axis + 1 :]))
    total = sum(tensor.shape[axis] for tensor in inputs)
    context.resize_tensor(y, (*x.shape[:axis], total, *x.shape[axis + 1 :]))

    def run() -> None:
        np.concatenate([tensor.data for tensor in inputs], axis, out=y.data)

    return run


@kernel("STABLEHLO_SLICE")
def prepare_slice(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_SLICE: elements from start to before limit by stride, for each axis."""
    x, y = _operand(context, node)
    rank = len(x.shape)
    names = ("start_indices", "limit_indices", "strides")
    bounds = list(zip(*(sizes(node, name, rank) for name in names), strict=True))
    for (start, limit, stride), size in zip(bounds, x.shape, strict=True):
        if not 0 <= start <= limit <= size or stride < 1:
            raise OperatorError(f"slice {start}:{limit}:{stride} of an axis of length {size}")
    block = tuple(slice(*bound) for bound in bounds)
    context.resize_tensor(y, [len(range(*bound)) for bound in bounds])

    def run() -> None:
        np.copyto(y.data, x.data[block])

    return run


@kernel("STABLEHLO_DYNAMIC_SLICE")
def prepare_dynamic_slice(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_DYNAMIC_SLICE: a block of input 0, of ``slice_sizes``.

    The other inputs are the start of the block along each axis. The start is moved so that the
    block lies inside.
    """
    x, y = _operand(context, node, len(node.inputs))
    shape = sizes(node, "slice_sizes", len(x.shape))
    block = _Block(x, shape, _starts(context, node, 1, len(x.shape)))
    context.resize_tensor(y, shape)

    def run() -> None:
        np.copyto(y.data, x.data[block.index()])

    return run


@kernel("STABLEHLO_DYNAMIC_UPDATE_SLICE")
def prepare_dynamic_update_slice(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_DYNAMIC_UPDATE_SLICE: input 0 with a block from input 1.

    The other inputs are the start of the block along each axis. The start is moved so that the
    block lies inside.
    """
    x, y = _operand(context, node, len(node.inputs))
    update = input_tensor(context, node, 1)
    require_same_type(update, x)
    require_rank(update, len(x.shape))
    block = _Block(x, update.shape, _starts(context, node, 2, len(x.shape)))
    context.resize_tensor(y, x.shape)

    def run() -> None:
        np.copyto(y.data, x.data)
        y.data[block.index()] = update.data

    return run


def _starts(context: OpContext, node: Node, first: int, rank: int) -> list[Tensor]:
    starts = [input_tensor(context, node, i) for i in range(first, len(node.inputs))]
    if len(starts) != rank:
        raise OperatorError(f"{len(starts)} start indices, expected {rank}")
    for start in starts:
        require_type(start, INTEGER)
        require_shape(start, ())
    return starts


class _Block:
    """A block of a tensor; its position is known only during invoke."""

    def __init__(self, x: Tensor, shape: Sequence[int], starts: Sequence[Tensor]) -> None:
        self._room = [size - part for size, part in zip(x.shape, shape, strict=True)]
        self._shape = shape
        self._starts = starts
        if min(self._room, default=0) < 0 or min(shape, default=0) < 0:
            raise OperatorError(f"block {list(shape)} of a tensor {list(x.shape)}")

    def index(self) -> tuple[slice, ...]:
        """Return the index of the block in the tensor, from the starts of this invoke."""
        places = zip(self._starts, self._room, self._shape, strict=True)
        begins = [(max(0, min(int(at.data), room)), size) for at, room, size in places]
        return tuple(slice(begin, begin + size) for begin, size in begins)
