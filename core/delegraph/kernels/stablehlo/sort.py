"""Kernel of STABLEHLO_SORT."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.kernels.stablehlo.body import Array, Body
from delegraph.kernels.stablehlo.elementwise import total_order
from delegraph.kernels.stablehlo.types import ANY, COMPLEX
from delegraph.operators.checks import option, require_same_type, require_shape, require_type
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.schema.enums import StablehloComparisonDirection as Direction
from delegraph.schema.enums import StablehloComparisonType as Comparison
from delegraph.schema.enums import TensorType

Order = NDArray[np.int64]
Less = Callable[[Order, Order], NDArray[np.bool_]]
"""Function that returns whether elements at its first positions come before those at its second."""

_DESCENDING = {
    "GREATER": True,
    "LESS": False,
    Direction.STABLEHLO_COMPARISON_DIRECTION_GT: True,
    Direction.STABLEHLO_COMPARISON_DIRECTION_LT: False,
}


@kernel("STABLEHLO_SORT")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_SORT: the inputs, sorted together along ``dimension``.

    A subgraph compares two positions: for the two elements of each input, it returns whether the
    first position comes before the second. Equal elements always keep their order. The official
    interpreter only parses this operator; this kernel follows the StableHLO specification.

    Source:
        https://openxla.org/stablehlo/spec#sort
    """
    count = len(node.inputs)
    if not count or len(node.outputs) != count:
        raise OperatorError(f"{count} inputs and {len(node.outputs)} outputs, expected as many")
    inputs = [input_tensor(context, node, i) for i in range(count)]
    outputs = [output_tensor(context, node, i) for i in range(count)]
    shape = inputs[0].shape
    for x, y in zip(inputs, outputs, strict=True):
        require_type(x, ANY)
        require_shape(x, shape)
        require_same_type(x, y)
        context.resize_tensor(y, shape)
    given, rank = int(option(node, "dimension", -1)), len(shape)
    if not -rank <= given < rank:
        raise OperatorError(f"dimension is {given}, expected one of {rank}")
    pairs = [x for x in inputs for _ in range(2)]
    body = Body(context, int(option(node, "comparator_subgraph_index", 0)), pairs, 1)
    if body.output_types != [TensorType.BOOL]:
        raise OperatorError(f"comparator returns {body.output_types[0].name}, expected BOOL")
    find_order = _ordering(body)

    def run() -> None:
        lines = [np.moveaxis(x.data, given, 0) for x in inputs]
        order = find_order(lines)
        for line, y in zip(lines, outputs, strict=True):
            np.moveaxis(y.data, given, 0)[...] = np.take_along_axis(line, order, 0)

    return run


def _ordering(body: Body) -> Callable[[Sequence[Array]], Order]:
    """Return the function that sorts lines along the first axis and returns the order.

    *body* is the comparator; the order has the index of the element for each position.
    """
    direct = _direct_ordering(body)
    if direct is not None:
        return direct

    def find_order(lines: Sequence[Array]) -> Order:
        def less(a: Order, b: Order) -> NDArray[np.bool_]:
            pairs = [np.take_along_axis(line, at, 0) for line in lines for at in (a, b)]
            return body(*pairs)[0]

        return network_order(lines[0].shape, less)

    return find_order


def _direct_ordering(body: Body) -> Callable[[Sequence[Array]], Order] | None:
    """Return an ordering by one key if the comparator *body* is a single comparison, else None."""
    operation = body.operation
    if operation is None:
        return None
    operator, is_swapped = operation
    direction = getattr(operator.options, "comparison_direction", operator.name)
    if direction not in _DESCENDING or body.input_types[0] in COMPLEX:
        return None
    kind = getattr(operator.options, "compare_type", None)
    is_total = kind == Comparison.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER
    is_descending = _DESCENDING[direction] != is_swapped
    position = body.position(operator)

    def find_order(lines: Sequence[Array]) -> Order:
        line = lines[position]
        key = total_order(line) if is_total and line.dtype.kind not in "iub" else line
        if not is_descending:
            return np.argsort(key, axis=0, kind="stable")
        # Reversing both the lines and the result keeps equal elements in order.
        return len(key) - 1 - np.argsort(key[::-1], axis=0, kind="stable")[::-1]

    return find_order


def network_order(shape: Sequence[int], less: Less) -> Order:
    """Return the stable order of lines along the first axis, with few calls of a comparator.

    Batcher's bitonic network is used: lines of length N need about log2(N)**2 / 2 calls, each for
    all pairs at once.

    Args:
        shape: shape of the lines, ``[N, ...]``.
        less: function of two arrays of positions, ``[pairs, ...]``, that tells whether the element
            at the first comes before the element at the second.

    Returns:
        Index of the element for each position, ``[N, ...]``.

    >>> values = np.array([3, 1, 2, 1])
    >>> network_order((4,), lambda a, b: values[a] < values[b]).tolist()
    [1, 3, 2, 0]
    """
    length = shape[0]
    size = 1 << max(length - 1, 0).bit_length()
    order = np.broadcast_to(
        np.arange(size).reshape(-1, *[1] * (len(shape) - 1)), (size, *shape[1:])
    ).copy()
    if not order.size:
        return order[:length]
    places = np.arange(size)
    block = 2
    while block <= size:
        step = block // 2
        while step:
            first = places[(places & step) == 0]
            ascends = (first & block == 0).reshape(-1, *[1] * (len(shape) - 1))
            a, b = order[first], order[first + step]
            swaps = _precedes(b, a, length, less) == ascends
            order[first], order[first + step] = np.where(swaps, b, a), np.where(swaps, a, b)
            step //= 2
        block *= 2
    return order[:length]


def _precedes(a: Order, b: Order, length: int, less: Less) -> NDArray[np.bool_]:
    """Whether *a* comes before *b* in the order; positions from *length* on come last.

    *less* compares the elements at two arrays of positions; equal elements keep their order.
    """
    is_real = (a < length) & (b < length)
    x, y = np.where(is_real, a, 0), np.where(is_real, b, 0)
    both = less(np.concatenate([x, y]), np.concatenate([y, x]))
    is_less, is_greater = np.split(both, 2)
    in_order = a < b
    return np.where(is_real, is_less | (~is_greater & in_order), in_order)
