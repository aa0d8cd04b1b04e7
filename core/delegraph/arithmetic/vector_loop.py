"""Ends of the official kernels' vector loops, and 8-bit operators that depend on them.

The official kernels compute 8 or 16 elements at a time in a vector loop, and the remaining elements
one by one. The two loops may round and overflow differently. Which elements remain depends on how
the shapes broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from delegraph.arithmetic.lookup_table import (
    BinaryFunction,
    Integers,
    binary_lookup,
    once_needed,
    pair_index,
    pair_table,
)
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import Eval, OpContext
from delegraph.operators.tensor import Tensor


@dataclass(frozen=True, slots=True)
class InnerLoop:
    """Innermost loop of an operation that broadcasts its operands.

    Attributes:
        length: number of elements that one run of the loop computes.
        repeats_scalar: whether one operand is a single element in this loop.
    """

    length: int
    repeats_scalar: bool


def run_vector_loop(
    context: OpContext,
    tensors: tuple[Tensor, Tensor, Tensor],
    functions: tuple[BinaryFunction, BinaryFunction],
    loop: InnerLoop | None,
    lanes: int,
) -> Eval:
    """Return the evaluation of an 8-bit operator whose official loop rounds in two ways.

    The vector loop of the official kernel rounds in one way, the loop for the elements after it in
    another.

    Args:
        context: context of the node.
        tensors: both operands and the output.
        functions: the function of vector loops, and the function of the remaining elements.
        loop: the innermost loop; None if there is no vector loop.
        lanes: number of elements that a vector loop computes at a time.
    """
    a, b, y = tensors
    vector, scalar = functions
    if loop is None or loop.length < lanes:
        return binary_lookup(context, a, b, y, scalar)
    vector_end = loop.length - loop.length % lanes
    if vector_end == loop.length:
        return binary_lookup(context, a, b, y, vector)
    return _split_lookup(context, tensors, functions, loop.length, vector_end)


def wrap_int16(x: Integers) -> Integers:
    """Return the low 16 bits of *x* as signed numbers."""
    return ((x + 32768) & 0xFFFF) - 32768


def _split_lookup(
    context: OpContext,
    tensors: tuple[Tensor, Tensor, Tensor],
    functions: tuple[BinaryFunction, BinaryFunction],
    length: int,
    vector_end: int,
) -> Eval:
    """Return the evaluation that uses one table before *vector_end* and another from there on.

    Args:
        context: context of the node.
        tensors: both operands and the output.
        functions: the function before *vector_end*, and the function from there on.
        length: number of elements in a run of the innermost loop.
        vector_end: position in a run at which the vector loop ends.
    """
    a, b, y = tensors
    vector, scalar = (once_needed(pair_table, a.dtype, y.dtype, each) for each in functions)
    index, fill = pair_index(context, a, b, y)

    def run() -> None:
        fill()
        out = y.data
        vector().take(index.data, None, out, "clip")
        rest = index.data.reshape(-1, length)[:, vector_end:]
        out.reshape(-1, length)[:, vector_end:] = scalar().take(rest, mode="clip")

    return run


def inner_loop(a: Sequence[int], b: Sequence[int]) -> InnerLoop | None:
    """Return the innermost loop of the official kernel for operands of shapes *a* and *b*.

    The result is None if equal and broadcast axes alternate too often for the kernel's five nested
    loops.

    >>> inner_loop((2, 3, 4), (3, 4))
    InnerLoop(length=12, repeats_scalar=False)
    >>> inner_loop((2, 3, 4), (2, 3, 1))
    InnerLoop(length=4, repeats_scalar=True)

    Source:
        ProcessBroadcastShapes and BinaryBroadcastFiveFold,
        tflite/kernels/internal/reference/process_broadcast_shapes.h.
    """
    rank = max(len(a), len(b))
    pairs = [
        *zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True)
    ]
    differing = [i != j for i, j in pairs]
    if not any(differing):
        return InnerLoop(math.prod(a), repeats_scalar=False)
    last = rank - 1 - differing[::-1].index(True)
    if pairs[last][0] != 1:
        pairs = [(j, i) for i, j in pairs]
    folds = []
    for is_folded in (_is_equal, _repeats_first, _is_equal, _repeats_second, _is_equal):
        fold = 1
        while pairs and is_folded(*pairs[-1]):
            fold *= max(pairs.pop())
        folds.append(fold)
    if pairs:
        return None
    return InnerLoop(folds[0], False) if folds[0] > 1 else InnerLoop(folds[1], True)


def _is_equal(i: int, j: int) -> bool:
    return i == j


def _repeats_first(i: int, j: int) -> bool:
    return i == 1


def _repeats_second(i: int, j: int) -> bool:
    return j == 1
