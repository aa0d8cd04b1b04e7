"""Integer matrix products by floating point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Tensor, TensorType
from delegraph.arithmetic.exact_matmul import IntegerWeights, integer_weights, shared_weights
from delegraph.operators.tensor import AllocationType


@pytest.mark.parametrize("shape", [(3, 5), (1, 40_000), (700, 50), (4, 0), (0, 4), (6, 3, 3, 7)])
@pytest.mark.parametrize(("dtype", "zero_point"), [("int8", 0), ("uint8", 131), ("int16", 0)])
@pytest.mark.parametrize("is_fixed", [True, False])
def test_matrices_sums_and_bounds_are_those_of_the_definition(
    shape: tuple[int, ...], dtype: str, zero_point: int, is_fixed: bool
) -> None:
    limits = np.iinfo(dtype)
    weight = np.random.default_rng(1).integers(limits.min, limits.max, shape, dtype, endpoint=True)
    found = integer_weights(weight, 255, zero_point=zero_point, is_fixed=is_fixed)
    wide = weight.reshape(shape[0], -1 if shape[0] and shape[1] else shape[1]).astype(np.int64)
    wide -= zero_point
    (matrix,) = found.matrices
    np.testing.assert_array_equal(matrix, wide.T)
    np.testing.assert_array_equal(found.sums, wide.sum(axis=1))
    np.testing.assert_array_equal(found.bounds, 255.0 * np.abs(wide).sum(axis=1))
    fits_float32 = is_fixed and found.bounds.max(initial=0) <= 2**24
    assert found.dtype == (np.float32 if fits_float32 else np.float64)


def test_each_group_has_its_columns() -> None:
    weight = np.arange(12, dtype=np.int8).reshape(4, 3)
    first, second = integer_weights(weight, 127, groups=2).matrices
    np.testing.assert_array_equal(np.hstack([first, second]), weight.T)


def _constant(index: int, data: NDArray[Any]) -> Tensor:
    kind = AllocationType.MMAP_RO
    return Tensor(index, TensorType.INT8, data.shape, data=data, allocation_type=kind)


def test_nodes_that_read_the_same_bytes_share_their_matrices_while_one_keeps_them() -> None:
    data = np.arange(6, dtype=np.int8).reshape(2, 3)

    def shared(index: int, form: str = "a") -> IntegerWeights:
        weight = _constant(index, data)
        return shared_weights(weight, form, lambda: integer_weights(weight.data, 255))

    assert shared(0) is not shared(1)  # for they may be written to
    data.flags.writeable = False
    kept = shared(0)
    assert shared(1) is kept
    assert shared(1, "b") is not kept
    data = data[:1]
    assert shared(1) is not kept
