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
    counting,
    decomposition,
    diagonal,
    einsum,
    elementwise,
    fourier,
    gather,
    joining,
    linear_algebra,
    matmul,
    pooling,
    projective_transform,
    ragged,
    reductions,
    resizing,
    scan,
    scatter,
    segment,
    sequences,
    sets,
    shapes,
    slicing,
    sorting,
    sparse,
    special_functions,
    stateful_random,
    stateless_random,
    transposed_convolutions,
    unique,
)
from delegraph_flex.numpy_executor.registry import OPERATORS, bind

__all__ = ["OPERATORS", "bind"]
