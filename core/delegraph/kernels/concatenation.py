"""Kernel of CONCATENATION: joins tensors along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delegraph.arithmetic.elements import values_of
from delegraph.arithmetic.lookup_table import requantisation_table
from delegraph.arithmetic.output_shape import are_known, check_type, normalized_axis, size_output
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import pack
from delegraph.operators.checks import require_type, tensor_types
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Shape, Tensor
from delegraph.schema.enums import TensorType

_TYPES = tensor_types("FLOAT32 FLOAT16 BFLOAT16 INT8 UINT8 INT16 INT32 INT64 UINT32 BOOL INT4")


@kernel("CONCATENATION")
def prepare_concatenation(context: OpContext, node: Node) -> Eval:
    """Prepare CONCATENATION: the inputs joined along an axis.

    uint8 inputs whose scale or zero point differs from the output's are requantised by a table.

    Source:
        tflite/kernels/concatenation.cc; reference/concatenation.h, ConcatenationWithScaling.
    """
    inputs = [input_tensor(context, node, i) for i in range(len(node.inputs))]
    y = output_tensor(context, node)
    if not inputs:
        raise OperatorError("no inputs, expected at least one")
    if getattr(node.options, "fused_activation_function", 0):
        raise OperatorError("a fused activation function is not possible here, expected none")
    axis = _check(inputs, y, int(getattr(node.options, "axis", 0)))

    def plan() -> tuple[Shape, Eval]:
        return _joined_shape(inputs, axis), _joiner(inputs, y, axis)

    return size_output(context, y, plan, fold=inputs, packed=True)


def _check(inputs: Sequence[Tensor], y: Tensor, axis: int) -> int:
    first = inputs[0]
    require_type(first, _TYPES)
    check_type(y, first)
    for i, x in enumerate(inputs):
        check_type(x, first, f"input {i}")
        if len(x.shape) != len(first.shape):
            shapes = f"{list(first.shape)} and {list(x.shape)}"
            raise OperatorError(f"inputs 0 and {i} have the shapes {shapes}, expected equal ranks")
        if y.type is TensorType.INT8 and (x.scale, x.zero_point) != (y.scale, y.zero_point):
            raise OperatorError(
                f"int8 input {i} has scale {x.scale} and zero point {x.zero_point}, expected "
                f"the output's {y.scale} and {y.zero_point}"
            )
        if y.type is TensorType.INT16 and (x.zero_point or y.zero_point):
            raise OperatorError("int16 input or output has a zero point, expected 0")
    if not first.shape and are_known(inputs):  # constant scalars become a vector
        return normalized_axis(axis, 1)
    return normalized_axis(axis, len(first.shape))


def _joined_shape(inputs: Sequence[Tensor], axis: int) -> list[int]:
    shape = list(inputs[0].shape) or [1]
    shape[axis] = 0
    for i, x in enumerate(inputs):
        other = list(x.shape) or [1]
        shape[axis] += other[axis]
        if other[:axis] + other[axis + 1 :] != shape[:axis] + shape[axis + 1 :]:
            raise OperatorError(
                f"input {i} has shape {list(x.shape)}, input 0 {list(inputs[0].shape)}: "
                f"only dimension {axis} may differ"
            )
    return shape


def _joiner(inputs: Sequence[Tensor], y: Tensor, axis: int) -> Eval:
    if y.is_packed:
        return lambda: np.copyto(
            y.data, pack(np.concatenate([values_of(x) for x in inputs], axis), y.type)
        )
    same = (y.scale, y.zero_point)
    if y.type is not TensorType.UINT8 or all((x.scale, x.zero_point) == same for x in inputs):
        if not inputs[0].shape:
            return lambda: np.copyto(y.data, [x.data.item() for x in inputs])
        return lambda: np.concatenate([x.data for x in inputs], axis, out=y.data)
    tables = [requantisation_table(x, y) for x in inputs]
    slices = _slices(inputs, axis)

    def join_requantised() -> None:
        for x, table, part in zip(inputs, tables, slices, strict=True):
            if table is None:
                y.data[part] = x.data
            else:
                y.data[part] = table[x.data]

    return join_requantised


def _slices(inputs: Sequence[Tensor], axis: int) -> list[tuple[slice, ...]]:
    ends = np.cumsum([x.shape[axis] for x in inputs]).tolist()
    starts = [0, *ends[:-1]]
    lead = (slice(None),) * axis
    return [(*lead, slice(start, end)) for start, end in zip(starts, ends, strict=True)]
