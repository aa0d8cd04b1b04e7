"""Moving elements: shared memory is left alone, packed values are unpacked."""

import numpy as np
import pytest

from delegraph.arithmetic.elements import forward, on_elements, values_of
from delegraph.graph.dtypes import pack
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType


def held(data, shape=None, type_=TensorType.FLOAT32):
    return Tensor(0, type_, data.shape if shape is None else shape, data=data)


def test_forward_copies_between_arrays_of_other_shapes():
    x, y = held(np.float32([[1, 2], [3, 4]])), held(np.zeros(4, np.float32))
    forward(x, y)()
    assert y.data.tolist() == [1, 2, 3, 4]


def test_forward_leaves_shared_memory_alone():
    data = np.float32([1, 2, 3, 4])
    data.flags.writeable = False  # writing would raise
    forward(held(data), held(data.reshape(2, 2)))()


def test_forward_notices_new_arrays():
    data = np.float32([1, 2])
    x, y = held(data), held(data.view())
    run = forward(x, y)
    run()
    y.data = np.zeros(2, np.float32)
    run()
    assert y.data.tolist() == [1, 2]
    x.data = np.float32([5, 6])
    run()
    assert y.data.tolist() == [5, 6]


@pytest.mark.parametrize("type_", [TensorType.INT4, TensorType.INT2])
def test_packed_values_are_moved_one_by_one(type_):
    values = np.array([1, -1, 0, -2, 1], np.int8)
    x = held(pack(values, type_), (5,), type_)
    y = held(np.zeros_like(x.data), (5,), type_)
    on_elements(x, y, lambda a, b: np.copyto(b, a[::-1]))()
    assert values_of(y).tolist() == values[::-1].tolist()
