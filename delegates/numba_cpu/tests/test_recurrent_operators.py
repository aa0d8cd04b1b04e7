"""Layers with a state, and memory that several tensors share, against Delegraph's own kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import delegated, is_taken, levels
from delegraph import Interpreter
from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.options import SVDFOptions
from delegraph.testing import cases, constant, graph_model, tensor
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.outputs import outputs_of


def steps(case: OperatorCase, interpreter: Interpreter) -> list[NDArray[Any]]:
    """Return the outputs of all steps, and after the states were reset, of all steps again."""
    found = [array for step in case.steps for array in outputs_of(interpreter, step)]
    interpreter.reset_all_variables()
    return found + [array for step in case.steps for array in outputs_of(interpreter, step)]


def taken(op: str, level: str) -> Iterator[tuple[OperatorCase, Interpreter]]:
    for case in cases(op, count=12):
        interpreter = delegated(case.model(), level, num_threads=2)
        if is_taken(interpreter):
            yield case, interpreter


@levels
@pytest.mark.parametrize("op", ["SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"])
def test_states_go_on_until_they_are_reset(op: str, level: str) -> None:
    compared = 0
    for case, interpreter in taken(op, level):
        expected = steps(case, Interpreter(model_content=case.model()))
        for ours, theirs in zip(steps(case, interpreter), expected, strict=True):
            if ours.dtype.kind == "f":
                largest = np.abs(theirs).max(initial=0)
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * largest)
            else:
                np.testing.assert_array_equal(ours, theirs)
        compared += 1
    assert compared >= 10


def svdf_model(inputs: int = 4, window: int = 5) -> bytes:
    """Return a model that reads a state, before a layer moves it on, through two moves."""
    generator = np.random.default_rng(0)
    scale = {"scale": 0.05, "zero_point": 0}
    features = generator.integers(-100, 100, (6, inputs)).astype(np.int8)
    times = generator.integers(-100, 100, (6, window)).astype(np.int16)
    options = SVDFOptions(rank=2, fused_activation_function=ActivationFunctionType.RELU)
    return graph_model(
        [
            ("RESHAPE", "state wide", "before"),
            ("SVDF", "x features times - state", "y", options),
            ("TRANSPOSE", "before order", "seen"),
        ],
        inputs="x",
        outputs="seen y",
        tensors={
            "x": tensor((1, inputs), "INT8", **scale),
            "features": constant(features, **scale),
            "times": constant(times, **scale),
            "state": tensor((1, 6 * window), "INT16", **scale, is_variable=True),
            "before": tensor((6, window), "INT16", **scale),
            "seen": tensor((window, 6), "INT16", **scale),
            "y": tensor((1, 3), "INT8", scale=0.3 * inputs * window**0.5, zero_point=0),
            "wide": constant(np.array([6, window], np.int32)),
            "order": constant(np.array([1, 0], np.int32)),
        },
    )


def test_a_reshaped_state_is_that_before_the_layer_ran() -> None:
    ours, theirs = delegated(svdf_model(), "auto"), Interpreter(model_content=svdf_model())
    assert is_taken(ours)
    for value in (50, -70, 90):
        x = np.full((1, 4), value, np.int8)
        for found, expected in zip(outputs_of(ours, [x]), outputs_of(theirs, [x]), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("window", [1, 2, 8, 16, 17, 32, 35])
@pytest.mark.parametrize("inputs", [1, 16, 37])
@levels
def test_windows_of_any_length_move_on(level: str, inputs: int, window: int) -> None:
    model = svdf_model(inputs, window)
    ours, theirs = delegated(model, level, num_threads=2), Interpreter(model_content=model)
    assert is_taken(ours)
    generator, different = np.random.default_rng(window), set()
    for _ in range(5):
        x = generator.integers(-128, 128, (1, inputs)).astype(np.int8)
        for found, expected in zip(outputs_of(ours, [x]), outputs_of(theirs, [x]), strict=True):
            np.testing.assert_array_equal(found, expected)
        different |= set(found.ravel().tolist())
    assert len(different) > 3


@pytest.mark.parametrize("results", ["y", "a y", "a b y", "b"])
def test_reshaped_tensors_keep_their_values_inside_and_at_the_border(results: str) -> None:
    model = graph_model(
        [
            ("RESHAPE", "x long", "a"),
            ("RESHAPE", "a wide", "b"),
            ("TRANSPOSE", "b order", "c"),
            ("RESHAPE", "c long", "y"),
        ],
        inputs="x",
        outputs=results,
        tensors={
            "x": tensor((30, 40)),
            "a": tensor((1200,)),
            "b": tensor((40, 30)),
            "c": tensor((30, 40)),
            "y": tensor((1200,)),
            "long": constant(np.array([1200], np.int32)),
            "wide": constant(np.array([40, 30], np.int32)),
            "order": constant(np.array([1, 0], np.int32)),
        },
    )
    ours = delegated(model, "auto")
    for seed in (0, 1):
        x = np.random.default_rng(seed).standard_normal((30, 40)).astype(np.float32)
        wide = x.reshape(40, 30)
        values = {"a": x.reshape(-1), "b": wide, "y": wide.T.reshape(-1)}
        for found, name in zip(outputs_of(ours, [x]), results.split(), strict=True):
            np.testing.assert_array_equal(found, values[name])
