"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import SMALL, require
from delegraph_flex.numpy_executor.operators.elementwise import through_float32
from delegraph_flex.numpy_executor.registry import NUMBERS, operator

Product = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


@operator("MatMul", types=NUMBERS)
def matmul(node: FlexNode) -> Step:
    """Return a function that multiplies two matrices, each optionally transposed first."""
    flip_a, flip_b = node.bool("transpose_a", False), node.bool("transpose_b", False)
    multiply = product(node.type("T"))

    def run(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError(f"{list(a.shape)} times {list(b.shape)}, expected two matrices")
        a, b = a.T if flip_a else a, b.T if flip_b else b
        if a.size * b.size > SMALL:
            _require_product(a, b)
        return multiply(a, b)

    return run


def product(type: DataType) -> Product:
    """Return the function that multiplies batches of matrices of *type*; batches are broadcast.

    16-bit matrices are multiplied in float32 and rounded once.
    """
    return through_float32(np.matmul, type)


@operator("BatchMatMul", "BatchMatMulV2", types=NUMBERS)
def batch_matmul(node: FlexNode) -> Step:
    """Return a function that multiplies batches of matrices.

    Only version 2 and later broadcast the batches.
    """
    return _batch_matmul(node, product(node.type("T")), node.op != "BatchMatMul")


@operator("BatchMatMulV3")
def batch_matmul_v3(node: FlexNode) -> Step:
    """Return a function that multiplies batches of matrices, converted to the result type first."""
    type = node.type("Tout")
    dtype, multiply = type.dtype, product(type)

    def run(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        return multiply(x.astype(dtype, copy=False), y.astype(dtype, copy=False))

    same = node.type("Ta") == node.type("Tb") == type
    return _batch_matmul(node, multiply if same else run, broadcasts=True)


def _batch_matmul(node: FlexNode, multiply: Product, broadcasts: bool) -> Step:
    adjoint_x, adjoint_y = node.bool("adj_x", False), node.bool("adj_y", False)

    def run(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        if x.ndim < 2 or y.ndim < 2 or not (broadcasts or x.shape[:-2] == y.shape[:-2]):
            raise ValueError(f"{list(x.shape)} times {list(y.shape)}, expected batches of matrices")
        x, y = adjoint(x) if adjoint_x else x, adjoint(y) if adjoint_y else y
        if x.size * y.size > SMALL:
            _require_product(x, y)
        return multiply(x, y)

    return run


def _require_product(x: NDArray[Any], y: NDArray[Any]) -> None:
    """Check that the product of *x* and *y* fits in memory; ignore shapes that do not match."""
    if x.shape[-1] != y.shape[-2]:
        return
    try:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        return
    require((*batch, x.shape[-2], y.shape[-1]), max(x.dtype, y.dtype, key=lambda t: t.itemsize))


def adjoint(x: NDArray[Any]) -> NDArray[Any]:
    """Return the conjugate transpose of each matrix in *x*."""
    flipped = x.swapaxes(-1, -2)
    return flipped.conj() if x.dtype.kind == "c" else flipped
