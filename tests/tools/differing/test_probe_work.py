"""Outcomes of probes: right, or how far outputs are off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.tools.differing.probe_work import outcome_of


@pytest.mark.parametrize(("right", "kind"), [(1.4, "right"), (1.6, "differs")])
def test_integers_may_differ_from_floats_by_a_step(right: float, kind: str) -> None:
    halves: Any = {"scales": [0.5], "zero_points": [0], "quantized_dimension": 0}
    shared: Any = {"name": "y", "shape": np.int32([1])}
    entry = shared | {"dtype": np.int8, "quantization_parameters": halves}
    other = shared | {"dtype": np.float32, "quantization_parameters": {"scales": []}}
    test, reference = [(entry, np.int8([2]))], [(other, np.float32([right]))]
    assert outcome_of(test, reference, None).kind == kind
