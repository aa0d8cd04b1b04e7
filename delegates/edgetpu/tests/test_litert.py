"""Compiled models in the official interpreter, by way of Delegraph's bridge."""

from __future__ import annotations

import numpy as np
import pytest

from compiled_models import compiled, convolution, random_inputs
from delegraph import Interpreter
from delegraph.testing import cases
from delegraph.testing.outputs import outputs_of

litert = pytest.importorskip("ai_edge_litert.interpreter")
native = pytest.importorskip("delegraph.native")


@pytest.mark.parametrize("via", ["", "numba_cpu"])
def test_the_official_interpreter_runs_what_was_compiled(via: str) -> None:
    if via:
        pytest.importorskip("delegraph_numba_cpu")
    model = convolution()
    content = compiled(model)
    delegate = native.litert_delegate("edgetpu", {"via": via}, model=content)
    interpreter = litert.Interpreter(model_content=content, experimental_delegates=[delegate])
    plain = Interpreter(model_content=model)
    for seed in range(3):
        inputs = random_inputs(model, seed)
        np.testing.assert_array_equal(outputs_of(interpreter, inputs), outputs_of(plain, inputs))


def test_state_goes_on_in_the_official_interpreter() -> None:
    case = next(
        case
        for case in cases("UNIDIRECTIONAL_SEQUENCE_LSTM", count=40)
        if case.types()[0] == "INT8" and len(case.steps) > 1
    )
    content = compiled(case.model())
    delegate = native.litert_delegate("edgetpu", model=content)
    interpreter = litert.Interpreter(model_content=content, experimental_delegates=[delegate])
    plain = Interpreter(model_content=case.model())
    for step in case.steps:
        np.testing.assert_array_equal(
            outputs_of(interpreter, list(step)), outputs_of(plain, list(step))
        )
