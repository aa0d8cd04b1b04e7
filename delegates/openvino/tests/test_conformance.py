"""Delegraph's conformance kit, on everything that the delegate claims."""

from __future__ import annotations

import pytest

from delegraph.testing import DelegateConformance

pytest.importorskip("openvino", reason="OpenVINO is not installed; `make test-engines` has it")


class TestFloats(DelegateConformance):
    """The claims without options."""

    delegate = "openvino"
    examples = 15


class TestQuantized(DelegateConformance):
    """The claims with 8-bit operators, within the declared tolerance."""

    delegate = "openvino:quantized=true"
    examples = 15
