"""Weights as plain arrays."""

import numpy as np
import pytest

from delegraph import Tensor, TensorType
from delegraph.arithmetic.weights import dequantized_weights, is_quantized
from delegraph.graph.model import Quantization

HALF = Quantization(np.array([0.5], np.float32), np.zeros(1, np.int32))


@pytest.mark.parametrize("kind", [TensorType.INT8, TensorType.UINT8])
def test_stored_bytes_are_signed_and_scaled(kind):
    stored = np.array([-2, 3], np.int8).view(np.dtype(kind.name.lower()))
    weights = Tensor(0, kind, (2,), data=stored, quantization=HALF)
    assert is_quantized(weights)
    assert dequantized_weights(weights).tolist() == [-1, 1.5]
    assert dequantized_weights(weights).dtype == np.float32


def test_float_weights_are_not_copied():
    weights = Tensor(0, TensorType.FLOAT32, (2,), data=np.ones(2, np.float32))
    assert not is_quantized(weights)
    assert dequantized_weights(weights) is weights.data
