"""aeq.hadamard_rotation, against the official interpreter."""

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph.testing import delegraph_outputs, fed, tensor
from support.agreement import assert_agrees, model_and_arrays

OP = "aeq.hadamard_rotation"


def options(size):
    return bytes(flexbuffers.Dumps({"hadamard_size": size, "random_binary_vector": [1, -1]}))


def values(shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("size", [1, 2, 8, 16, 64, 512])
@pytest.mark.parametrize("shape", [(3, 512), (2, 3, 512)])
def test_blocks_are_transformed_as_officially(shape, size):
    y = tensor(shape)
    assert_agrees(OP, [fed(values(shape))], [y], custom_options=options(size))


def test_blocks_run_on_over_the_end_of_a_row():
    assert_agrees(OP, [fed(values((3, 22)))], [tensor((3, 22))], custom_options=options(8))


@pytest.mark.parametrize("size", [4, 16])
def test_of_four_axes_the_first_two_count_as_all(size):
    shape = (2, 6, 7, 16)
    assert_agrees(OP, [fed(values(shape))], [tensor(shape)], custom_options=options(size))


def test_a_transform_is_its_own_inverse():
    x = values((2, 32))
    for _ in range(2):
        model, arrays = model_and_arrays(
            OP, [fed(x)], [tensor((2, 32))], custom_options=options(32)
        )
        (x,) = delegraph_outputs(model, arrays)
    np.testing.assert_allclose(x, values((2, 32)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("size", "message"), [(0, "expected a number from 1 up"), (12, "expected a power of two")]
)
def test_sizes_without_a_hadamard_matrix_are_refused(size, message):
    x, y = fed(values((2, 24))), tensor((2, 24))
    model, arrays = model_and_arrays(OP, [x], [y], custom_options=options(size))
    with pytest.raises(RuntimeError, match=message):
        delegraph_outputs(model, arrays)


def test_bytes_are_refused():
    x, y = fed(np.zeros((2, 8), np.int8)), tensor((2, 8))
    model, arrays = model_and_arrays(OP, [x], [y], custom_options=options(8))
    with pytest.raises(RuntimeError, match="type INT8"):
        delegraph_outputs(model, arrays)
