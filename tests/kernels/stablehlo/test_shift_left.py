"""STABLEHLO_SHIFT_LEFT, against the official interpreter."""

import numpy as np
import pytest

from delegraph.testing import delegraph_outputs, fed
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays

OP = "STABLEHLO_SHIFT_LEFT"
DTYPES = [np.int8, np.int16, np.int32]


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_move_left(dtype):
    amounts = np.arange(8 * np.dtype(dtype).itemsize, dtype=dtype)
    x = fed(np.full(amounts.shape, -3, dtype))
    (y,) = assert_agrees(OP, [x, fed(amounts)], [x.definition.type.name])
    assert y[:4].tolist() == [-3, -6, -12, -24]


@pytest.mark.parametrize("size", [*range(1, 18), 23, 24, 25, 300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_amounts_outside_the_type_act_as_officially(dtype, size):
    rng, limits = np.random.default_rng(size), np.iinfo(dtype)
    x = fed(rng.integers(limits.min, limits.max, size, dtype, endpoint=True))
    near = rng.integers(-40, 40, size).astype(dtype)
    far = rng.integers(limits.min, limits.max, size, dtype, endpoint=True)
    for amounts in (near, far):
        assert_agrees(OP, [x, fed(amounts)], [x.definition.type.name])


@pytest.mark.parametrize("shape", [(3, 4), (2, 10)])
def test_amounts_may_have_another_shape(shape):
    amounts = np.arange(np.prod(shape), dtype=np.int8).reshape(shape) % 7
    (y,) = assert_agrees(OP, [fed(np.ones((2, 6), np.int8)), fed(amounts)], ["INT8"])
    assert y.shape == (2, 6)


def test_too_few_amounts_are_refused():
    inputs = [fed(np.ones((2, 6), np.int8)), fed(np.ones(6, np.int8))]
    with pytest.raises(RuntimeError, match=r"\[6\] amounts for \[2, 6\] elements"):
        delegraph_outputs(*model_and_arrays(OP, inputs, ["INT8"]))  # the official one reads on


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_other_types_are_refused(dtype):
    inputs = [fed(np.ones(3, dtype)), fed(np.zeros(3, dtype))]
    message = "expected one of INT16, INT32, INT8"
    assert_both_refuse(OP, inputs, [np.dtype(dtype).name.upper()], match=message)
