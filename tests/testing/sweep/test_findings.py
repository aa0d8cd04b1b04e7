"""Findings: which faulty cases count as one."""

from __future__ import annotations

import pytest

from delegraph.testing.one_op import one_op_model, tensor
from delegraph.testing.sweep.findings import Finding
from delegraph.testing.sweep.judging import Fault
from delegraph.testing.sweep.sweep_case import SweepCase


def finding(op: str, kind: str, detail: str) -> Finding:
    content = one_op_model(op, [tensor((1,))], [tensor((1,))])
    return Finding(SweepCase(op, content), Fault(kind, detail, "mine.py:42 in eval"))


@pytest.mark.parametrize(
    ("kind", "detail", "other", "are_equal"),
    [
        ("exception", "KeyError: tensors 3", "KeyError: tensor 12", True),
        ("exception", "KeyError: INT8", "KeyError: INT16", False),
        ("crash", "the process ended with SIGSEGV", "the process ended with SIGSEGV", False),
    ],
)
def test_errors_at_one_line_are_one_finding_and_crashes_are_not(
    kind: str, detail: str, other: str, are_equal: bool
) -> None:
    one, another = finding("RELU", kind, detail), finding("TANH", kind, other)
    assert (one.signature == another.signature) == are_equal
