"""Kernel of STABLEHLO_PAD."""

from __future__ import annotations

from delegraph.arithmetic.interior_pad import check_filler, placed
from delegraph.arithmetic.output_shape import size_output
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Shape


@kernel("STABLEHLO_PAD")
def prepare_stablehlo_pad(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_PAD: padding before, after and between elements; if negative, cropping.

    If an axis of the output has length 0, all axes have length 0, as in the official kernel.

    Source:
        tflite/kernels/stablehlo_pad.cc.
    """
    x, filler = input_tensor(context, node, 0), input_tensor(context, node, 1)
    y = output_tensor(context, node)
    check_filler(x, filler, y)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    options = [getattr(node.options, name, None) for name in names]
    low, high, between = ([] if o is None else [int(size) for size in o] for o in options)
    if not len(low) == len(high) == len(between) == len(x.shape):
        raise OperatorError(f"paddings {low}, {high}, {between} for an input {list(x.shape)}")
    if min(between, default=0) < 0:
        raise OperatorError(f"interior padding {between} has a negative value, expected none")
    if not x.shape or x.type in OBJECT_TYPES:
        raise OperatorError(f"input is {x.type.name}{list(x.shape)}, expected numbers in an array")

    def plan() -> tuple[Shape, Eval]:
        shape, run = placed(x, filler, y, low, high, between)
        return (shape if 0 not in shape else (0,) * len(shape)), run

    return size_output(context, y, plan)
