"""Functions that the operators of cases call by name, as those of a model are subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.flex_node import FunctionSignature

Arrays = Sequence[NDArray[Any]]
I64, BOOL = TensorType.INT64, TensorType.BOOL


def _signature(takes: int, *gives: TensorType) -> FunctionSignature:
    """Return the signature of a function of 64-bit integers of any shape."""
    return FunctionSignature((I64,) * takes, (None,) * takes, gives, (None,) * len(gives))


FUNCTIONS: dict[str, tuple[FunctionSignature, Callable[..., Sequence[Any]]]] = {
    "square": (_signature(1, I64), lambda x: [x * x]),
    "shifted": (_signature(2, I64), lambda x, by: [x + by]),
    "as_long": (_signature(1, I64), lambda x: [np.arange(x % 3)]),
    "is_even": (_signature(1, BOOL), lambda x: [x % 2 == 0]),
    "is_below": (_signature(2, BOOL), lambda x, limit: [x < limit]),
    "all_of_them": (_signature(1, BOOL), lambda x: [np.array([True])]),
    "folded": (_signature(2, I64), lambda state, x: [3 * state + x.sum()]),
    "grown": (_signature(2, I64), lambda state, x: [np.append(state, x)]),
    "paired": (_signature(3, I64), lambda state, x, y: [2 * state + x * y]),
    "weighed": (_signature(3, I64), lambda state, x, by: [state + by * x]),
    "running": (_signature(2, I64, I64), lambda state, x: [state + x, state * x]),
    "two": (_signature(2, I64, I64), lambda state, x: [state, x]),
}


def signature(name: str) -> FunctionSignature:
    """Return inputs and outputs of a function; KeyError for an unknown name."""
    return FUNCTIONS[name][0]


def call(name: str, arrays: Arrays) -> list[NDArray[Any]]:
    """Return the results of a function for arrays."""
    return [np.asarray(value) for value in FUNCTIONS[name][1](*arrays)]
