"""The NumPy index that the arguments of STRIDED_SLICE amount to."""

import pytest

from delegraph.arithmetic.slice_index import FULL, NEW_AXIS, Masks, resolved, spec_of_dimensions
from delegraph.errors import OperatorError


def masks(**bits):
    return Masks(**(dict.fromkeys(Masks.__slots__, 0) | bits))


def test_an_ellipsis_stands_for_one_dimension_at_least():
    both = masks(ellipsis=0b10, new_axis=0b01)
    assert spec_of_dimensions(3, 3, both) == [NEW_AXIS, FULL, FULL, 2]
    assert spec_of_dimensions(1, 3, both) == [NEW_AXIS, FULL]


def test_masks_that_do_not_fit_the_rank_are_refused():
    with pytest.raises(OperatorError, match="do not fit 2 indices and an input of rank 0"):
        spec_of_dimensions(0, 2, masks(new_axis=0b10))


def test_an_index_outside_the_dimension_that_it_shrinks_is_refused():
    with pytest.raises(OperatorError, match="index -4 is outside a dimension of 3"):
        resolved((3,), [-4], [0], [-1], masks(shrink_axis=1))
