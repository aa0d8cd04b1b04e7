"""DILATE and STABLEHLO_PAD: elements put between the elements."""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.errors import OperatorError
from delegraph.kernels.op_table import kernel
from delegraph.kernels.output_shape import Shape, check_type, element_count, integers, size_output
from delegraph.kernels.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.kernels.tensor import Tensor


@kernel("DILATE")
def prepare_dilate(context: OpContext, node: Node) -> Eval:
    """Return the eval of DILATE: the input's elements, input 1 apart, filled up with input 2.

    Source:
        tflite/kernels/dilate.cc.
    """
    x, steps_input, filler = (input_tensor(context, node, i) for i in range(3))
    y = output_tensor(context, node)
    _check(x, filler, y)
    if steps_input.shape != (len(x.shape),):
        raise OperatorError(f"{list(steps_input.shape)} dilations for an input {list(x.shape)}")

    def plan() -> tuple[Shape, Eval]:
        steps = integers(steps_input)
        if min(steps, default=1) < 1:
            raise OperatorError(f"dilations are {steps}, expected at least 1")
        edges = [0] * len(steps)
        return _placed(x, filler, y, edges, edges, [step - 1 for step in steps])

    return size_output(context, y, plan, shape_inputs=(steps_input,))


@kernel("STABLEHLO_PAD")
def prepare_stablehlo_pad(context: OpContext, node: Node) -> Eval:
    """Return the eval of STABLEHLO_PAD: padding before, after and between; negative edges crop.

    Source:
        tflite/kernels/stablehlo_pad.cc.
    """
    x, filler = input_tensor(context, node, 0), input_tensor(context, node, 1)
    y = output_tensor(context, node)
    _check(x, filler, y)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    options = [getattr(node.options, name, None) for name in names]
    low, high, between = ([] if o is None else [int(size) for size in o] for o in options)
    if not len(low) == len(high) == len(between) == len(x.shape):
        raise OperatorError(f"paddings {low}, {high}, {between} for an input {list(x.shape)}")
    if min(between, default=0) < 0:
        raise OperatorError(f"interior padding {between} has a negative value, expected none")
    return size_output(context, y, lambda: _placed(x, filler, y, low, high, between))


def _check(x: Tensor, filler: Tensor, y: Tensor) -> None:
    check_type(y, x)
    check_type(filler, x, "padding value")
    if element_count(filler.shape) != 1:
        raise OperatorError(f"padding value has shape {list(filler.shape)}, expected one element")


def _placed(
    x: Tensor,
    filler: Tensor,
    y: Tensor,
    low: Sequence[int],
    high: Sequence[int],
    between: Sequence[int],
) -> tuple[Shape, Eval]:
    """Return the output's shape and the function that puts the elements of *x* into place."""
    shape, source, target = [], [], []
    for size, before, after, gap in zip(x.shape, low, high, between, strict=True):
        step = gap + 1
        length = max(0, before + max(0, (size - 1) * step + 1) * (size > 0) + after)
        first = max(0, -(before // step))  # of the elements, the first that is not cropped away
        last = min(size, (length - 1 - before) // step + 1)
        shape.append(length)
        source.append(slice(first, max(first, last)))
        start = before + first * step
        target.append(slice(start, start + max(0, last - first) * step, step))
    places, elements = tuple(target), tuple(source)

    def place() -> None:
        y.data.fill(filler.data.reshape(-1)[0])
        if y.data.size:
            y.data[(*places, ...)] = x.data[(*elements, ...)]

    return shape, place
