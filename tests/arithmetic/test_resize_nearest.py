"""Which positions a resize to the nearest neighbour takes."""

from itertools import product

import pytest

from delegraph.arithmetic.resize_nearest import nearest_positions


@pytest.mark.parametrize("flags", [*product([False, True], repeat=2)])
def test_positions_lie_inside(flags):
    for old in range(1, 12):
        for new in range(1, 40):
            positions = nearest_positions(old, new, *flags)
            assert len(positions) == new
            assert 0 <= positions.min() <= positions.max() < old


def test_aligned_corners_are_kept():
    assert nearest_positions(5, 3, True, False).tolist() == [0, 2, 4]


def test_half_pixel_centers_move_the_grid():
    assert nearest_positions(4, 2, False, False).tolist() == [0, 2]
    assert nearest_positions(4, 2, False, True).tolist() == [1, 3]
