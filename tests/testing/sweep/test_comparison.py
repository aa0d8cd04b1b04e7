"""What a sweep of a default delegate takes for an error in other words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("resource", reason="a sweep's workers are POSIX processes")

from delegraph.delegation.capabilities import Capabilities
from delegraph.errors import DelegateNodeError, NodeError
from delegraph.testing.operator_case import fed, operator_case
from delegraph.testing.sweep import hosts
from delegraph.testing.sweep.comparison import Comparison
from delegraph.testing.sweep.sweep_case import SweepCase


def raising(error: Exception) -> Callable[..., Any]:
    def open_it(content: bytes, **given: Any) -> Any:
        raise error

    return open_it


FIRST = NodeError("Node number 1 (ABS) is wrong", node_index=1, op="ABS")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (FIRST, "refused"),
        (NodeError("Node number 2 (ADD) is wrong, too", node_index=2, op="ADD"), "refused"),
        (NodeError("Node number 1 (ABS) is odd", node_index=1, op="ABS"), "fault"),
        (
            DelegateNodeError(
                "Node number 2 (x) is odd", node_index=2, op="x", delegate="x", phase="prepare"
            ),
            "fault",
        ),
    ],
)
def test_either_of_two_ill_formed_nodes_may_be_named(
    monkeypatch: pytest.MonkeyPatch, error: Exception, outcome: str
) -> None:
    monkeypatch.setattr(hosts, "open_ours", raising(FIRST))
    monkeypatch.setattr(hosts, "open_by_default", raising(error))
    case = operator_case("ABS", [fed(np.ones(1, np.float32))], ["FLOAT32"])
    compared = Comparison("x", by_default=True, promised=Capabilities())
    ending = compared.judge(SweepCase("ABS", case.model(), case.steps))
    assert ending.outcome == outcome
