"""Kernel of TILE: repeats a tensor along its axes."""

from __future__ import annotations

from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import WIDE_INDEX, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, element_count


@kernel("TILE")
def prepare_tile(context: OpContext, node: Node) -> Eval:
    """Prepare TILE: the input repeated; input 1 has the repetitions of each dimension.

    Source:
        tflite/kernels/tile.cc.
    """
    x, multiples, y = tensors_of(context, node, 2)
    check_type(y, x)
    require_type(multiples, WIDE_INDEX)
    if element_count(multiples.shape) != len(x.shape):
        raise OperatorError(
            f"{element_count(multiples.shape)} multiples for an input of rank {len(x.shape)}"
        )

    def plan() -> tuple[Shape, Eval]:
        times = integers(multiples)
        if min(times, default=0) < 0:
            raise OperatorError(f"multiples {times} have a negative value, expected none")
        shape = [size * count for size, count in zip(x.shape, times, strict=True)]
        # [d0, d1] repeated m0, m1 times is [m0, d0, m1, d1], over which [1, d0, 1, d1] broadcasts.
        target = [part for pair in zip(times, x.shape, strict=True) for part in pair]
        source = [part for size in x.shape for part in (1, size)]

        def tile() -> None:
            y.data.reshape(target)[...] = x.data.reshape(source)

        return shape, tile

    return size_output(context, y, plan, shape_inputs=(multiples,))
