"""Shapes of element-wise operators whose inputs are broadcast to a common shape."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_same_type, tensors_of
from delegraph.operators.registration import Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType


def broadcast_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which *a* and *b* broadcast, as NumPy defines it.

    >>> broadcast_shape((4, 1, 3), (5, 1))
    (4, 5, 3)

    Raises:
        OperatorError: two axis lengths differ and neither is 1.

    Source:
        CalculateShapeForBroadcast, tflite/kernels/kernel_util.cc.
    """
    if a == b:
        return tuple(a)
    shape = []
    for i, j in zip_longest(reversed(a), reversed(b), fillvalue=1):
        if i != j and 1 not in (i, j):
            raise OperatorError(f"shapes {tuple(a)} and {tuple(b)} do not broadcast")
        shape.append(j if i == 1 else i)
    return tuple(reversed(shape))


def broadcast_operands(
    context: OpContext, node: Node, *, result: TensorType | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Set the output's shape of a two-operand node; return both inputs and the output.

    Args:
        context: context of the node.
        node: the node.
        result: type of the output; None means the type of the inputs.

    Raises:
        OperatorError: the node does not have two inputs and one output, the input types differ, or
            the shapes do not broadcast.
    """
    a, b, y = tensors_of(context, node, 2)
    require_same_type(a, b)
    adopt_type(y, a.type if result is None else result)
    context.resize_tensor(y, broadcast_shape(a.shape, b.shape))
    return a, b, y
