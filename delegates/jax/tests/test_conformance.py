"""Delegraph's conformance kit, on everything that the delegate claims."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import pytest

from control_flow_cases import control_flow_cases
from delegraph.testing import DelegateConformance, OperatorCase
from wide_cases import wide_cases

pytest.importorskip("jax", reason="JAX is not installed; `make test-engines` has it")


class TestJax(DelegateConformance):
    delegate = "jax"
    examples = 15

    def cases(self) -> Iterable[OperatorCase]:
        return chain(wide_cases(), control_flow_cases())
