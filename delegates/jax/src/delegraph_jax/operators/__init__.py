"""The operators, one module a family. Importing this package fills the table."""

from delegraph_jax.operators import (
    activations,
    comparing,
    convolution,
    elementwise,
    hybrid,
    indexing,
    joining,
    pooling,
    products,
    quantized_images,
    quantized_products,
    quantizing,
    reducing,
    resizing,
    shaping,
    tabulated,
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
    "hybrid",
    "indexing",
    "joining",
    "operator_of",
    "pooling",
    "products",
    "quantized_images",
    "quantized_products",
    "quantizing",
    "reducing",
    "resizing",
    "shaping",
    "tabulated",
]
