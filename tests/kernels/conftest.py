"""The two ways in which an input with a shape, axes or positions is given."""

import pytest

from delegraph.testing import constant, fed


@pytest.fixture(params=[constant, fed])
def given(request):
    """Makes an input that is known while preparing, or one that comes with the invoke."""
    return request.param
