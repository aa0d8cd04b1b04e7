"""Kernels of SPLIT and SPLIT_V."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delegraph.arithmetic.output_shape import integers, normalized_axis, size_outputs
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    INDEX,
    WIDE_INDEX,
    adopt_type,
    option,
    require_counts,
    require_rank,
    require_type,
    tensor_types,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Shape, Tensor, element_count

_TYPES = tensor_types("FLOAT32 INT8 UINT8 INT16 INT32 INT64")


@kernel("SPLIT")
def prepare_split(context: OpContext, node: Node) -> Eval:
    """Prepare SPLIT: equal parts along the axis in input 0.

    Source:
        tflite/kernels/split.cc.
    """
    require_counts(node, 2, option(node, "num_splits", len(node.outputs)))
    axis_input, x = input_tensor(context, node, 0), input_tensor(context, node, 1)
    outputs = _outputs(context, node, x, axis_input)

    def plans() -> tuple[Sequence[Shape], Eval]:
        axis = normalized_axis(integers(axis_input)[0], len(x.shape))
        size, rest = divmod(x.shape[axis], len(outputs))
        if rest:
            raise OperatorError(
                f"dimension {axis} of {list(x.shape)} cannot be split in {len(outputs)} equal parts"
            )
        return _parts(x, outputs, axis, [size] * len(outputs))

    return size_outputs(context, outputs, plans, shape_inputs=(axis_input,))


@kernel("SPLIT_V")
def prepare_split_v(context: OpContext, node: Node) -> Eval:
    """Prepare SPLIT_V: parts with the sizes in input 1, one of which may be -1.

    Source:
        tflite/kernels/split_v.cc.
    """
    require_counts(node, 3, option(node, "num_splits", len(node.outputs)))
    x, sizes_input = input_tensor(context, node, 0), input_tensor(context, node, 1)
    axis_input = input_tensor(context, node, 2)
    outputs = _outputs(context, node, x, axis_input)
    require_type(sizes_input, WIDE_INDEX)
    require_rank(sizes_input, 1)
    if element_count(sizes_input.shape) != len(outputs):
        raise OperatorError(f"{element_count(sizes_input.shape)} sizes, expected {len(outputs)}")

    def plans() -> tuple[Sequence[Shape], Eval]:
        axis = normalized_axis(integers(axis_input)[0], len(x.shape))
        sizes = _completed(integers(sizes_input), x.shape[axis])
        return _parts(x, outputs, axis, sizes)

    return size_outputs(context, outputs, plans, shape_inputs=(sizes_input, axis_input))


def _outputs(context: OpContext, node: Node, x: Tensor, axis_input: Tensor) -> list[Tensor]:
    if element_count(axis_input.shape) != 1:
        raise OperatorError(f"axis has shape {list(axis_input.shape)}, expected one element")
    require_type(x, _TYPES)
    require_type(axis_input, INDEX)
    outputs = [output_tensor(context, node, i) for i in range(len(node.outputs))]
    for y in outputs:
        adopt_type(y, x.type)
    if not outputs:
        raise OperatorError("no outputs, expected at least one")
    return outputs


def _completed(sizes: Sequence[int], total: int) -> list[int]:
    """Return *sizes* with -1 replaced by *total* minus the sum of the other sizes."""
    rest = total - sum(size for size in sizes if size != -1)
    result = [rest if size == -1 else size for size in sizes]
    if list(sizes).count(-1) > 1 or min(result) < 0 or sum(result) != total:
        raise OperatorError(f"sizes {list(sizes)} do not add up to the dimension {total}")
    return result


def _parts(
    x: Tensor, outputs: Sequence[Tensor], axis: int, sizes: Sequence[int]
) -> tuple[Sequence[Shape], Eval]:
    ends = np.cumsum(sizes).tolist()
    lead = (slice(None),) * axis
    parts = [
        (y, (*lead, slice(end - size, end)))
        for y, size, end in zip(outputs, sizes, ends, strict=True)
    ]
    shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]

    def split() -> None:
        data = x.data
        for y, part in parts:
            np.copyto(y.data, data[part])

    return shapes, split
