"""The innermost loop of broadcasting."""

import pytest

from delegraph.arithmetic.vector_loop import InnerLoop, inner_loop

CASES = [
    ((2, 3, 4), (2, 3, 4), InnerLoop(24, False)),
    ((4,), (1, 4), InnerLoop(4, False)),
    ((2, 3, 4), (3, 4), InnerLoop(12, False)),
    ((2, 3, 4), (2, 3, 1), InnerLoop(4, True)),
    ((2, 3, 4), (3, 1), None),
    ((2, 3, 4), (), InnerLoop(24, True)),
    ((3, 1), (1, 5), InnerLoop(5, True)),
    ((2, 1, 3, 1, 5), (1, 4, 1, 6, 5), None),
]


@pytest.mark.parametrize(("a", "b", "expected"), CASES, ids=str)
def test_the_loop_of_two_shapes_is_the_same_either_way(a, b, expected):
    assert inner_loop(a, b) == expected
    assert inner_loop(b, a) == expected
