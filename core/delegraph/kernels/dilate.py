"""Kernel of DILATE: inserts padding values between elements."""

from __future__ import annotations

from delegraph.arithmetic.interior_pad import check_filler, placed
from delegraph.arithmetic.output_shape import integers, size_output
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.operators.checks import INDEX, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape


@kernel("DILATE")
def prepare_dilate(context: OpContext, node: Node) -> Eval:
    """Prepare DILATE: the elements of the input, with a padding value between them.

    Input 1 has the distance of the elements along each axis; input 2 is the padding value.

    Types with whole bytes are supported.

    Source:
        tflite/kernels/dilate.cc.
    """
    x, steps_input, filler, y = tensors_of(context, node, 3)
    if x.type in OBJECT_TYPES:
        raise OperatorError(f"input is {x.type.name}, expected numbers")
    check_filler(x, filler, y)
    require_type(steps_input, INDEX)
    if steps_input.shape != (len(x.shape),):
        raise OperatorError(f"{list(steps_input.shape)} dilations for an input {list(x.shape)}")

    def plan() -> tuple[Shape, Eval]:
        steps = integers(steps_input)
        if min(steps, default=1) < 1:
            raise OperatorError(f"dilations are {steps}, expected at least 1")
        if any(size == 0 and step > 1 for size, step in zip(x.shape, steps, strict=True)):
            raise OperatorError(f"cannot dilate {list(x.shape)} by {steps}: nothing to move apart")
        edges = [0] * len(steps)
        return placed(x, filler, y, edges, edges, [step - 1 for step in steps])

    return size_output(context, y, plan, shape_inputs=(steps_input,))
