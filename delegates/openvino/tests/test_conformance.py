"""Delegraph's conformance kit, on everything that the delegate claims."""

from __future__ import annotations

import pytest

from delegraph.testing import DelegateConformance

pytest.importorskip("openvino", reason="OpenVINO is not installed; `make test-engines` has it")


class TestFloats(DelegateConformance):
    """What is taken unless an option says otherwise."""

    delegate = "openvino"
    examples = 15


class TestQuantized(DelegateConformance):
    """With 8-bit operators, within the tolerance that is declared."""

    delegate = "openvino:quantized=true"
    examples = 15
