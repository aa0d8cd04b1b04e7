"""Cases of inverses, determinants, solutions of equations, and decompositions.

Where signs and phases are left open, the factors are multiplied again: the calls after the first
make what is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.node_def import AttrValue
from flex_cases import Call, Case, one

TYPES = {
    DataType.FLOAT32: 2e-6,
    DataType.FLOAT64: 1e-12,
    DataType.COMPLEX64: 2e-6,
    DataType.COMPLEX128: 1e-12,
}


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(9)
    for type, tolerance in TYPES.items():

        def some(*shape: int, type: DataType = type) -> NDArray[Any]:
            values = rng.normal(0, 1, shape)
            if type.dtype.kind == "c":
                values = values + 1j * rng.normal(0, 1, shape)
            return values.astype(type.dtype)

        x = some(2, 4, 4) + 2 * np.eye(4, dtype=type.dtype)
        hermitian = _hermitian(x)
        attrs = {"T": type, "tolerance": tolerance}
        yield from _functions(x, hermitian, attrs)
        yield from _solutions(x, some(2, 4, 3), attrs)
        yield from _banded(some(2, 2, 4) + 2, some(2, 4, 3), attrs)
        for shape in ((3, 3), (2, 4, 3), (2, 3, 4), (1, 1), (4, 1), (1, 4)):
            yield from _decompositions(some(*shape), attrs)
        for matrix in (x, hermitian, x[:1, :1, :1]):
            yield from _eigen(matrix, attrs)
    half = np.array([[4, 1], [1, 3]], np.float16)
    yield one("MatrixInverse", half, adjoint=False, T=DataType.FLOAT16, tolerance=1e-3)


def _hermitian(x: NDArray[Any]) -> NDArray[Any]:
    """Return matrices times their own adjoints, after rounding them to 64ths.

    A processor decides in which order BLAS adds; of these, float32 holds every sum exactly.
    """
    coarse = np.round(x * 64) / 64
    product: NDArray[Any] = coarse @ coarse.conj().swapaxes(-1, -2)
    return product


def _banded(bands: NDArray[Any], b: NDArray[Any], attrs: dict[str, Any]) -> Iterator[Case]:
    op = "BandedTriangularSolve"
    for lower in (True, False):
        for adjoint in (False, True):
            flags = {"lower": lower, "adjoint": adjoint, **attrs}
            yield one(op, bands, b, **flags)
            yield one(op, bands[0], b[0, :, :1], **flags)
            yield one(op, bands[:, :1], b, **flags)
            yield one(op, np.ones((3, 4), bands.dtype) + bands[0, :1], b[0], **flags)


def _functions(x: NDArray[Any], hermitian: NDArray[Any], attrs: dict[str, Any]) -> Iterator[Case]:
    two = (TensorType[attrs["T"].name],) * 2
    none = x[:, :0, :0]
    for matrix in (x, x[0], none):
        for adjoint in (False, True):
            yield one("MatrixInverse", matrix, adjoint=adjoint, **attrs)
        yield one("MatrixDeterminant", matrix, **attrs)
        yield one("LogMatrixDeterminant", matrix, out=two, **attrs)
    singular = np.array([[1, 2], [2, 4]], x.dtype)
    yield one("MatrixDeterminant", singular, **attrs)
    if x.dtype.kind == "f":
        for bad in (np.nan, np.inf):
            odd = np.diag(np.array([bad, 2], x.dtype))
            yield one("MatrixDeterminant", odd, **attrs)
            yield one("LogMatrixDeterminant", odd, out=two, **attrs)
    yield one("Cholesky", hermitian, **attrs)
    yield one("Cholesky", np.tril(hermitian[0]), **attrs)
    index = {"output_idx_type": DataType.INT64, "out": (two[0], TensorType.INT64)}
    yield one("Lu", x, **index, **attrs)
    yield one("Lu", x[:, ::-1][0], **index, **attrs)
    roomy = {**attrs, "tolerance": attrs["tolerance"] * 5}
    yield one("MatrixSquareRoot", hermitian, **roomy)
    if x.dtype.kind == "c":
        yield one("MatrixLogarithm", hermitian, **roomy)


def _solutions(x: NDArray[Any], b: NDArray[Any], attrs: dict[str, Any]) -> Iterator[Case]:
    type = TensorType[attrs["T"].name]
    for adjoint in (False, True):
        yield one("MatrixSolve", x, b, adjoint=adjoint, **attrs)
        for lower in (False, True):
            for matrix, right in ((x, b), (x[0], b[0]), (x, b[:1]), (x[0], b), (x, b[0])):
                yield one(
                    "MatrixTriangularSolve", matrix, right, lower=lower, adjoint=adjoint, **attrs
                )
    yield one("MatrixSolve", x[:0], b[:0], adjoint=False, **attrs)
    yield one("MatrixTriangularSolve", x, b[..., :0], lower=True, adjoint=False, **attrs)
    loose = {**attrs, "tolerance": attrs["tolerance"] * 10}  # normal equations square the condition
    for matrix in (x[..., :2], x[0][:, :3]):
        right, penalty = b[: len(matrix)] if matrix.ndim == 3 else b[0], np.float64(0.25)
        for fast in (False, True):
            yield one("MatrixSolveLs", matrix, right, penalty, fast=fast, **loose)
        wide = matrix.swapaxes(-1, -2)
        for fast in (False, True):
            some = right[..., : wide.shape[-2], :]
            yield one("MatrixSolveLs", np.array(wide), np.array(some), penalty, fast=fast, **loose)
    diagonals = x[:, :3] + np.array([[0], [4], [0]], x.dtype)
    for bands, right in ((diagonals, b), (diagonals[0], b[0]), (diagonals[:, :, :1], b[:, :1])):
        for pivots in (False, True):
            yield one(
                "TridiagonalSolve", bands, right, partial_pivoting=pivots,
                perturb_singular=False, **attrs,
            )  # fmt: skip
    parts = (x[:, i : i + 1] for i in range(3))
    yield one("TridiagonalMatMul", *parts, b, out=type, **attrs)


def _chain(
    name: str, x: NDArray[Any], calls: list[tuple[str, dict[str, AttrValue], tuple[int, ...], int]],
    outputs: tuple[int, ...], attrs: dict[str, Any],
) -> Case:  # fmt: skip
    """Return the case of calls (operator, attributes, inputs, number of outputs) in a row."""
    type = TensorType[attrs["T"].name]
    made = [Call(op, {"T": attrs["T"], **own}, at, (type,) * n) for op, own, at, n in calls]
    return Case(name, [x], made, outputs, attrs["tolerance"])


_PLAIN: dict[str, AttrValue] = {"adj_x": False, "adj_y": False}
_FLIP_Y: dict[str, AttrValue] = {"adj_x": False, "adj_y": True}
_FLIP_X: dict[str, AttrValue] = {"adj_x": True, "adj_y": False}


def _decompositions(x: NDArray[Any], attrs: dict[str, Any]) -> Iterator[Case]:
    for full in (False, True):
        factors = TensorType[attrs["T"].name], TensorType[attrs["T"].name]
        if not full or x.shape[-2] <= x.shape[-1]:  # else columns of q are left open
            yield one("Qr", x, full_matrices=full, out=factors, **attrs)
        both: list[Any] = [
            ("Qr", {"full_matrices": full}, (0,), 2),
            ("BatchMatMulV2", _PLAIN, (1, 2), 1),
            ("BatchMatMulV2", _FLIP_X, (1, 1), 1),
        ]
        yield _chain("Qr product", x, both, (2, 3, 4), attrs)
        svd: list[Any] = [
            ("Svd", {"compute_uv": True, "full_matrices": full}, (0,), 3),
            ("BatchMatMulV2", _FLIP_X, (2, 2), 1),
            ("BatchMatMulV2", _FLIP_X, (3, 3), 1),
        ]
        outputs: tuple[int, ...] = (1, 4, 5)
        if not full:
            svd += [
                ("MatrixDiag", {}, (1,), 1),
                ("BatchMatMulV2", _PLAIN, (2, 6), 1),
                ("BatchMatMulV2", _FLIP_Y, (7, 3), 1),
            ]
            outputs += (8,)
        yield _chain("Svd product", x, svd, outputs, attrs)
    values: list[Any] = [("Svd", {"compute_uv": False, "full_matrices": False}, (0,), 3)]
    if x.dtype.kind == "f":
        bad = np.stack((x, x))
        bad[1].reshape(-1)[0] = np.nan
        yield _chain("Svd of NaN", bad, values, (1,), attrs)
        yield _chain("Svd of NaN", bad, [svd[0]], (1,), attrs)
    yield _chain("Svd values", x, values, (1,), attrs)


def _eigen(x: NDArray[Any], attrs: dict[str, Any]) -> Iterator[Case]:
    calls: list[Any] = [
        ("SelfAdjointEigV2", {"compute_v": True}, (0,), 2),
        ("MatrixDiag", {}, (1,), 1),
        ("BatchMatMulV2", _PLAIN, (2, 3), 1),
        ("BatchMatMulV2", _FLIP_Y, (4, 2), 1),
        ("BatchMatMulV2", _FLIP_X, (2, 2), 1),
    ]
    yield _chain("SelfAdjointEigV2 product", x, calls, (1, 5, 6), attrs)
    values: list[Any] = [("SelfAdjointEigV2", {"compute_v": False}, (0,), 2)]
    yield _chain("SelfAdjointEigV2 values", x, values, (1,), attrs)
