"""STRIDED_SLICE: slicing with begin, end and step, as in Python, plus bit masks."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.elements import on_elements
from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.arithmetic.slice_index import Masks, resolved
from delegraph.errors import OperatorError
from delegraph.operators.checks import tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, element_count
from delegraph.schema.enums import TensorType

MAX_INDICES = 31  # bits of a mask


@kernel("STRIDED_SLICE")
def prepare_strided_slice(context: OpContext, node: Node) -> Eval:
    """Prepare STRIDED_SLICE: elements from begin to before end by step, on each axis.

    Source:
        tflite/kernels/strided_slice.cc; reference/strided_slice.h, StartForAxis and EndForAxis. If
        an index removes a dimension but is outside of it, there is an error here; the official
        kernel's output is undefined.
    """
    x, begin, end, strides, y = tensors_of(context, node, 4)
    if x.is_packed:
        raise OperatorError(f"input is {x.type.name}, expected whole bytes an element")
    check_type(y, x)
    count = element_count(begin.shape)
    for tensor in (begin, end, strides):
        if tensor.type is not TensorType.INT32 or tensor.shape != (count,) or count > MAX_INDICES:
            raise OperatorError(
                f"{tensor.name!r} is {tensor.type.name}{list(tensor.shape)}, expected begin, end "
                f"and strides as INT32 vectors of one length up to {MAX_INDICES}"
            )
    masks = Masks.of(node.options)

    def plan() -> tuple[Shape, Eval]:
        index, shape = resolved(x.shape, integers(begin), integers(end), integers(strides), masks)
        return shape, on_elements(x, y, lambda source, target: np.copyto(target, source[index]))

    def plan_with_late_begin() -> tuple[Shape, Eval]:
        ends, steps = integers(end), integers(strides)
        firsts = [-1 if step < 0 else 0 for step in steps]  # start of the longest walk
        _, shape = resolved(x.shape, firsts, ends, steps, masks)

        def run() -> None:
            index, _ = resolved(x.shape, integers(begin), ends, steps, masks)
            part = x.data[index]
            if part.shape != y.shape:
                raise OperatorError(f"the slice is {list(part.shape)}, expected {list(y.shape)}")
            np.copyto(y.data, part)

        return shape, run

    if masks.offset and not begin.is_constant_or_persistent:
        return size_output(
            context, y, plan_with_late_begin, shape_inputs=(end, strides), packed=True
        )
    return size_output(context, y, plan, shape_inputs=(begin, end, strides), fold=(x,), packed=True)
