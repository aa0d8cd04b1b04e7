"""Kernel of SLICE: a block of a tensor."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.elements import on_elements
from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    WIDE_INDEX,
    require_rank,
    require_same_type,
    require_type,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, Tensor, element_count


@kernel("SLICE")
def prepare_slice(context: OpContext, node: Node) -> Eval:
    """Prepare SLICE: the block that starts at ``begin`` and has size ``size``.

    A size of -1 extends to the end. Begin and size are int32 or int64 vectors.

    Source:
        tflite/kernels/slice.cc, CalculateOutputShapeVector.
    """
    x, begin, size, y = tensors_of(context, node, 3)
    check_type(y, x)
    require_type(begin, WIDE_INDEX)
    require_same_type(begin, size)
    for what, tensor in (("begin", begin), ("size", size)):
        require_rank(tensor, 1)
        if element_count(tensor.shape) != len(x.shape):
            raise OperatorError(
                f"{what} has {element_count(tensor.shape)} values, expected {len(x.shape)}"
            )

    def plan() -> tuple[Shape, Eval]:
        block = _block(x, integers(begin), integers(size))
        shape = [part.stop - part.start for part in block]
        return shape, on_elements(x, y, lambda source, target: np.copyto(target, source[block]))

    return size_output(context, y, plan, shape_inputs=(begin, size), packed=True)


def _block(x: Tensor, begins: list[int], sizes: list[int]) -> tuple[slice, ...]:
    block = []
    for dim, begin, size in zip(x.shape, begins, sizes, strict=True):
        end = dim if size == -1 else begin + size
        if not 0 <= begin <= end <= dim:
            raise OperatorError(
                f"begin {begins} and size {sizes} do not lie inside the shape {list(x.shape)}"
            )
        block.append(slice(begin, end))
    return tuple(block)
