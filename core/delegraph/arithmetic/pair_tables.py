"""8-bit operators of two operands as tables of all 65,536 pairs, with official roundings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
"""Function that computes the operator on two arrays, rounded like some official kernels."""

_LOOPS = ("ADD", "MUL")
"""Operators whose vector loops may round differently from their scalar loops."""


@dataclass(frozen=True, slots=True)
class PairTables:
    """Results of an operator for all pairs of 8-bit integers: ``[65536]``, index 256 * a + b.

    Attributes:
        vector: results as in the official kernel's vector loop; indices use the integers' bits.
        rest: results for the elements after that loop.
        length: number of elements in the innermost loop.
        vector_end: number of these elements that the vector loop computes.
    """

    vector: Table
    rest: Table
    length: int
    vector_end: int


def pair_tables(
    op: str, a: Tensor, b: Tensor, numerics: Numerics, evaluate: Evaluate
) -> PairTables:
    """Return the results of an 8-bit operator for all pairs of inputs, as tables.

    Args:
        op: name of the node's operator.
        a: first operand, of an 8-bit type.
        b: second operand, of an 8-bit type.
        numerics: official kernels whose rounding is reproduced, builtin or reference.
        evaluate: function that computes the operator on two arrays by Delegraph's kernel.

    Raises:
        OperatorError: the kernel rejects the node.
    """
    loop = inner_loop(a.shape, b.shape)
    repeats_scalar = loop is not None and loop.repeats_scalar
    lanes = 8 if a.type.name == "UINT8" or (op == "ADD" and repeats_scalar) else 16
    rest = partial(_pairs, op, a, b, False, "reference", evaluate)
    if loop is None or loop.length < lanes or numerics == "reference":
        return _without_rest(rest())
    vector = _pairs(op, a, b, repeats_scalar and op in _LOOPS, "builtin", evaluate)
    if loop.length % lanes == 0 or (vector == (left_over := rest())).all():
        return _without_rest(vector)
    return PairTables(vector, left_over, loop.length, loop.length - loop.length % lanes)


def _without_rest(table: Table) -> PairTables:
    return PairTables(table, table, 1, 1)


def _pairs(
    op: str, a: Tensor, b: Tensor, repeats_scalar: bool, numerics: Numerics, evaluate: Evaluate
) -> Table:
    """Return the results of operator *op* for all pairs of stored integers of *a* and *b*.

    *evaluate* computes them with *numerics*. *repeats_scalar* says whether to round as in a loop in
    which *a* is a single element.
    """
    values = every_value(a.dtype), every_value(b.dtype)
    first, second = (grid.copy() for grid in np.meshgrid(*values, indexing="ij"))
    if repeats_scalar:
        first = values[0][:, None]
    if op == "DIV":
        second = without_zero(b, second)
    with np.errstate(all="ignore"):
        return evaluate([first, second], numerics).reshape(-1)


def without_zero(tensor: Tensor, divisors: Table) -> Table:
    """Return the table of divisors in which the integer that stands for 0 is replaced.

    So no division by zero occurs while results for all pairs are computed.

    Args:
        tensor: tensor of the divisors, for its zero point.
        divisors: stored integers.
    """
    zero = tensor.zero_point
    return np.where(divisors == zero, divisors.dtype.type(zero ^ 1), divisors)
