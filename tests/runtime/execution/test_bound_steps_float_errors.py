"""Functions that run without NumPy's warnings about float errors."""

import numpy as np
import pytest

from delegraph.runtime.execution import bound_steps
from delegraph.runtime.execution.bound_steps import ignoring_float_errors


def divide_by_zero(depth: int = 0) -> np.ndarray:
    if depth:
        nested(depth - 1)
    return np.float32([1]) / np.float32(0)


nested = ignoring_float_errors(divide_by_zero)


@pytest.fixture(params=[True, False], ids=["state", "errstate"])
def quiet(request, monkeypatch):
    """The decorated function, as before and since NumPy 2."""
    if not request.param:
        monkeypatch.setattr(bound_steps, "ignoring_state", lambda: None)
    return ignoring_float_errors(divide_by_zero)


def test_errors_are_ignored_within_and_as_they_were_after(quiet):
    with np.errstate(all="raise"):
        assert np.isinf(quiet())
        assert np.isinf(quiet(2)), "a call within a call ends its own state only"
        with pytest.raises(FloatingPointError):
            divide_by_zero()


def test_errors_are_as_they_were_after_a_function_that_raises():
    @ignoring_float_errors
    def fail() -> None:
        raise KeyError

    with np.errstate(all="raise"):
        with pytest.raises(KeyError):
            fail()
        with pytest.raises(FloatingPointError):
            divide_by_zero()


def test_numpy_2_has_a_state_to_set():
    is_new = int(np.__version__.split(".")[0]) >= 2
    assert (bound_steps.ignoring_state() is not None) == is_new
