"""Einsum: products and sums over labelled dimensions, computed by one matrix product."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import HALVES, DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import SMALL, require
from delegraph_flex.numpy_executor.operators.matmul import Product, product
from delegraph_flex.numpy_executor.registry import FLOATS, operator

_TYPES = FLOATS | {
    DataType.INT32, DataType.INT64, DataType.COMPLEX64, DataType.COMPLEX128
}  # fmt: skip
_LETTERS = set(string.ascii_letters)

Labels = tuple[str, ...]
"""Labels of a tensor's dimensions: letters, or ``"0"``, ``"1"``, ... within an ellipsis.

The dimensions of an ellipsis are numbered from the last.
"""


@operator("Einsum", types=_TYPES)
def einsum(node: FlexNode) -> Step:
    """Function that sums products of one or two tensors over the labels that the result lacks.

    A label that occurs twice in an operand or the result selects the diagonal; ``...`` broadcasts.
    """
    equation = node.text("equation")
    terms, result = _parsed(equation)
    type = node.type("T")
    multiply = product(type)

    @lru_cache(maxsize=16)
    def plan(ranks: Sequence[int]) -> Callable[..., NDArray[Any]]:
        labels = [_labels(term, rank, equation) for term, rank in zip(terms, ranks, strict=True)]
        return _plan(labels, _result_labels(result, labels, equation), multiply, type in HALVES)

    def run(*arrays: NDArray[Any]) -> NDArray[Any]:
        if len(arrays) != len(terms):
            raise ValueError(f"equation {equation!r} with {len(arrays)} inputs")
        return plan(tuple(array.ndim for array in arrays))(*arrays)

    return run


def _parsed(equation: str) -> tuple[list[str], str]:
    """Return the labels of an equation's operands and of its result."""
    parts = equation.split("->")
    terms = parts[0].split(",")
    if len(parts) != 2 or len(terms) > 2:
        raise Unsupported(f"equation {equation!r}, expected 'term->result' or 'term,term->result'")
    for term in (*terms, parts[1]):
        if not set(term.replace("...", "", 1)) <= _LETTERS:
            raise Unsupported(f"equation {equation!r}: {term!r} is not of letters and one '...'")
    named = set(parts[0])
    if not set(parts[1]) - {"."} <= named:
        raise Unsupported(f"equation {equation!r}: its result has labels that no operand has")
    return terms, parts[1]


def _labels(term: str, rank: int, equation: str) -> Labels:
    named = len(term.replace("...", ""))
    if rank < named or ("..." not in term and rank != named):
        raise ValueError(f"equation {equation!r}: {term!r} is given {rank} dimensions")
    return _expanded(term, rank - named)


def _expanded(term: str, count: int) -> Labels:
    before, dots, after = term.partition("...")
    middle = (str(i) for i in reversed(range(count))) if dots else ()
    return (*before, *middle, *after)


def _result_labels(result: str, operands: list[Labels], equation: str) -> Labels:
    count = max((sum(map(str.isdigit, labels)) for labels in operands), default=0)
    if count and "..." not in result:
        raise ValueError(f"equation {equation!r}: the result has no '...' for {count} dimensions")
    return _expanded(result, count)


def _plan(
    operands: list[Labels], result: Labels, multiply: Product, is_half: bool
) -> Callable[..., NDArray[Any]]:
    """Return the function that computes an einsum for operands with these labels.

    *result* has the labels of the result, *multiply* computes matrix products, and *is_half* says
    whether elements have 16 bits.
    """
    wanted = tuple(dict.fromkeys(result))
    has_diagonal = len(wanted) != len(result)
    contract = _single(operands[0], wanted, is_half)
    if len(operands) == 2:
        contract = _double(operands, wanted, multiply, is_half)

    def run(*arrays: NDArray[Any]) -> NDArray[Any]:
        _check_sizes(operands, arrays)
        made = contract(*arrays)
        return _on_diagonals(made, wanted, result) if has_diagonal else made

    return run


def _check_sizes(operands: list[Labels], arrays: Sequence[NDArray[Any]]) -> None:
    sizes: dict[str, int] = {}
    for labels, array in zip(operands, arrays, strict=True):
        for label, size in zip(labels, array.shape, strict=True):
            if sizes.setdefault(label, size) != size and not label.isdigit():
                raise ValueError(f"label {label!r} has dimensions of {sizes[label]} and {size}")


def _single(labels: Labels, wanted: Labels, is_half: bool) -> Callable[..., NDArray[Any]]:
    numbers = _numbers((labels, wanted))
    sum_over: Callable[..., Any] = np.einsum  # the annotations of einsum accept only text

    def run(x: NDArray[Any]) -> NDArray[Any]:
        wide = x.astype(np.float32) if is_half else x
        return np.array(sum_over(wide, *numbers), x.dtype)

    return run


def _numbers(terms: Sequence[Labels]) -> list[list[int]]:
    """Return each of *terms*, the labels of an operand, as small integers for ``np.einsum``."""
    known = {
        label: i for i, label in enumerate(sorted({label for term in terms for label in term}))
    }
    return [[known[label] for label in term] for term in terms]


def _double(
    operands: list[Labels], wanted: Labels, multiply: Product, is_half: bool
) -> Callable[..., NDArray[Any]]:
    """Return the function that computes two operands' product by a batch of matrix products.

    *wanted* has the labels of the result, *multiply* computes matrix products, and *is_half* says
    whether elements have 16 bits.

    A label is a batch label (in both operands and the result), free in one of the operands, or
    summed over. A label that only one operand has, and not the result, is summed first. Diagonals
    are also taken first.
    """
    x_labels, y_labels = (tuple(dict.fromkeys(labels)) for labels in operands)
    x_kept, y_kept = (
        tuple(label for label in own if label in other or label in wanted)
        for own, other in ((x_labels, y_labels), (y_labels, x_labels))
    )
    shared = [label for label in x_kept if label in y_kept]
    batch = tuple(label for label in wanted if label in shared)
    summed = tuple(label for label in shared if label not in wanted)
    x_free = tuple(label for label in wanted if label in x_kept and label not in batch)
    y_free = tuple(label for label in wanted if label in y_kept and label not in batch)
    to_x = _arranged(operands[0], x_kept, batch + x_free + summed, is_half)
    to_y = _arranged(operands[1], y_kept, batch + summed + y_free, is_half)
    made = batch + x_free + y_free
    back = [made.index(label) for label in wanted]
    b, s, xf = len(batch), len(summed), len(x_free)
    is_sorted = back == list(range(len(back)))

    def run(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        u, v = to_x(x), to_y(y)
        rows, inner, columns = u.shape[b : b + xf], u.shape[b + xf :], v.shape[b + s :]
        if x.size * y.size > SMALL:
            require(u.shape[:b] + rows + columns, x.dtype)
        k = math.prod(inner)
        out = multiply(
            u.reshape((*u.shape[:b], math.prod(rows), k)),
            v.reshape((*v.shape[:b], k, math.prod(columns))),
        )
        out = out.reshape(out.shape[:-2] + rows + columns)
        return out if is_sorted else out.transpose(back)

    return run


def _arranged(
    labels: Labels, kept: Labels, order: Labels, is_half: bool
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function that sums an operand over the labels that are not *kept*.

    The axes that remain are transposed to *order*; *is_half* says whether elements have 16 bits.
    """
    axes = [kept.index(label) for label in order]
    if kept == labels:
        return lambda x: x.transpose(axes)
    reduced = _single(labels, kept, is_half)
    return lambda x: reduced(x).transpose(axes)


def _on_diagonals(x: NDArray[Any], labels: Labels, result: Labels) -> NDArray[Any]:
    """Return zeros of the labels *result*, with *x* where all indices of an equal label are equal.

    *labels* are those of *x*.
    """
    sizes = dict(zip(labels, x.shape, strict=True))
    require([sizes[label] for label in result], x.dtype)
    out = np.zeros([sizes[label] for label in result], x.dtype)
    strides = [
        sum(out.strides[i] for i, label in enumerate(result) if label == own) for own in labels
    ]
    np.lib.stride_tricks.as_strided(out, x.shape, strides)[...] = x
    return out
