"""The delegate where nobody names it: what the core refuses is refused in the core's words."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pytest

from delegated import run
from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.schema.options import AddOptions, GatherOptions, MulOptions, ReshapeOptions
from delegraph.testing import constant, graph_model, tensor

X = np.arange(4, dtype=np.float32)


def _positions(*values: int) -> Any:
    return np.array(values, np.int32)


GATHERED = graph_model(
    [("ADD", "x x", "t", AddOptions()), ("GATHER", "t i", "y", GatherOptions())],
    inputs="x i",
    outputs="y",
    tensors={"x": tensor((4,)), "i": tensor((2,), "INT32")},
)
ADDED = graph_model(
    [("ADD", "x ones", "t", AddOptions()), ("MUL", "t t", "y", MulOptions())],
    inputs="x",
    outputs="y",
    tensors={"x": tensor((4,)), "ones": constant(np.ones(4, np.float32))},
)
RESHAPED = graph_model(
    [
        ("ADD", "x x", "t", AddOptions()),
        ("RESHAPE", "t shape", "r", ReshapeOptions()),
        ("MUL", "r r", "y", MulOptions()),
    ],
    inputs="x shape",
    outputs="y",
    tensors={"x": tensor((4,)), "shape": tensor((2,), "INT32")},
)

CASES = {
    "a position outside": (
        GATHERED,
        [(X, _positions(0, 1)), (X, _positions(1, 9)), (X, _positions(3, 3))],
    ),
    "a shape that does not fit": (ADDED, [(X,), (X[:3],), (X,)]),
    "a shape that does not fit while invoking": (
        RESHAPED,
        [(X, _positions(2, 2)), (X, _positions(3, 2)), (X, _positions(4, 1))],
    ),
}


@pytest.mark.parametrize(("model", "runs"), CASES.values(), ids=CASES)
def test_what_the_core_refuses_is_refused_in_its_words(
    model: bytes, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    core = Interpreter(model_content=model, delegates=[])
    monkeypatch.delitem(os.environ, "DELEGRAPH_DEFAULT_DELEGATES")
    interpreter = Interpreter(model_content=model)
    if interpreter.placement.default_delegate is None:
        pytest.skip("no kernels are prebuilt, so that nothing is applied by default")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for arrays in runs:
            expected, found = _outcome(core, arrays), _outcome(interpreter, arrays)
            np.testing.assert_array_equal(found, expected)
    assert interpreter.incidents == ()
    assert interpreter.placement.partitions


def _outcome(interpreter: Interpreter, arrays: Any) -> Any:
    """Return the result, or what the error says."""
    try:
        return run(interpreter, *arrays)
    except DelegraphError as error:
        cause = error.__cause__
        return [type(error).__name__, str(error), type(cause).__name__]


def test_only_what_looks_at_positions_may_fail_halfway() -> None:
    """So that other runs need no copies of variables."""
    for model, may_fail in ((ADDED, False), (GATHERED, True)):
        interpreter = Interpreter(model_content=model, delegates=["numba_cpu"])
        interpreter.allocate_tensors()
        [(node, _)] = interpreter.session.subgraphs[0].plan.steps()
        assert node.user_data.may_fail_halfway() is may_fail
