"""Decompositions of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_matrices
from delegraph_flex.numpy_executor.operators.linear_algebra import WIDE, check_square
from delegraph_flex.numpy_executor.operators.matmul import adjoint
from delegraph_flex.numpy_executor.registry import operator, step_of


@step_of("Cholesky", types=WIDE)
def cholesky(x: NDArray[Any]) -> NDArray[Any]:
    """Return lower triangular l with l @ l^H = x, from x's lower triangle only.

    A matrix that is not positive definite gives NaN, as in TensorFlow.
    """
    check_square(x)
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return _cholesky_or_nan(x)


def _cholesky_or_nan(x: NDArray[Any]) -> NDArray[Any]:
    result = np.tril(np.full(x.shape, np.nan, x.dtype))
    for i in np.ndindex(x.shape[:-2]):
        try:
            result[i] = np.linalg.cholesky(x[i])
        except np.linalg.LinAlgError:
            continue
    return result


@operator("Qr", types=WIDE)
def qr(node: FlexNode) -> Step:
    """Function that computes orthonormal q and upper triangular r with q @ r = x (Householder)."""
    is_full = node.bool("full_matrices", False)
    mode: Any = "complete" if is_full else "reduced"

    def run(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        check_matrices(x)
        if is_full:
            require((*x.shape[:-1], x.shape[-2]), x.dtype)
        q, r = np.linalg.qr(x, mode)
        return q, r

    return run


@operator("Svd", types=WIDE)
def svd(node: FlexNode) -> Step:
    """Function that computes descending singular values s, and u and v with u @ diag(s) @ v^H = x.

    A matrix with infinities or NaN gives NaN, as in TensorFlow.
    """
    is_full = node.bool("full_matrices", False)

    def run(x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        finite, bad = _finite(x)
        if is_full:
            require((*x.shape[:-2], max(x.shape[-2:]), max(x.shape[-2:])), x.dtype)
        u, s, v = np.linalg.svd(finite, full_matrices=is_full)
        results = s.astype(x.dtype, copy=False), u, adjoint(v)
        if bad is not None:
            for result in results:
                result[bad] = np.nan
        return results

    def run_values(x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        finite, bad = _finite(x)
        s = np.linalg.svd(finite, compute_uv=False).astype(x.dtype, copy=False)
        if bad is not None:
            s[bad] = np.nan
        nothing = np.zeros((), x.dtype)
        return s, nothing, nothing

    return run if node.bool("compute_uv", True) else run_values


def _finite(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return *x* with non-finite matrices replaced by zeros, and a mask of the replaced matrices.

    The mask is None if all matrices are finite.
    """
    check_matrices(x)
    good = np.isfinite(x)
    if good.all():
        return x, None
    bad = ~np.asarray(good.all(axis=(-2, -1)))
    return np.where(bad[..., None, None], x.dtype.type(0), x), bad


@operator("SelfAdjointEigV2", types=WIDE)
def self_adjoint_eig(node: FlexNode) -> Step:
    """Return a function that computes ascending eigenvalues, and eigenvectors.

    Only the lower triangle of a matrix is read.
    """

    def run(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        _check_finite(x)
        values, vectors = np.linalg.eigh(x)
        return values.astype(x.dtype, copy=False), vectors

    def run_values(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        _check_finite(x)
        values = np.linalg.eigvalsh(x).astype(x.dtype, copy=False)
        return values, np.zeros((), x.dtype)

    return run if node.bool("compute_v", True) else run_values


def _check_finite(x: NDArray[Any]) -> None:
    check_square(x)
    if not np.isfinite(x).all():
        raise ValueError("input has infinities or NaN: it has no eigenvalues")


@operator("Lu", types=WIDE)
def lu(node: FlexNode) -> Step:
    """Function that computes both LU factors in one matrix, and the permutation of the rows."""
    dtype = node.type("output_idx_type", DataType.INT32).dtype

    def run(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        check_square(x)
        result, rows = x.copy(), np.empty(x.shape[:-1], dtype)
        rows[...] = np.arange(x.shape[-1])
        for i in np.ndindex(x.shape[:-2]):
            _eliminate(result[i], rows[i])
        return result, rows

    return run


def _eliminate(x: NDArray[Any], rows: NDArray[Any]) -> None:
    """Compute the LU factors of *x* in place, with pivoting, and permute *rows* likewise.

    The pivot is the element with the largest magnitude; LAPACK uses the sum of the parts of complex
    numbers instead.
    """
    for k in range(len(x)):
        pivot = k + int(np.abs(x[k:, k]).argmax())
        if x[pivot, k] == 0:
            raise ValueError("input is not invertible")
        if pivot != k:
            x[[k, pivot]] = x[[pivot, k]]
            rows[[k, pivot]] = rows[[pivot, k]]
        x[k + 1 :, k] /= x[k, k]
        x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
