"""The judge of operator cases: each kind of disagreement is seen, and crashes are survived."""

import numpy as np
import pytest

from conformance.accepted_types import accepted_types
from conformance.judging import Judge, Outcome, Task, difference, verdict
from delegraph.testing import fed, operator_case, tensor
from delegraph.tools.shrinking import shrunk

TASK = Task(b"", ())
REFUSED = Outcome(None, RuntimeError("no"), "allocate")


def ran(*values, dtype=np.int8):
    return Outcome([[np.array(values, dtype)]])


@pytest.mark.parametrize(
    ("mine", "theirs", "text"),
    [
        (ran(1, 2), ran(1, 3), "1 of 2 differ, at [1]"),
        (ran(1), ran(1, 2), "shape (1,), expected (2,)"),
        (ran(1), ran(1, dtype=np.int16), "dtype int8, expected int16"),
        (ran(1.0, dtype=np.float32), ran(1.001, dtype=np.float32), "1 of 1 differ"),
        (REFUSED, ran(1), "refused alone, at allocate"),
        (ran(1), REFUSED, "accepted alone, at allocate"),
    ],
)
def test_differences_are_seen(mine, theirs, text):
    assert text in difference(mine, theirs, TASK)
    assert not verdict(mine, theirs, theirs, TASK).passed


def test_floats_agree_within_the_tolerance_and_nan_with_nan():
    mine = ran(1.000001, np.nan, dtype=np.float32)
    assert difference(mine, ran(1, np.nan, dtype=np.float32), TASK) == ""


def test_floats_may_be_those_of_the_other_kernels_but_integers_may_not():
    mine, followed = ran(2, dtype=np.float32), ran(1, dtype=np.float32)
    assert verdict(mine, followed, mine, TASK).passed
    assert not verdict(ran(2), ran(1), ran(2), TASK).passed


def test_both_refusing_passes():
    assert verdict(REFUSED, REFUSED, REFUSED, TASK).kind == "refused"


def relu(values):
    y = tensor((), "FLOAT32")
    return operator_case("RELU", [fed(np.float32(values))], [y])


def test_a_child_that_dies_is_replaced():
    case = relu([1, -1])
    with Judge() as judge:
        task = Task(case.model(), case.steps)
        assert judge(task).kind == "same"
        judge.process.kill()
        assert judge(task).kind == "crashes"
        assert judge(task).kind == "same"


def test_a_failing_case_shrinks_to_its_reason():
    case = relu(np.arange(24).reshape(2, 3, 4) - 5.5)
    small = shrunk(case, lambda other: bool((other.steps[0][0] < 0).any()))
    assert small.steps[0][0].shape == (1, 1, 1)
    assert small.model()


def test_types_name_the_data_and_other_weights():
    cases = [("INT32", "INT8", "INT16"), ("INT32", "UINT8", "UINT8")]
    assert accepted_types("TRANSPOSE_CONV", cases) == ["INT16 by INT8", "UINT8"]
