"""Table, which the official Python package does not register, against definitions."""

import numpy as np
import pytest

from delegraph.testing import constant, delegraph_outputs, fed
from support.agreement import model_and_arrays


def looked_up(x, table):
    inputs = [fed(x, scale=1.0), constant(table)]
    output = fed(np.zeros_like(x), scale=1.0).definition
    return delegraph_outputs(*model_and_arrays("Table", inputs, [output]))[0]


def test_each_byte_has_an_entry():
    table = np.random.default_rng(0).integers(-128, 128, 256).astype(np.int8)
    x = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)
    np.testing.assert_array_equal(looked_up(x, table).reshape(-1), table)


def test_shorts_are_interpolated():
    table = np.random.default_rng(0).integers(-(1 << 15), 1 << 15, 513).astype(np.int16)
    x = np.random.default_rng(1).integers(-(1 << 15), 1 << 15, 4000).astype(np.int16)
    position = (x.astype(np.float64) + (1 << 15)) / 128
    expected = np.interp(position, np.arange(513), table)
    np.testing.assert_array_equal(looked_up(x, table), np.floor(expected + 0.5))


def test_a_table_of_another_length_is_refused():
    with pytest.raises(RuntimeError, match=r"shape \[255\], expected \[256\]"):
        looked_up(np.zeros(3, np.int8), np.zeros(255, np.int8))
