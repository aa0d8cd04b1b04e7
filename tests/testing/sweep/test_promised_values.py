"""A sweep does not judge values that a delegate promises nothing about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("resource", reason="a sweep's workers are POSIX processes")

from delegraph.delegation.capabilities import Capabilities, Claim
from delegraph.schema.options import AddOptions
from delegraph.testing.operator_case import fed, operator_case
from delegraph.testing.sweep.comparison import Comparison
from delegraph.testing.sweep.sweep_case import SweepCase
from support.faulty_delegate import Faulty


def zero(context: Any, node: Any, run: int) -> None:
    context.tensors[node.outputs[0]].data.fill(0)


@pytest.mark.parametrize(
    ("value", "features", "outcome"),
    [
        (np.nan, None, "not judged"),
        (np.nan, (), "not judged"),
        (np.nan, ("extreme-values",), "fault"),
        (1.0, (), "fault"),
        (1.0, None, "fault"),
    ],
)
def test_extreme_values_are_judged_where_a_claim_has_them(
    value: float, features: tuple[str, ...] | None, outcome: str
) -> None:
    x = fed(np.float32([value]))
    case = operator_case("ADD", [x, x], ["FLOAT32"], AddOptions())
    claims = [] if features is None else [Claim("ADD", "FLOAT32", *features)]
    promised = Capabilities(claims)
    compared = Comparison("faulty", make=lambda: Faulty("ADD", fault=zero), promised=promised)
    ending = compared.judge(SweepCase("ADD", case.model(), case.steps))
    assert ending.outcome == outcome
