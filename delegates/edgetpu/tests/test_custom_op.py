from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from compiled_models import DIGITS, addition, compiled, convolution, executable_of, random_inputs
from delegraph import Interpreter, Limits
from delegraph.errors import ArgumentError, NodeError, TimeLimitError
from delegraph.schema import read_model, write_model
from delegraph.schema.options import LessOptions, WhileOptions
from delegraph.testing import OperatorCase, cases, constant, one_op_model, subgraphs_model, tensor
from delegraph.testing.outputs import outputs_of
from delegraph_edgetpu import edgetpu_custom_op, statistics
from delegraph_edgetpu.custom_options import CUSTOM_OP, write_custom_options

MODELS = {
    "convolution": convolution(),
    "INT8 addition": addition(),
    "UINT8 addition": addition("UINT8"),
    "network": DIGITS.read_bytes(),
}


@pytest.fixture
def lstm() -> OperatorCase:
    """A quantised layer with state, and inputs of several steps."""
    return next(
        case
        for case in cases("UNIDIRECTIONAL_SEQUENCE_LSTM", count=40)
        if case.types()[0] == "INT8" and len(case.steps) > 1
    )


def refusal(content: bytes, **arguments: Any) -> str:
    """Return the error message when a model that cannot run is allocated."""
    interpreter = Interpreter(model_content=content, **arguments)
    with pytest.raises(NodeError) as error:
        interpreter.allocate_tensors()
    return str(error.value)


# -- results -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("via", ["", "numba_cpu", "numba_cpu:exact=true,num_threads=2"])
def test_outputs_are_those_of_the_uncompiled_model(name: str, via: str) -> None:
    if via:
        pytest.importorskip("delegraph_numba_cpu")
    model = MODELS[name]
    interpreter = Interpreter(
        model_content=compiled(model), custom_ops={CUSTOM_OP: edgetpu_custom_op(via=via)}
    )
    plain = Interpreter(model_content=model)
    for seed in range(3):
        inputs = random_inputs(model, seed)
        for found, expected in zip(
            outputs_of(interpreter, inputs), outputs_of(plain, inputs), strict=True
        ):
            np.testing.assert_array_equal(found, expected, strict=True)


def test_it_is_registered_where_the_package_is_installed() -> None:
    model = convolution()
    inputs = random_inputs(model)
    found = outputs_of(Interpreter(model_content=compiled(model)), inputs)
    np.testing.assert_array_equal(found, outputs_of(Interpreter(model_content=model), inputs))
    assert statistics()[0].inferences == 1


def test_a_registration_may_name_another_device() -> None:
    model = convolution()
    op = edgetpu_custom_op("pci")
    outputs_of(
        Interpreter(model_content=compiled(model), custom_ops={CUSTOM_OP: op}), random_inputs(model)
    )
    assert [each.inferences for each in statistics()] == [0, 1]


def test_a_registration_of_no_device_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no Edge TPU ':7'"):
        edgetpu_custom_op(":7")


def test_nothing_is_copied_on_the_way_in_or_out() -> None:
    model = convolution()
    interpreter = Interpreter(model_content=compiled(model))
    outputs_of(interpreter, random_inputs(model))
    outer = interpreter.session.subgraphs[0]
    inner = outer.plan.node(0)[0].user_data.interpreter.session.subgraphs[0]
    outside, inside = [*outer.inputs, *outer.outputs], [*inner.inputs, *inner.outputs]
    for mine, its in zip(outside, inside, strict=True):
        assert inner.tensors[its].data is outer.tensors[mine].data


@pytest.mark.parametrize("outputs", [(2, 0), (0, 2), (2, 2), (1, 1)])
def test_an_output_may_be_an_input_or_stand_there_twice(outputs: tuple[int, ...]) -> None:
    record = read_model(np.frombuffer(addition(), np.uint8))
    (subgraph,) = record.subgraphs or ()
    model = write_model(record.replace(subgraphs=(subgraph.replace(outputs=outputs),)))
    inputs = random_inputs(model)
    found = outputs_of(Interpreter(model_content=compiled(model)), inputs)
    expected = outputs_of(Interpreter(model_content=model), inputs)
    np.testing.assert_array_equal(found, expected)


def test_the_executable_gets_the_threads_of_the_interpreter() -> None:
    interpreter = Interpreter(model_content=compiled(convolution()), num_threads=3)
    interpreter.allocate_tensors()
    compiled_node = interpreter.session.subgraphs[0].plan.node(0)[0].user_data
    assert compiled_node.interpreter.session.options.num_threads == 3


def test_the_executable_rounds_as_the_interpreter_does() -> None:
    interpreter = Interpreter(model_content=compiled(convolution()), numerics="reference")
    interpreter.allocate_tensors()
    assert (
        interpreter.session.subgraphs[0].plan.node(0)[0].user_data.interpreter.numerics
        == "reference"
    )


# -- state -------------------------------------------------------------------------------------


def test_state_goes_on_from_invoke_to_invoke(lstm: OperatorCase) -> None:
    model = lstm.model()
    interpreter = Interpreter(model_content=compiled(model))
    plain = Interpreter(model_content=model)
    for step in lstm.steps:
        np.testing.assert_array_equal(
            outputs_of(interpreter, list(step)), outputs_of(plain, list(step))
        )


def test_reset_all_variables_resets_the_state_of_compiled_layers(lstm: OperatorCase) -> None:
    interpreter = Interpreter(model_content=compiled(lstm.model()))
    inputs = list(lstm.steps[0])
    first, second = (outputs_of(interpreter, inputs)[0] for _ in range(2))
    assert not np.array_equal(first, second)
    interpreter.reset_all_variables()
    np.testing.assert_array_equal(outputs_of(interpreter, inputs)[0], first)


def test_interpreters_do_not_share_state(lstm: OperatorCase) -> None:
    content, inputs = compiled(lstm.model()), list(lstm.steps[0])
    one, other = Interpreter(model_content=content), Interpreter(model_content=content)
    first = outputs_of(one, inputs)[0]
    np.testing.assert_array_equal(outputs_of(other, inputs)[0], first)


# -- refusals ----------------------------------------------------------------------------------


def test_a_resize_is_refused() -> None:
    interpreter = Interpreter(model_content=compiled(convolution()))
    interpreter.resize_tensor_input(0, [1, 9, 8, 3])
    with pytest.raises(NodeError, match=r"compiled as \[1, 8, 8, 3\].*resize the uncompiled model"):
        interpreter.allocate_tensors()


def test_after_a_resize_back_it_works_again() -> None:
    model = convolution()
    interpreter = Interpreter(model_content=compiled(model))
    expected = outputs_of(interpreter, random_inputs(model))
    interpreter.resize_tensor_input(0, [1, 9, 8, 3])
    with pytest.raises(NodeError):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [1, 8, 8, 3])
    np.testing.assert_array_equal(outputs_of(interpreter, random_inputs(model)), expected)


def test_an_executable_of_other_types_is_refused() -> None:
    options = write_custom_options(executable_of(addition("UINT8")))
    assert "was compiled as UINT8" in refusal(compiled(addition(), custom_options=options))


def test_an_executable_of_other_inputs_is_refused() -> None:
    options = write_custom_options(executable_of(convolution()))
    text = refusal(compiled(addition(), custom_options=options))
    assert "the node has 2 inputs, its executable expects 1" in text


def test_an_executable_without_the_state_is_refused(lstm: OperatorCase) -> None:
    shape = tuple(lstm.steps[0][0].shape)
    x, y = (tensor(shape, "INT8", scale=0.1) for _ in range(2))
    options = write_custom_options(executable_of(one_op_model("RELU", [x], [y])))
    text = refusal(compiled(lstm.model(), custom_options=options))
    assert "the executable has no state like the variable Tensor(" in text


GOOD = executable_of(addition())

DAMAGED = {
    "no options": (b"", "are empty, expected a FlexBuffer map"),
    "cut options": (write_custom_options(GOOD)[:-9], "truncated"),
    "a list": (bytes(flexbuffers.Dumps([1, 2])), "no FlexBuffer map"),
    "no executable": (bytes(flexbuffers.Dumps({"1": 0})), "have no key '4'"),
    "cut executable": (write_custom_options(GOOD[:-4096]), "bytes"),
    "a changed byte": (
        write_custom_options(GOOD[:100] + b"\xff" + GOOD[101:]),
        "bytes 64 to .* have the checksum",
    ),
    "another identifier": (
        write_custom_options(GOOD[:4] + b"TFL3" + GOOD[8:]),
        "byte 4 of the executable: identifier 'TFL3', expected 'DGE1'",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_an_error_that_says_what_and_where(name: str) -> None:
    options, expected = DAMAGED[name]
    text = refusal(compiled(addition(), custom_options=options))
    assert "Node number 0 (edgetpu-custom-op)" in text
    assert re.search(expected, text), text


@pytest.mark.repetition(1)
@pytest.mark.parametrize("delegates", [[], ["edgetpu"]])
def test_damage_anywhere_is_an_error_of_ours_or_harmless(delegates: list[str]) -> None:
    rng = random.Random(0)
    options, inputs = write_custom_options(GOOD), random_inputs(addition())
    refused = 0
    for i in range(150):
        damaged = bytearray(options[: rng.randrange(1, len(options))] if i % 3 == 0 else options)
        at = rng.choice([rng.randrange(120), rng.randrange(len(damaged)), len(damaged) - 9])
        damaged[at % len(damaged)] ^= rng.randrange(1, 256)
        content = compiled(addition(), custom_options=bytes(damaged))
        try:
            outputs_of(Interpreter(model_content=content, delegates=delegates), inputs)
        except NodeError:
            refused += 1
    assert refused > 100


def test_a_damaged_model_in_a_sound_executable_is_an_error() -> None:
    rng = random.Random(0)
    inputs, refused = random_inputs(addition()), 0
    for _ in range(100):
        model = bytearray(addition())
        model[rng.randrange(len(model))] ^= rng.randrange(1, 256)
        options = write_custom_options(executable_of(bytes(model)))
        content = compiled(addition(), custom_options=options)
        try:
            outputs_of(Interpreter(model_content=content), inputs)
        except NodeError:
            refused += 1
    assert refused > 30


def test_tensors_inside_an_executable_obey_the_interpreters_limit() -> None:
    text = refusal(compiled(DIGITS.read_bytes()), limits=Limits(memory=1000))
    assert "needs 1024 bytes, more than the limit of 1000 bytes" in text


@pytest.mark.parametrize("delegates", [[], ["edgetpu"]])
def test_a_loop_inside_an_executable_ends_when_the_time_of_the_call_is_up(
    delegates: list[str],
) -> None:
    """While x < 2: x = sin(x), from 1."""
    number, loop = tensor((1,)), WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    two = {"x": number, "two": constant(np.float32([2])), "less": tensor((1,), "BOOL")}
    endless = subgraphs_model(
        [
            ([("WHILE", "x", "y", loop)], "x", "y", {"x": number, "y": number}),
            ([("LESS", "x two", "less", LessOptions())], "x", "less", two),
            ([("SIN", "x", "y")], "x", "y", {"x": number, "y": number}),
        ]
    )
    content = compiled(endless)
    interpreter = Interpreter(model_content=content, delegates=delegates, limits=Limits(time=1))
    with pytest.raises(TimeLimitError):
        outputs_of(interpreter, [np.float32([1])])
