"""The NumPy executor's operators against TensorFlow's."""

from __future__ import annotations

import importlib.util

import flex_cases
import pytest
from flex_comparison import difference

from delegraph_flex.numpy_executor.executor import NumpyExecutor

CASES = dict(flex_cases.all_cases())
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="TensorFlow is not installed")
@pytest.mark.parametrize("name", CASES)
def test_numpy_executor_gives_what_tensorflow_gives(name: str) -> None:
    from delegraph_flex.tensorflow_executor.executor import TensorFlowExecutor

    case = CASES[name]
    right = flex_cases.run(case, TensorFlowExecutor())
    for i, (got, expected) in enumerate(
        zip(flex_cases.run(case, NumpyExecutor()), right, strict=True)
    ):
        assert not difference(got, expected, case.tolerance), f"output {i}: " + difference(
            got, expected, case.tolerance
        )
