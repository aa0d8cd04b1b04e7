"""Tables of 8- and 16-bit operands."""

from types import SimpleNamespace

import numpy as np
import pytest

from delegraph.arithmetic.lookup_table import (
    binary_lookup,
    every_value,
    interpolate,
    interpolation_points,
    round_half_away,
    unary_lookup,
)
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType


@pytest.mark.parametrize("type", ["INT8", "UINT8", "INT16", "UINT16"])
def test_values_are_ordered_by_their_bits(type):
    dtype = np.dtype(type.lower())
    values = every_value(dtype)
    bits = values.astype(dtype).view(f"u{dtype.itemsize}")
    np.testing.assert_array_equal(bits, np.arange(len(values)))


@pytest.mark.parametrize("size", [1, 256, 5000])
@pytest.mark.parametrize(
    ("type", "result"), [("INT8", "UINT8"), ("UINT8", "INT8"), ("INT8", "INT16"), ("INT16", "INT8")]
)
def test_a_lookup_is_the_function(type, result, size):
    x, y = Tensor(0, TensorType[type], (size,)), Tensor(1, TensorType[result], (size,))
    info = np.iinfo(x.dtype)
    x.data = np.linspace(info.min, info.max, size).astype(x.dtype)
    y.data = np.empty(size, y.dtype)
    unary_lookup(x, y, lambda q: q // 7 % 100)()
    np.testing.assert_array_equal(y.data, x.data.astype(int) // 7 % 100)


def test_halves_are_rounded_away_and_their_neighbours_are_not():
    below = np.nextafter(np.float32(0.5), np.float32(0))
    x = np.float32([0.5, -0.5, below, -below, 2.5, 8388609.0])
    assert round_half_away(x).tolist() == [1, -1, 0, 0, 3, 8388609]


def test_interpolation_passes_through_a_straight_line():
    one = np.float64(1)
    points = interpolation_points(one, 0, one, 0, lambda v: v / 2)
    q = np.arange(-32768, 32768)
    assert np.abs(interpolate(q, points) - q / 2).max() <= 1


def test_the_first_runs_of_a_small_node_fill_no_table_and_later_ones_compute_nothing():
    rng = np.random.default_rng(0)
    a, b, y = (
        Tensor(i, TensorType.INT8, shape) for i, shape in enumerate([(4, 1000), (1000,), (4, 1000)])
    )
    scratch = SimpleNamespace(data=np.empty((4, 1000), np.uint16))
    context = SimpleNamespace(scratch=lambda shape, dtype: scratch)
    computed = []

    def function(p, q):
        computed.append(np.broadcast(p, q).size)
        return (3 * p - q) // 9 % 50

    run = binary_lookup(context, a, b, y, function)
    for _ in range(12):
        a.data, b.data = (rng.integers(-128, 128, x.shape).astype(np.int8) for x in (a, b))
        y.data = a.data  # works in place
        expected = (3 * a.data.astype(int) - b.data) // 9 % 50
        run()
        np.testing.assert_array_equal(y.data, expected)
    assert computed[:8] == [4000] * 8
    assert sum(computed[8:]) == 65_536
