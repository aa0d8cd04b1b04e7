from __future__ import annotations

import numpy as np
import pytest

from delegraph.graph.dtypes import BITS, NUMPY_DTYPES, byte_size, pack, unpack
from delegraph.schema.enums import TensorType


def test_every_tensor_type_has_a_dtype() -> None:
    assert set(NUMPY_DTYPES) == set(TensorType)


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [(TensorType.INT4, -8, 7), (TensorType.UINT4, 0, 15), (TensorType.INT2, -2, 1)],
)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 16])
def test_packed_integers_are_unpacked_equal(
    type_: TensorType, low: int, high: int, count: int
) -> None:
    rng = np.random.default_rng(count)
    values = rng.integers(low, high, count, NUMPY_DTYPES[type_], endpoint=True)
    packed = pack(values, type_)
    assert len(packed) == byte_size(type_, (count,)) == -(-count * BITS[type_] // 8)
    np.testing.assert_array_equal(unpack(packed, type_, (count,)), values)


def test_the_first_element_is_in_the_low_bits() -> None:
    assert pack(np.array([1, 2], np.int8), TensorType.INT4).tolist() == [0x21]


def test_a_scalar_has_one_element_and_objects_no_bytes() -> None:
    assert byte_size(TensorType.COMPLEX64, ()) == 8
    assert byte_size(TensorType.BFLOAT16, (3, 0)) == 0
    assert byte_size(TensorType.STRING, (3,)) == 0
