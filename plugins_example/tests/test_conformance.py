"""Delegraph's conformance kit, which tests everything that the delegates claim."""

from __future__ import annotations

from delegraph.testing import DelegateConformance


class TestSin(DelegateConformance):
    delegate = "sin"


class TestAddSub(DelegateConformance):
    delegate = "add_sub"
