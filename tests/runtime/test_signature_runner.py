"""Calling a model by names, as the official interpreter does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter

from delegraph import Interpreter
from delegraph.errors import ArgumentAttributeError, ArgumentError
from delegraph.operators import memory_limit
from delegraph.runtime.signature_runner import SignatureRunner
from delegraph.schema import tables
from delegraph.schema.options import SubOptions
from delegraph.schema.writer import write_model
from delegraph.testing import tensor
from delegraph.testing.one_op import one_op_records

MAP = tables.TensorMap
INTERPRETERS = pytest.mark.parametrize("interpreter", [Interpreter, OfficialInterpreter])


def difference(*keys: str) -> bytes:
    """Signatures *keys* of ``result = left - right``; both inputs may be of any length."""
    left, right, result = (tensor((1,), shape_signature=(-1,)) for _ in range(3))
    records = one_op_records("SUB", [left, right], [result], SubOptions())
    inputs = (MAP(name="right", tensor_index=1), MAP(name="left", tensor_index=0))
    outputs = (MAP(name="result", tensor_index=2), MAP(name="again", tensor_index=2))
    made = (tables.SignatureDef(signature_key=key, inputs=inputs, outputs=outputs) for key in keys)
    return write_model(records.replace(signature_defs=tuple(made)))


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@INTERPRETERS
def test_inputs_go_in_and_outputs_come_out_by_name(interpreter: Any) -> None:
    runner = interpreter(model_content=difference("run")).get_signature_runner()
    outputs = runner(left=floats(5, 6), right=floats(1, 2))
    assert list(outputs) == ["again", "result"]
    assert outputs["result"].tolist() == [4, 4]


@INTERPRETERS
def test_each_call_may_have_other_shapes_and_keeps_no_view(interpreter: Any) -> None:
    runner = interpreter(model_content=difference("run")).get_signature_runner("run")
    first = runner(left=floats(1, 2, 3), right=floats(1, 1, 1))["result"]
    second = runner(right=floats(2), left=floats(9))["result"]
    assert (first.tolist(), second.tolist()) == ([0, 1, 2], [7])


@INTERPRETERS
def test_details_are_by_name_and_of_the_present_shape(interpreter: Any) -> None:
    runner = interpreter(model_content=difference("run")).get_signature_runner()
    runner(left=floats(1, 2), right=floats(1, 1))
    inputs, outputs = runner.get_input_details(), runner.get_output_details()
    assert {name: detail["index"] for name, detail in inputs.items()} == {"left": 0, "right": 1}
    assert {name: detail["index"] for name, detail in outputs.items()} == {"again": 2, "result": 2}
    assert inputs["left"]["shape"].tolist() == [2]


@INTERPRETERS
@pytest.mark.parametrize(
    "values",
    [
        {"left": floats(1)},
        {"left": floats(1), "right": floats(1), "more": floats(1)},
        {"left": floats(1), "wrong": floats(1)},
        {"left": floats(1), "right": np.ones(1)},
    ],
    ids=["too few", "too many", "unknown", "another type"],
)
def test_values_that_do_not_fit_are_value_errors(
    interpreter: Any, values: dict[str, np.ndarray]
) -> None:
    runner = interpreter(model_content=difference("run")).get_signature_runner()
    with pytest.raises(ValueError, match=r"expected|Invalid Input name"):
        runner(**values)


@INTERPRETERS
@pytest.mark.parametrize(
    ("keys", "asked"), [((), None), (("one", "two"), None), (("one",), "two"), ((), "one")]
)
def test_a_key_is_needed_unless_there_is_one_signature(
    interpreter: Any, keys: tuple[str, ...], asked: str | None
) -> None:
    made = interpreter(model_content=difference(*keys))
    with pytest.raises(ValueError, match=r"[Ss]ignature"):
        made.get_signature_runner(asked)


def test_mistakes_name_what_the_model_has() -> None:
    interpreter = Interpreter(model_content=difference("one", "two"))
    with pytest.raises(ArgumentError, match=r'"three"\. The model has: \'one\', \'two\''):
        interpreter.get_signature_runner("three")
    with pytest.raises(
        ArgumentError, match=r"\(wrong\) for SignatureDef; the inputs are: left, right"
    ):
        interpreter.get_signature_runner("one")(left=floats(1), wrong=floats(1))
    with pytest.raises(ArgumentError, match="value of type FLOAT64 but expected type FLOAT32"):
        interpreter.get_signature_runner("one")(left=floats(1), right=np.array([1.0]))
    for value in ([1.0], 1.0):
        with pytest.raises(ArgumentAttributeError, match="has no attribute 'shape': input 'right'"):
            interpreter.get_signature_runner("one")(left=floats(1), right=value)
    with pytest.raises(ArgumentError, match="The model has: none"):
        Interpreter(model_content=difference()).get_signature_runner("one")
    with pytest.raises(ArgumentError, match="None interpreter provided"):
        SignatureRunner(None, "one")
    with pytest.raises(ArgumentError, match="None signature_key provided"):
        SignatureRunner(interpreter, None)


@pytest.mark.parametrize(
    ("keys", "advice"), [("ab", "It has: 'a', 'b'"), ("", r"Call set_tensor\(\), invoke\(\) and")]
)
def test_a_signature_that_must_be_named_is_told(keys: str, advice: str) -> None:
    interpreter = Interpreter(model_content=difference(*keys))
    with pytest.raises(ArgumentError, match=rf"when the model has 1 SignatureDef\. {advice}"):
        interpreter.get_signature_runner()


def test_shapes_that_a_caller_passes_are_not_held_to_the_default_memory_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_limit, "LEAST", 100)
    content = difference("run")
    values = np.zeros(memory_limit.TIMES_FILE * len(content), np.float32)
    runner = Interpreter(model_content=content).get_signature_runner()
    assert runner(left=values, right=values)["result"].shape == values.shape


def test_it_prints_with_its_signature() -> None:
    runner = Interpreter(model_content=difference("minus")).get_signature_runner()
    assert repr(runner).startswith("<SignatureRunner 'minus' of <Interpreter of ")
