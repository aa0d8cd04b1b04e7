"""8-bit operators of two operands as tables of all 65,536 pairs, with official roundings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.vector_loop import inner_loop
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.evaluation import every_value
from delegraph.operators.numerics import Numerics
from delegraph.operators.tensor import Tensor

Table: TypeAlias = NDArray[Any]
"""Results of all pairs of stored bytes, ``[65536]``, at index 256 * a + b of their bits."""

Evaluate = Callable[[Sequence[NDArray[Any]], Numerics], NDArray[Any]]
"""Function that computes the operator on two arrays with the rounding of some official kernels."""

_LANES = 16
"""Largest number of elements that official vector loops compute at a time."""

_LOOPS = ("ADD", "MUL")
"""Operators whose vector loops may round differently from their scalar loops."""


@dataclass(frozen=True, slots=True)
class PairTables:
    """Results of an operator for all pairs of 8-bit integers: ``[65536]``, index 256 * a + b.

    If :func:`pair_tables` was called with some pairs only, the tables have a result for each of
    these: ``[K]``.

    Attributes:
        vector: results as in the official kernel's vector loop; indices use the integers' bits.
        rest: results for the elements after the vector loop.
        length: number of elements in the innermost loop.
        vector_end: number of elements of the innermost loop that the vector loop computes.
    """

    vector: Table
    rest: Table
    length: int
    vector_end: int


def pair_tables(
    op: str,
    a: Tensor,
    b: Tensor,
    numerics: Numerics,
    evaluate: Evaluate,
    pairs: NDArray[np.intp] | None = None,
) -> PairTables:
    """Return the results of an 8-bit operator for all pairs of inputs, as tables.

    Args:
        op: name of the node's operator.
        a: first operand, of an 8-bit type.
        b: second operand, of an 8-bit type.
        numerics: official kernels whose rounding is reproduced, builtin or reference.
        evaluate: function that computes the operator on two arrays by Delegraph's kernel.
        pairs: indices, ``[K]``, of the pairs whose results are wanted; None for all pairs.

    Raises:
        OperatorError: the kernel rejects the node.
    """
    loop = inner_loop(a.shape, b.shape)
    repeats_scalar = loop is not None and loop.repeats_scalar
    lanes = 8 if a.type.name == "UINT8" or (op == "ADD" and repeats_scalar) else 16
    rest = partial(_pairs, op, a, b, False, "reference", evaluate, pairs)
    if loop is None or loop.length < lanes or numerics == "reference":
        return _without_rest(rest())
    vector = _pairs(op, a, b, repeats_scalar and op in _LOOPS, "builtin", evaluate, pairs)
    if loop.length % lanes == 0 or (vector == (left_over := rest())).all():
        return _without_rest(vector)
    return PairTables(vector, left_over, loop.length, loop.length - loop.length % lanes)


def _without_rest(table: Table) -> PairTables:
    return PairTables(table, table, 1, 1)


_stored = cache(every_value)


def _pairs(
    op: str,
    a: Tensor,
    b: Tensor,
    repeats_scalar: bool,
    numerics: Numerics,
    evaluate: Evaluate,
    pairs: NDArray[np.intp] | None,
) -> Table:
    """Return the results of operator *op* for *pairs* of integers of *a* and *b*; None means all.

    *evaluate* computes the results with *numerics*. *repeats_scalar* says whether to round as in a
    loop in which *a* is a single element.
    """
    index = _index(pairs, repeats_scalar)
    first, second = _stored(a.dtype)[index >> 8], _stored(b.dtype)[index & 0xFF]
    if repeats_scalar:
        first = first[:, :1]
    if op == "DIV":
        second = without_zero(b, second)
    with np.errstate(all="ignore"):
        results = evaluate([first, second], numerics)
    if pairs is None:
        return results.reshape(-1)
    return (results[:, 0] if repeats_scalar else results.reshape(-1))[: len(pairs)]


def _index(pairs: NDArray[np.intp] | None, repeats_scalar: bool) -> NDArray[np.intp]:
    """Return indices of all pairs, or of *pairs* and more pairs that fill the last vector.

    The rows of the result, ``[rows, columns]``, are whole vectors. If *repeats_scalar*, the first
    operand is equal in a row: each of *pairs* has its own row.
    """
    if pairs is None:
        return np.arange(1 << 16).reshape(256, 256)
    if repeats_scalar:
        return np.repeat(pairs[:, None], _LANES, axis=1)
    index = np.zeros((-(-len(pairs) // _LANES), _LANES), np.intp)
    index.reshape(-1)[: len(pairs)] = pairs
    return index


def without_zero(tensor: Tensor, divisors: Table) -> Table:
    """Return *divisors* with the integer that stands for 0 replaced by another.

    This avoids divisions by zero while results for all pairs are computed.

    Args:
        tensor: tensor of the divisors, for its zero point.
        divisors: stored integers.
    """
    zero = tensor.zero_point
    return np.where(divisors == zero, divisors.dtype.type(zero ^ 1), divisors)
