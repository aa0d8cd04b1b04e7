"""Weights of recurrent layers: float, or 8-bit with float activations.

With 8-bit weights, each row of activations is quantised to int8 while the model runs. The product
is computed in integers, and each sum is converted back to float.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.exact_matmul import exact_float
from delegraph.arithmetic.quantize_rows import quantize_rows
from delegraph.arithmetic.weights import is_quantized
from delegraph.errors import OperatorError
from delegraph.operators.tensor import Tensor

Floats = NDArray[np.float32]


class Matrix(Protocol):
    """Interface of weights that multiply rows of activations."""

    def product(self, rows: Floats) -> Floats:
        """Return ``rows @ weights.T``, from ``[R, I]`` to ``[R, O]``, float32, as a new array."""


class FloatMatrix:
    """A matrix of float weights, ``[O, I]``."""

    def __init__(self, weights: Floats) -> None:
        self._transposed = weights.T

    def product(self, rows: Floats) -> Floats:
        """Return the matrix product ``rows @ weights.T``, float32."""
        y: Floats = rows @ self._transposed
        return y


class IntegerMatrix:
    """8-bit weights, multiplied with 8-bit activations.

    Args:
        weights: ``[O, I], int8``.

    Attributes:
        row_sums: sum of each output's weights, ``[O], int32``: the effect of adding 1 to all
            activations.
        bound: largest magnitude of a product.
    """

    def __init__(self, weights: NDArray[np.int8]) -> None:
        self.bound = 128.0 * np.abs(weights.astype(np.int32)).sum(axis=1).max(initial=0)
        self._transposed = weights.astype(exact_float(self.bound)).T
        self.row_sums: NDArray[np.int32] = weights.sum(axis=1, dtype=np.int32)

    def product(self, rows: NDArray[np.int8]) -> NDArray[np.floating]:
        """Return ``rows @ weights.T``, ``[R, I], int8`` to ``[R, O]``: exact, in a float type."""
        y: NDArray[np.floating] = rows.astype(self._transposed.dtype) @ self._transposed
        return y


class HybridMatrix:
    """8-bit weights, multiplied with activations that are quantised row by row.

    Args:
        weights: ``[O, I], int8``, zero point 0.
        scales: ``[O], float32``, the scale of each row of *weights*.
        asymmetric: whether activations get a zero point.

    Source:
        MatrixBatchVectorMultiplyAccumulate (int8_t), tflite/kernels/internal/tensor_utils.h.
    """

    def __init__(self, weights: NDArray[np.int8], scales: Floats, asymmetric: bool) -> None:
        self._weights = IntegerMatrix(weights)
        self._scales = scales
        self._asymmetric = asymmetric

    def product(self, rows: Floats) -> Floats:
        """Return ``rows @ weights.T``, float32, computed in integers."""
        quantized, scales, zero_points = quantize_rows(rows, asymmetric=self._asymmetric)
        sums = self._weights.product(quantized)
        if self._asymmetric:
            sums = sums - zero_points[:, None] * self._weights.row_sums
        y: Floats = sums.astype(np.float32, copy=False) * (scales[:, None] * self._scales)
        return y


def recurrent_weights(tensors: Sequence[Tensor], *, asymmetric: bool) -> Matrix:
    """Return one matrix with the rows of all *tensors*, stacked from top to bottom.

    Args:
        tensors: tensors of one type, with two dimensions; diagonal matrices, which must be float,
            have one dimension.
        asymmetric: whether activations get a zero point if the weights are quantised.

    Raises:
        OperatorError: the widths differ, or some matrices are diagonal and others 8-bit.
    """
    if len({tensor.type for tensor in tensors}) > 1:
        raise OperatorError("some recurrent weights are diagonal and others 8-bit")
    arrays = [np.diag(t.data) if len(t.shape) == 1 else t.data for t in tensors]
    widths = {array.shape[1] for array in arrays}
    if len(widths) > 1:
        raise OperatorError(f"recurrent weights have widths {sorted(widths)}, expected one")
    stacked = np.concatenate(arrays)
    if not is_quantized(tensors[0]):
        return FloatMatrix(stacked)
    scales = np.repeat([np.float32(t.scale) for t in tensors], [len(a) for a in arrays])
    return HybridMatrix(stacked.view(np.int8), scales, asymmetric)
