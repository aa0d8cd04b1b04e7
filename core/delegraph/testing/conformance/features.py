"""Forms and features that a model shows, for finding claims that cover it.

The names are those of ``delegraph.delegation.capabilities.FEATURES``. They are read from a model
that has run, because all shapes are then known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.node_features import node_features
from delegraph.delegation.node_traits import NodeTraits
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.graph.model import OperatorSpec
from delegraph.operators.registration import Node
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import TensorType

Arrays = Sequence[NDArray[Any]]


def operators_of(subgraph: Subgraph, op: str) -> tuple[OperatorSpec, ...]:
    """Return the operators named *op* in a subgraph."""
    return tuple(operator for operator in subgraph.spec.operators if operator.name == op)


def forms_of(subgraph: Subgraph, operators: Iterable[OperatorSpec]) -> frozenset[NodeTraits]:
    """Return the types, version and activation of each of *operators*, without duplicates."""
    return frozenset(
        NodeTraits.of(operator.name, Node.from_operator(operator), subgraph.tensors)
        for operator in operators
    )


def features_of(
    subgraph: Subgraph, operators: Sequence[OperatorSpec], fed: Iterable[Arrays], is_dynamic: bool
) -> frozenset[str]:
    """Return the features of *operators* in a subgraph.

    Args:
        subgraph: a subgraph whose shapes are known.
        operators: the operators of *subgraph* to look at.
        fed: arrays of the graph inputs at each invoke.
        is_dynamic: whether the subgraph has shapes that are known only during invoke.
    """
    found: set[str] = set()
    for operator in operators:
        node = Node.from_operator(operator)
        found |= node_features(operator.name, node, subgraph.tensors)
    if len(subgraph.session.model.subgraphs) > 1:
        found.add("subgraph")
    if is_dynamic:
        found.add("dynamic-shapes")
    constants = [t.data for t in subgraph.tensors if t.is_constant and t.sparsity is None]
    if any(is_extreme(array) for array in (*constants, *(a for step in fed for a in step))):
        found.add("extreme-values")
    return frozenset(found)


def is_extreme(array: Any) -> bool:
    """Whether a float array has NaN, infinity, denormals or numbers too large to square."""
    if array is None or array.dtype not in _LIMITS:
        return False
    tiny, huge = _LIMITS[array.dtype]
    with np.errstate(all="ignore"):
        size = np.abs(array.astype(np.float64))
        return bool(np.any(~(size < huge) | ((size > 0) & (size < tiny))))


def _limits(kind: Any) -> tuple[float, float]:
    """Return the smallest normal number of the float type *kind*, and the root of the largest."""
    info = np.finfo(kind)
    return float(info.tiny), float(info.max) ** 0.5


_LIMITS = {
    NUMPY_DTYPES[TensorType.FLOAT16]: _limits(np.float16),
    NUMPY_DTYPES[TensorType.BFLOAT16]: _limits(np.float32),  # as many exponent bits
    NUMPY_DTYPES[TensorType.FLOAT32]: _limits(np.float32),
    NUMPY_DTYPES[TensorType.FLOAT64]: _limits(np.float64),
}
