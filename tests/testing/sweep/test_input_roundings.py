"""What differs by roundings alone is no fault, wherever the floats come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.delegation.tolerance import Tolerance
from delegraph.testing import constant, fed, operator_case
from delegraph.testing.sweep.comparison import Comparison
from delegraph.testing.sweep.input_roundings import nudged_case
from delegraph.testing.sweep.sweep_case import SweepCase
from support.faulty_delegate import Faulty

A, B = np.float32([1000.0, 3.0]), np.float32([-1000.5, 4.0])


def case_of(*operands: Any) -> SweepCase:
    case = operator_case("ADD", operands, ["FLOAT32"])
    return SweepCase("ADD", case.model(), case.steps)


def added(amount: float) -> Comparison:
    def fault(context: Any, node: Any, run: int) -> None:
        context.tensors[node.outputs[0]].data[0] += amount

    tolerance = {"FLOAT32": Tolerance()}
    return Comparison("faulty", make=lambda: Faulty("ADD", tolerance=tolerance, fault=fault))


@pytest.mark.parametrize("operands", [(fed(A), fed(B)), (constant(A), constant(B))])
def test_a_sum_that_cancels_may_be_off_by_roundings_of_its_summands(operands: Any) -> None:
    assert added(1e-4).judge(case_of(*operands)).outcome == "equal"
    assert added(1e-2).judge(case_of(*operands)).outcome == "fault"


def test_integers_stay() -> None:
    case = case_of(fed(np.int32([5])), constant(np.int32([7])))
    same = nudged_case(case, 1)
    assert (same.content, same.steps) == (case.content, case.steps)
