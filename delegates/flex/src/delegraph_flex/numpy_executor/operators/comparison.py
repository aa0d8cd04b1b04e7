"""Operators that compare numbers, combine truth values, or select by a condition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import broadcasting_two
from delegraph_flex.numpy_executor.registry import ALL, FLOATS, REAL, functions, operator, step_of

Array = NDArray[Any]


@operator("Equal", "NotEqual", types=ALL)
def equal(node: FlexNode) -> Step:
    """Return a function that computes x == y or x != y, broadcast.

    An attribute says whether shapes that do not broadcast are unequal or an error.
    """
    compare: Step = np.equal if node.op == "Equal" else np.not_equal
    if node.type("T") is DataType.STRING:
        run = broadcasting_two(lambda x, y: np.asarray(compare(x, y), np.bool_))
    else:
        run = broadcasting_two(compare, np.bool_)
    if node.bool("incompatible_shape_error", True):
        return run
    if_incompatible = np.bool_(compare(0, 1))

    def run_tolerantly(x: Array, y: Array) -> Any:
        try:
            np.broadcast(x, y)
        except ValueError:
            return if_incompatible
        return run(x, y)

    return run_tolerantly


functions(
    {
        "Less": broadcasting_two(np.less, np.bool_),
        "LessEqual": broadcasting_two(np.less_equal, np.bool_),
        "Greater": broadcasting_two(np.greater, np.bool_),
        "GreaterEqual": broadcasting_two(np.greater_equal, np.bool_),
    },
    REAL,
)
functions(
    {
        "LogicalAnd": broadcasting_two(np.logical_and, np.bool_),
        "LogicalOr": broadcasting_two(np.logical_or, np.bool_),
        "LogicalNot": np.logical_not,
        "Where": np.argwhere,  # positions of nonzero elements, ``[count, rank], int64``
    }
)
functions({"SelectV2": np.where}, ALL, broadcasts=True)


@operator("ApproximateEqual", types=FLOATS)
def approximately_equal(node: FlexNode) -> Step:
    """Return a function that computes |x - y| <= tolerance for arrays of one shape."""
    tolerance = node.type("T").dtype.type(np.float32(node.float("tolerance", 1e-5)))

    def run(x: Array, y: Array) -> Any:
        if x.shape != y.shape:
            raise ValueError(f"y has shape {list(y.shape)}, expected that of x, {list(x.shape)}")
        return np.abs(x - y) <= tolerance

    return run


@step_of("Select", types=ALL)
def select(condition: Array, x: Array, y: Array) -> Array:
    """Return *x* where the condition is true and *y* elsewhere; both have one shape.

    A condition with one dimension selects whole rows.
    """
    if x.shape != y.shape:
        raise ValueError(f"y has shape {list(y.shape)}, expected that of x, {list(x.shape)}")
    if condition.shape == x.shape or condition.ndim == 0:
        return np.where(condition, x, y)
    if condition.shape != x.shape[:1]:
        raise ValueError(
            f"condition has shape {list(condition.shape)}, "
            f"expected {list(x.shape)}, {list(x.shape[:1])} or []"
        )
    return np.where(condition.reshape(-1, *[1] * (x.ndim - 1)), x, y)
