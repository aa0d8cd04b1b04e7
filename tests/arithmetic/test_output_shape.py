"""Sizing outputs now or at each invoke."""

import numpy as np
import pytest

from delegraph.arithmetic.output_shape import fold_output, normalized_axis, size_output
from delegraph.errors import OperatorError
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.schema.enums import TensorType


class Host:
    """The least that a kernel's host must do to size tensors."""

    def __init__(self):
        self.invoking = False

    def resize_tensor(self, tensor, shape):
        tensor.shape = tuple(shape)
        if self.invoking:
            tensor.data = np.empty(tensor.shape, tensor.dtype)

    def set_dynamic(self, tensor):
        tensor.make_dynamic()


def repeated(x, times, y):
    """Return the plan of an operator that repeats *x* as often as *times* says."""

    def plan():
        count = int(times.data[0])
        return (len(x.data) * count,), lambda: np.copyto(y.data, np.tile(x.data, count))

    return plan


def tensors(times_allocation, x_allocation=AllocationType.ARENA_RW):
    x = Tensor(0, TensorType.INT32, (2,), data=np.int32([1, 2]), allocation_type=x_allocation)
    times = Tensor(1, TensorType.INT32, (1,), data=np.int32([2]), allocation_type=times_allocation)
    return x, times, Tensor(2, TensorType.INT32, ())


def test_a_known_shape_is_set_while_preparing():
    host, (x, times, y) = Host(), tensors(AllocationType.MMAP_RO)
    run = size_output(host, y, repeated(x, times, y), shape_inputs=(times,))
    assert (y.shape, y.is_dynamic) == ((4,), False)
    y.data = np.empty(4, np.int32)
    run()
    assert y.data.tolist() == [1, 2, 1, 2]


def test_an_unknown_shape_is_set_at_each_invoke():
    host, (x, times, y) = Host(), tensors(AllocationType.ARENA_RW)
    run = size_output(host, y, repeated(x, times, y), shape_inputs=(times,))
    assert y.is_dynamic
    host.invoking = True
    for count in (2, 3):
        times.data = np.int32([count])
        run()
        assert y.data.tolist() == [1, 2] * count


def test_constants_are_folded_into_a_persistent_output():
    known = AllocationType.MMAP_RO
    host, (x, times, y) = Host(), tensors(known, known)
    run = size_output(host, y, repeated(x, times, y), shape_inputs=(times,), fold=(x,))
    assert y.allocation_type is AllocationType.PERSISTENT_RO
    assert y.data.tolist() == [1, 2, 1, 2]
    run()


def test_floats_that_overflow_are_folded_without_a_warning():
    y = Tensor(0, TensorType.FLOAT32, ())
    fold_output(Host(), y, lambda: ((1,), lambda: np.multiply(np.float32([1e38]), 10)))
    assert y.allocation_type is AllocationType.PERSISTENT_RO


def test_what_is_not_constant_is_not_folded():
    host, (x, times, y) = Host(), tensors(AllocationType.MMAP_RO)
    size_output(host, y, repeated(x, times, y), shape_inputs=(times,), fold=(x,))
    assert y.allocation_type is not AllocationType.PERSISTENT_RO


@pytest.mark.parametrize(("axis", "expected"), [(0, 0), (2, 2), (-1, 2), (-3, 0)])
def test_axes_are_counted_from_the_front(axis, expected):
    assert normalized_axis(axis, 3) == expected


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_outside_is_refused(axis):
    with pytest.raises(OperatorError, match=r"outside \[-3, 3\)"):
        normalized_axis(axis, 3)
