"""Kernels of FILL and ZEROS_LIKE."""

from __future__ import annotations

from delegraph.arithmetic.output_shape import integers, size_output
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import BITS
from delegraph.kernels.elementwise.unary import unary_operands
from delegraph.operators.checks import adopt_type, require_type, require_zero_points, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_DIMENSIONS = {TensorType.INT32, TensorType.INT64}
_NOT_FILLED = {TensorType.COMPLEX128, TensorType.RESOURCE, TensorType.VARIANT, *BITS}


@kernel("FILL")
def prepare_fill(context: OpContext, node: Node) -> Eval:
    """Prepare FILL: a tensor of given dimensions, filled with one value.

    Types are strings, and numbers of 1, 2, 4 or 8 bytes.

    Raises:
        OperatorError: the value is no scalar, the dimensions are no vector, or scales differ.

    Source:
        tflite/kernels/fill.cc.
    """
    dims, value, y = tensors_of(context, node, 2)
    require_type(dims, _DIMENSIONS)
    require_type(value, set(TensorType) - _NOT_FILLED)
    adopt_type(y, value.type)
    if (value.scale, value.zero_point) != (y.scale, y.zero_point):
        raise OperatorError(
            f"value and output have scales {value.scale} and {y.scale} and zero points "
            f"{value.zero_point} and {y.zero_point}, expected the same"
        )
    if value.type is TensorType.INT16:
        require_zero_points(value)
    if len(dims.shape) != 1 or value.shape:
        raise OperatorError(
            f"dimensions and value have shapes {dims.shape} and {value.shape}, expected a vector "
            "and a scalar"
        )

    def plan() -> tuple[list[int], Eval]:
        shape = integers(dims)
        if min(shape, default=0) < 0:
            raise OperatorError(f"dimensions are {shape}, expected none below 0")

        def run() -> None:
            y.data.fill(value.data.item())

        return shape, run

    return size_output(context, y, plan, shape_inputs=(dims,))


@kernel("ZEROS_LIKE")
def prepare_zeros_like(context: OpContext, node: Node) -> Eval:
    """Prepare ZEROS_LIKE: zeros in the input's shape; float32, int32, int64, in TFLM also int8.

    Source:
        tflite/kernels/zeros_like.cc.
    """
    allowed = {TensorType.FLOAT32, TensorType.INT32, TensorType.INT64}
    if context.numerics == "micro":
        allowed.add(TensorType.INT8)
    _, y = unary_operands(context, node, allowed, adopts=True)

    def run() -> None:
        y.data.fill(0)

    return run
