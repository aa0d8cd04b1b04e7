"""One module a family of operators; importing this package registers them all."""

from __future__ import annotations

from delegraph_flex.numpy_executor.operators import (  # noqa: F401 - importing them registers
    activations,
    arithmetic,
    blocks,
    box_suppression,
    checks,
    colors,
    comparison,
    conversions,
    convolutions,
    diagonal,
    einsum,
    elementwise,
    fourier,
    gather,
    joining,
    matmul,
    pooling,
    projective_transform,
    reductions,
    resizing,
    scatter,
    segment,
    sequences,
    shapes,
    slicing,
    special_functions,
    stateful_random,
    stateless_random,
    transposed_convolutions,
)
from delegraph_flex.numpy_executor.registry import OPERATORS, bind

__all__ = ["OPERATORS", "bind"]
