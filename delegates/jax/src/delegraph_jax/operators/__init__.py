"""The operators, one module a family. Importing this package fills the table."""

from delegraph_jax.operators import (
    activations,
    comparing,
    convolution,
    elementwise,
    indexing,
    joining,
    pooling,
    products,
    reducing,
    resizing,
    shaping,
)
from delegraph_jax.operators.registry import OPERATORS, Call, Operator, operator_of

__all__ = [
    "OPERATORS",
    "Call",
    "Operator",
    "activations",
    "comparing",
    "convolution",
    "elementwise",
    "indexing",
    "joining",
    "operator_of",
    "pooling",
    "products",
    "reducing",
    "resizing",
    "shaping",
]
