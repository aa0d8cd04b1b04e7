"""The NumPy executor's operators against TensorFlow's, live or as recorded."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import flex_cases
from delegraph import TensorType
from delegraph_flex.flex_node import Unsupported
from delegraph_flex.numpy_executor.executor import NumpyExecutor
from flex_comparison import difference
from recorded_results import NotRecorded, recorded

CASES = dict(flex_cases.all_cases())
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None


def tensorflows_results(name: str) -> list[NDArray[Any]]:
    if not HAS_TENSORFLOW:
        return recorded(name, CASES[name])
    from delegraph_flex.tensorflow_executor.executor import TensorFlowExecutor

    return flex_cases.run(CASES[name], TensorFlowExecutor())


@pytest.mark.repetition(500)  # a twentieth of them
@pytest.mark.parametrize("name", CASES)
def test_numpy_executor_gives_what_tensorflow_gives(name: str) -> None:
    case = CASES[name]
    if "Regex" in name:
        pytest.importorskip("re2")
    right = tensorflows_results(name)
    for i, (got, expected) in enumerate(
        zip(flex_cases.run(case, NumpyExecutor()), right, strict=True)
    ):
        words = difference(got, expected, case.tolerance)
        assert not words, f"output {i}: {words}"


def test_a_case_without_a_record_names_the_command() -> None:
    case = flex_cases.one("NoSuchOperator", np.zeros(3, np.float32))
    with pytest.raises(NotRecorded, match=r"has no results recorded: run make flex-record$"):
        recorded("gather.NoSuchOperator.0", case)


def test_a_changed_case_must_be_recorded_again() -> None:
    name = next(name for name in CASES if name.startswith("elementwise."))
    case = flex_cases.one("Sub", np.zeros(3, np.float32), np.ones(3, np.float32))
    with pytest.raises(NotRecorded, match="was changed since"):
        recorded(name, case)


def test_without_re2_a_node_of_regular_expressions_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    text, pattern = flex_cases.strings([b"a"]), flex_cases.strings(b"no other test has it")
    for case in (
        flex_cases.one("RegexReplace", text, pattern, pattern),
        flex_cases.one("StaticRegexReplace", text, pattern=pattern.item(), rewrite=b""),
        flex_cases.one("RegexFullMatch", text, pattern, out=TensorType.BOOL),
        flex_cases.one("StaticRegexFullMatch", text, pattern=pattern.item(), out=TensorType.BOOL),
    ):
        with pytest.raises(Unsupported, match="pip install google-re2"):
            flex_cases.run(case, NumpyExecutor())
