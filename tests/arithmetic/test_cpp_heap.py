"""The heap that orders equal elements as libstdc++ does."""

import numpy as np
import pytest

from delegraph.arithmetic.cpp_heap import largest, pop, push


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_come_first(seed):
    rng = np.random.default_rng(seed)
    values = rng.permutation(30).tolist()
    count = int(rng.integers(1, 31))
    assert [values[i] for i in largest(values, count)] == sorted(values, reverse=True)[:count]


def test_one_of_equals_is_the_first():
    assert largest([1.0, 2.0, 2.0], 1) == [1]


@pytest.mark.parametrize(
    ("values", "count", "order"),
    [([0.0] * 4, 4, [1, 3, 0, 2]), ([2, 1, 2, 1, 2, 1, 2], 3, [4, 0, 2])],
)
def test_equal_values_are_as_libstdcxx_leaves_them(values, count, order):
    assert largest(values, count) == order


@pytest.mark.parametrize("seed", range(5))
def test_popping_gives_the_highest_first(seed):
    values = np.random.default_rng(seed).permutation(20).tolist()
    heap: list[int] = []
    for value in values:
        push(heap, value, int.__lt__)
    assert [pop(heap, int.__lt__) for _ in values] == sorted(values, reverse=True)
