"""Kernels of PACK and UNPACK."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delegraph.arithmetic.output_shape import check_type, normalized_axis, size_output, size_outputs
from delegraph.errors import OperatorError
from delegraph.operators.checks import option, require_counts, require_type, tensor_types
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Shape
from delegraph.schema.enums import TensorType

_PACKED = tensor_types("FLOAT32 INT8 UINT8 INT16 INT32 INT64")
_UNPACKED = _PACKED - {TensorType.INT64} | {
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.BOOL,
}


@kernel("PACK")
def prepare_pack(context: OpContext, node: Node) -> Eval:
    """Prepare PACK: stacks inputs of one shape along a new axis.

    Source:
        tflite/kernels/pack.cc.
    """
    require_counts(node, None)
    inputs = [input_tensor(context, node, i) for i in range(len(node.inputs))]
    y = output_tensor(context, node)
    count = int(option(node, "values_count", 0))
    if not inputs or len(inputs) != count:
        raise OperatorError(f"{len(inputs)} inputs, expected the {count} that the options count")
    first = inputs[0]
    require_type(first, _PACKED | {TensorType.UINT32})
    for i, x in enumerate(inputs):
        check_type(x, y, f"input {i}")
        if x.shape != first.shape:
            raise OperatorError(f"input {i} is {list(x.shape)}, expected {list(first.shape)}")
        if (x.scale, x.zero_point) != (y.scale, y.zero_point):
            raise OperatorError(
                f"input {i} has scale {x.scale} and zero point {x.zero_point}, expected the "
                f"output's {y.scale} and {y.zero_point}"
            )
    axis = normalized_axis(int(getattr(node.options, "axis", 0)), len(first.shape) + 1)

    def plan() -> tuple[Shape, Eval]:
        shape = (*first.shape[:axis], len(inputs), *first.shape[axis:])
        places = [(*(slice(None),) * axis, i) for i in range(len(inputs))]
        moves = list(zip(inputs, places, strict=True))

        def stack() -> None:
            data = y.data
            for x, place in moves:
                data[place] = x.data

        return shape, stack

    return size_output(context, y, plan)


@kernel("UNPACK")
def prepare_unpack(context: OpContext, node: Node) -> Eval:
    """Prepare UNPACK: the slices of the input along an axis.

    Source:
        tflite/kernels/unpack.cc.
    """
    require_counts(node, 1, None)
    x = input_tensor(context, node, 0)
    outputs = [output_tensor(context, node, i) for i in range(len(node.outputs))]
    require_type(x, _UNPACKED)
    if 0 in x.shape:
        raise OperatorError(f"input {list(x.shape)} has no elements, expected some")
    axis = normalized_axis(int(getattr(node.options, "axis", 0)), len(x.shape))
    if not x.shape[axis] == len(outputs) == int(getattr(node.options, "num", len(outputs))):
        raise OperatorError(
            f"dimension {axis} of {list(x.shape)} is not {len(outputs)}, the number of outputs"
        )
    for i, y in enumerate(outputs):
        check_type(y, x, f"output {i}")
        if (x.scale, x.zero_point) != (y.scale, y.zero_point):
            raise OperatorError(
                f"output {i} has scale {y.scale} and zero point {y.zero_point}, expected the "
                f"input's {x.scale} and {x.zero_point}"
            )

    def plans() -> tuple[Sequence[Shape], Eval]:
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        lead = (slice(None),) * axis
        moves = [(y, (*lead, i, ...)) for i, y in enumerate(outputs)]

        def unstack() -> None:
            data = x.data
            for y, place in moves:
                np.copyto(y.data, data[place])

        return [shape] * len(outputs), unstack

    return size_outputs(context, outputs, plans)
