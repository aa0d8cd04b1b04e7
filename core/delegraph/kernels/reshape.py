"""RESHAPE, SQUEEZE, EXPAND_DIMS and BITCAST: the same bytes with another shape or type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delegraph.arithmetic.elements import forward
from delegraph.arithmetic.output_shape import check_type, integers, normalized_axis, size_output
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import NUMPY_DTYPES, OBJECT_TYPES
from delegraph.operators.checks import (
    WIDE_INDEX,
    adopt_type,
    require_counts,
    require_one_element,
    require_type,
    require_zero_points,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    InPlace,
    Node,
    OpContext,
    input_tensor,
    optional_input,
    output_tensor,
)
from delegraph.operators.tensor import Shape, Tensor, element_count
from delegraph.schema.enums import TensorType

SAME_BYTES = InPlace.INPUT_0 | InPlace.DATA_UNMODIFIED


@kernel("RESHAPE", inplace=SAME_BYTES)
def prepare_reshape(context: OpContext, node: Node) -> Eval:
    """Prepare RESHAPE: the same elements with another shape.

    The shape is the value of input 1 if this is an int32 vector; otherwise the options have it.

    Source:
        tflite/kernels/reshape.cc, Prepare and GetOutputShape.
    """
    require_counts(node, (1, 2))
    x, y = input_tensor(context, node, 0), output_tensor(context, node)
    shape_input = optional_input(context, node, 1)
    if shape_input is not None and not _is_int32_vector(shape_input):
        shape_input = None
    shape_inputs = () if shape_input is None else (shape_input,)
    if not _have_same_bytes(x, y):
        check_type(y, x)

    def plan() -> tuple[Shape, Eval]:
        wanted = _shape_option(node) if shape_input is None else integers(shape_input)
        return stretched(wanted, x.shape), forward(x, y)

    return size_output(context, y, plan, shape_inputs=shape_inputs, fold=(x,), packed=True)


def _have_same_bytes(x: Tensor, y: Tensor) -> bool:
    """Whether the bytes of *x* can be copied to *y*, although their types may differ."""
    plain = not (x.is_packed or y.is_packed or OBJECT_TYPES & {x.type, y.type})
    return plain and x.dtype.itemsize == y.dtype.itemsize


def _is_int32_vector(tensor: Tensor) -> bool:
    return len(tensor.shape) == 1 and tensor.type is TensorType.INT32


def _shape_option(node: Node) -> list[int]:
    option = getattr(node.options, "new_shape", None)
    shape = [] if option is None else [int(size) for size in option]
    return [] if shape == [0] else shape  # old converters wrote [0] for a scalar


def stretched(wanted: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Return *wanted* with -1 replaced so that it has as many elements as *shape*.

    Dimensions of 0 are ignored in the division, so ``[0, -1]`` keeps the product of the other
    dimensions.

    Raises:
        OperatorError: two dimensions are -1, or no size fits.

    >>> stretched([2, -1], (3, 2))
    [2, 3]
    >>> stretched([0, -1], (0, 3))
    [0, 3]
    """
    if list(wanted).count(-1) > 1:
        raise OperatorError(f"shape {list(wanted)} has more than one -1")
    given = [size for size in wanted if size != -1]
    free = element_count([n for n in shape if n]) // element_count([n for n in given if n])
    if 0 in shape and 0 not in given:
        free = 0
    result = [free if size == -1 else size for size in wanted]
    if element_count(result) != element_count(shape) or min(result, default=0) < 0:
        raise OperatorError(f"the elements of {list(shape)} cannot take the shape {list(wanted)}")
    return result


@kernel("SQUEEZE", inplace=SAME_BYTES)
def prepare_squeeze(context: OpContext, node: Node) -> Eval:
    """Prepare SQUEEZE: the same elements, without dimensions of size 1.

    Source:
        tflite/kernels/squeeze.cc.
    """
    x, y = tensors_of(context, node, 1)
    check_type(y, x)
    rank = len(x.shape)
    option = getattr(node.options, "squeeze_dims", None)
    axes = {normalized_axis(int(axis), rank) for axis in (() if option is None else option)}
    for axis in sorted(axes):
        if x.shape[axis] != 1:
            raise OperatorError(f"dimension {axis} of {list(x.shape)} is to be dropped but not 1")

    def plan() -> tuple[Shape, Eval]:
        drop = axes or {axis for axis in range(rank) if x.shape[axis] == 1}
        return [x.shape[axis] for axis in range(rank) if axis not in drop], forward(x, y)

    return size_output(context, y, plan, packed=True)


@kernel("EXPAND_DIMS", inplace=SAME_BYTES)
def prepare_expand_dims(context: OpContext, node: Node) -> Eval:
    """Prepare EXPAND_DIMS: the same elements, with a new dimension of size 1.

    Source:
        tflite/kernels/expand_dims.cc.
    """
    x, axis_input, y = tensors_of(context, node, 2)
    adopt_type(y, x.type)
    require_type(axis_input, WIDE_INDEX)
    require_one_element(axis_input)
    if x.type is TensorType.INT16:
        require_zero_points(x)

    def plan() -> tuple[Shape, Eval]:
        given = int(np.int64(integers(axis_input)[0]).astype(np.int32))  # as LiteRT's int holds it
        axis = normalized_axis(given, len(x.shape) + 1)
        return (*x.shape[:axis], 1, *x.shape[axis:]), forward(x, y)

    return size_output(context, y, plan, shape_inputs=(axis_input,), fold=(x,), packed=True)


@kernel("BITCAST", inplace=SAME_BYTES)
def prepare_bitcast(context: OpContext, node: Node) -> Eval:
    """Prepare BITCAST: the input's bytes, read as another type.

    A narrower element type adds a last dimension, a wider type removes it.

    Source:
        tflite/kernels/bitcast.cc, CalculateShape.
    """
    x, y = tensors_of(context, node, 1)
    for tensor in (x, y):
        if tensor.is_packed or tensor.type in OBJECT_TYPES:
            raise OperatorError(f"tensor {tensor.name!r} is {tensor.type.name}, expected numbers")
    before, after = NUMPY_DTYPES[x.type].itemsize, NUMPY_DTYPES[y.type].itemsize
    shape: tuple[int, ...] = x.shape
    if before > after:
        shape = (*x.shape, before // after)
    elif before < after:
        if not x.shape or x.shape[-1] != after // before:
            raise OperatorError(
                f"last dimension of {list(x.shape)} is not {after // before}, "
                f"which {x.type.name} to {y.type.name} needs"
            )
        shape = x.shape[:-1]
    return size_output(context, y, lambda: (shape, forward(x, y)), packed=True)
