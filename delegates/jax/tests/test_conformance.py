"""Delegraph's conformance kit, on everything that the delegate claims."""

from __future__ import annotations

import pytest

from delegraph.testing import DelegateConformance

pytest.importorskip("jax", reason="JAX is not installed; `make test-engines` has it")


class TestJax(DelegateConformance):
    delegate = "jax"
    examples = 15
