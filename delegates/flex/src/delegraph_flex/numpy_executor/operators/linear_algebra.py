"""Inverses, determinants and solutions of linear equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_rank
from delegraph_flex.numpy_executor.operators.matmul import adjoint
from delegraph_flex.numpy_executor.registry import COMPLEX, operator, step_of

WIDE = COMPLEX | {DataType.FLOAT32, DataType.FLOAT64}
_HALF_TOO = WIDE | {DataType.FLOAT16}


def check_square(x: NDArray[Any]) -> None:
    """Check that *x* is a batch of square matrices.

    Raises:
        ValueError: *x* is not a batch of square matrices.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"input has shape {list(x.shape)}, expected square matrices")


def check_equations(a: NDArray[Any], b: NDArray[Any]) -> None:
    """Check that the right-hand sides *b* of equations a x = b fit the matrices *a*.

    Raises:
        ValueError: the batches or the numbers of rows differ.
    """
    if a.ndim < 2 or a.ndim != b.ndim or a.shape[:-1] != b.shape[:-1]:
        raise ValueError(
            f"matrices {list(a.shape)} and right sides {list(b.shape)} differ in their batches"
            " or rows"
        )


@operator("MatrixInverse", types=_HALF_TOO)
def matrix_inverse(node: FlexNode) -> Step:
    """Return a function that inverts matrices, or their adjoints."""
    flip, dtype = node.bool("adjoint", False), node.type("T").dtype
    is_half = dtype.itemsize == 2

    def run(x: NDArray[Any]) -> NDArray[Any]:
        check_square(x)
        wide = x.astype(np.float32) if is_half else x
        inverse = np.linalg.inv(adjoint(wide) if flip else wide)
        return inverse.astype(dtype, copy=False)

    return run


@step_of("MatrixDeterminant", types=WIDE)
def matrix_determinant(x: NDArray[Any]) -> Any:
    """Return the determinants of matrices."""
    check_square(x)
    return np.asarray(np.where(_unknown(x), np.nan, np.linalg.det(x)), x.dtype)


@step_of("LogMatrixDeterminant", types=WIDE)
def log_matrix_determinant(x: NDArray[Any]) -> tuple[Any, Any]:
    """Return the signs of determinants, and the logarithms of their magnitudes."""
    check_square(x)
    sign, logarithm = np.linalg.slogdet(x)
    logarithm = np.where(_unknown(x), np.nan, logarithm)
    known = np.where(np.isnan(logarithm), logarithm, sign)
    return known.astype(x.dtype, copy=False), np.asarray(logarithm, x.dtype)


def _unknown(x: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask of matrices in *x* with a NaN, which LAPACK may wrongly call singular."""
    unknown: NDArray[np.bool_] = np.isnan(x).any((-2, -1))
    return unknown


@operator("MatrixSolve", types=WIDE)
def matrix_solve(node: FlexNode) -> Step:
    """Return a function that solves a @ x = b, or the equations of the adjoint of a."""
    flip = node.bool("adjoint", False)

    def run(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        check_square(a)
        check_equations(a, b)
        return np.linalg.solve(adjoint(a) if flip else a, b)

    return run


@operator("MatrixTriangularSolve", types=WIDE)
def matrix_triangular_solve(node: FlexNode) -> Step:
    """Return a function that solves a x = b for triangular a; the other triangle of a is not read.

    A zero on the diagonal gives infinities, as in TensorFlow.
    """
    return _triangular_solve(node.bool("lower", True), node.bool("adjoint", False))


def _triangular_solve(lower: bool, flip: bool) -> Step:
    transposed = 2 if flip else 0
    types = {dtype: linalg.get_blas_funcs("trsm", dtype=dtype) for dtype in "fdFD"}

    def run(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        check_square(a)
        if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
            raise ValueError(f"matrices {list(a.shape)} and right sides {list(b.shape)}")
        solve = types[a.dtype.char]
        if a.ndim == b.ndim == 2 and b.size:
            return np.ascontiguousarray(solve(1.0, a, b, lower=lower, trans_a=transposed))
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        require((*batch, *b.shape[-2:]), b.dtype)
        result = np.empty((*batch, *b.shape[-2:]), b.dtype)
        matrices = np.broadcast_to(a, (*batch, *a.shape[-2:]))
        sides = np.broadcast_to(b, result.shape)
        for i in np.ndindex(batch if result.size else (0,)):
            result[i] = solve(1.0, matrices[i], sides[i], lower=lower, trans_a=transposed)
        return result

    return run


@operator("MatrixSolveLs", types=WIDE)
def matrix_solve_least_squares(node: FlexNode) -> Step:
    """Return a function that computes least squares solutions.

    An attribute chooses between normal equations with a penalty, and an SVD.
    """
    is_fast = node.bool("fast", True)

    def run(a: NDArray[Any], b: NDArray[Any], penalty: NDArray[Any]) -> NDArray[Any]:
        check_equations(a, b)
        require((*b.shape[:-2], a.shape[-1], b.shape[-1]), b.dtype)
        if not is_fast:
            pseudo_inverse: NDArray[Any] = np.linalg.pinv(a)
            return np.asarray(np.matmul(pseudo_inverse, b))
        rows, columns = a.shape[-2:]
        flipped = adjoint(a)
        if rows >= columns:
            gram = flipped @ a + np.eye(columns, dtype=a.dtype) * a.dtype.type(penalty)
            return np.linalg.solve(gram, flipped @ b)
        gram = a @ flipped + np.eye(rows, dtype=a.dtype) * a.dtype.type(penalty)
        inner: NDArray[Any] = np.linalg.solve(gram, b)
        return np.asarray(np.matmul(flipped, inner))

    return run


@operator("TridiagonalSolve", types=WIDE)
def tridiagonal_solve(node: FlexNode) -> Step:
    """Return a function that solves equations whose matrices are given as three diagonals."""

    def run(diagonals: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        above, main, below = _three(diagonals, b)
        matrices = np.zeros((*main.shape, main.shape[-1]), main.dtype)
        i = np.arange(main.shape[-1])
        matrices[..., i, i] = main
        matrices[..., i[:-1], i[1:]] = above[..., :-1]
        matrices[..., i[1:], i[:-1]] = below[..., 1:]
        return np.linalg.solve(matrices, b)

    def run_banded(diagonals: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        bands = np.stack(_three(diagonals, b))
        bands[0] = np.roll(bands[0], 1, axis=-1)  # the order in which LAPACK stores diagonals
        bands[2] = np.roll(bands[2], -1, axis=-1)
        result: NDArray[Any] = linalg.solve_banded((1, 1), bands, b)
        return result

    def choose(diagonals: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        is_single = diagonals.ndim == 2 and diagonals.shape[-1] > 1
        return (run_banded if is_single else run)(diagonals, b)

    return choose


def _three(diagonals: NDArray[Any], b: NDArray[Any]) -> list[NDArray[Any]]:
    if (
        diagonals.ndim < 2
        or diagonals.shape[-2] != 3
        or b.shape[:-1] != (*diagonals.shape[:-2], diagonals.shape[-1])
    ):
        raise ValueError(
            f"diagonals {list(diagonals.shape)} and right sides {list(b.shape)}, expected"
            " [..., 3, m] and [..., m, k]"
        )
    return [diagonals[..., i, :] for i in range(3)]


@step_of("TridiagonalMatMul", types=WIDE)
def tridiagonal_matmul(
    above: NDArray[Any], main: NDArray[Any], below: NDArray[Any], b: NDArray[Any]
) -> NDArray[Any]:
    """Return tridiagonal matrices, given as three diagonals, times dense matrices *b*."""
    check_rank(b, max(b.ndim, 2), "rhs")
    if not above.shape == main.shape == below.shape == (*b.shape[:-2], 1, b.shape[-2]):
        raise ValueError(f"diagonals {list(main.shape)} times {list(b.shape)}")
    result: NDArray[Any] = main.swapaxes(-1, -2) * b
    result[..., :-1, :] += above.swapaxes(-1, -2)[..., :-1, :] * b[..., 1:, :]
    result[..., 1:, :] += below.swapaxes(-1, -2)[..., 1:, :] * b[..., :-1, :]
    return result


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "MatrixSquareRoot": linalg.sqrtm,
    "MatrixLogarithm": linalg.logm,
}


@operator(*_FUNCTIONS, types=WIDE)
def function_of_matrix(node: FlexNode) -> Step:
    """Function that computes the square root or logarithm of matrices; NaN for a complex result."""
    function = _FUNCTIONS[node.op]
    wide = np.result_type(node.type("T").dtype, np.float64)

    def run(x: NDArray[Any]) -> NDArray[Any]:
        check_square(x)
        result = np.empty(x.shape, x.dtype)
        for i in np.ndindex(x.shape[:-2] if x.size else (0,)):
            made = function(x[i].astype(wide, copy=False))
            if made.dtype.kind == "c" and x.dtype.kind != "c":
                made = np.where((made.imag == 0).all(), made.real, np.nan)
            result[i] = made
        return result

    return run


@operator("BandedTriangularSolve", types=WIDE)
def banded_triangular_solve(node: FlexNode) -> Step:
    """Return a function that solves a x = b for banded triangular a, given by its diagonals.

    Source: core/kernels/linalg/banded_triangular_solve_op.cc.
    """
    lower = node.bool("lower", True)
    solve: Callable[..., NDArray[Any]] = _triangular_solve(lower, node.bool("adjoint", False))

    def run(bands: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        if bands.ndim < 2 or b.ndim < 2 or not 0 < bands.shape[-2] <= bands.shape[-1]:
            raise ValueError(f"bands {list(bands.shape)} and right sides {list(b.shape)}")
        size = bands.shape[-1]
        if b.shape[-2] != size:
            raise ValueError(f"right sides {list(b.shape)}, expected {size} rows")
        require((*bands.shape[:-2], size, size), bands.dtype)
        a = np.zeros((*bands.shape[:-2], size, size), bands.dtype)
        for k in range(bands.shape[-2]):
            i = np.arange(size - k)
            # Row k has the diagonal k below the main one, and its first elements are unused.
            if lower:
                a[..., i + k, i] = bands[..., k, k:]
            else:  # the last row has the main diagonal; the last elements of other rows are unused
                a[..., i, i + k] = bands[..., -1 - k, : size - k]
        return solve(a, b)

    return run
