"""LSTM layers: floats, floats with 8-bit weights, and integers, beside the core's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegated import Array, assert_near, delegate, delegated, levels, run
from delegraph import Interpreter, Rejection
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import UnidirectionalSequenceLSTMOptions
from delegraph.testing import cases, constant, operator_case, tensor
from delegraph.testing.operator_case import Fed, OperatorCase
from delegraph.testing.recurrent_layers import (
    IntegerLstm,
    Maybe,
    Weights,
    gates,
    lstm_weights,
    state,
)
from single_operator import Alone

KINDS = ["float", "hybrid", "int8"]
LAYER = "UNIDIRECTIONAL_SEQUENCE_LSTM"


def layer(
    kind: str,
    batch: int = 1,
    steps: int = 3,
    inputs: int = 5,
    cells: int = 6,
    outputs: int | None = None,
    *,
    replaced: dict[int, Maybe] | None = None,
    has_intermediates: bool = True,
    has_norm: bool = False,
    **options: Any,
) -> OperatorCase:
    """Return a layer with random weights; *replaced* has other tensors by the inputs' numbers."""
    given: dict[str, Any] = {"projection": outputs is not None, "peephole": has_norm}
    results = cells if outputs is None else outputs
    is_time_major = options.get("time_major", False)
    leading = (steps, batch) if is_time_major else (batch, steps)
    shape, integers = (*leading, inputs), IntegerLstm(0, batch, inputs, cells, results)
    table = UnidirectionalSequenceLSTMOptions(**{"fused_activation_function": Act.TANH, **options})
    if kind == "int8":
        x = Fed(integers.steps(shape)[0][0], integers.input(shape))
        rest, y = (
            integers.inputs(layer_norm=has_norm, **given),
            integers.output((*leading, results)),
        )
    else:
        weights = Weights(0, hybrid=kind == "hybrid")
        x = Fed(weights.inputs(shape)[0][0], tensor(shape))
        states = [state(batch, results), state(batch, cells)]
        rest = [*lstm_weights(weights, inputs, cells, results, **given), *states]
        rest += gates(lambda: weights.vector(cells), cifg=False) if has_norm else []
        y = tensor((*leading, results))
    every: list[Any] = [x, *rest]
    for i, other in (replaced or {}).items():
        every[i] = other
    between = integers.intermediates() if kind == "int8" and has_intermediates else []
    return operator_case(LAYER, every, [y], table, version=4, intermediates=between)


def delegated_case(case: OperatorCase, level: str = "auto", **options: Any) -> Interpreter:
    return delegated(case.model(), level, num_threads=2, **options)


def assert_same(found: Array, expected: Array) -> None:
    assert_near(found, expected, 1e-2)


def assert_agrees(case: OperatorCase, level: str = "auto") -> None:
    """Check two invokes, of which the second goes on from the states of the first."""
    ours, theirs = delegated_case(case, level), Interpreter(model_content=case.model())
    assert ours.placement.nodes[0].delegate == "numba_cpu"
    for _ in range(2):
        assert_same(run(ours, case.steps[0][0]), run(theirs, case.steps[0][0]))


@levels
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", [1, 16, 17, 80])
@pytest.mark.parametrize("inputs", [1, 63])
def test_layers_have_any_size(kind: str, level: str, cells: int, inputs: int) -> None:
    assert_agrees(layer(kind, inputs=inputs, cells=cells), level)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [None, 7, 70])
@pytest.mark.parametrize("is_time_major", [False, True])
def test_batches_of_sequences_have_states_of_their_own(
    kind: str, outputs: int | None, is_time_major: bool
) -> None:
    case = layer(kind, 3, 5, 9, 72, outputs, has_norm=True, time_major=is_time_major)
    assert_agrees(case)


@pytest.mark.parametrize("kind", KINDS)
def test_clips_bound_states(kind: str) -> None:
    assert_agrees(layer(kind, 2, 4, 6, 20, 10, cell_clip=0.25, proj_clip=0.1))


def test_a_clip_of_the_whole_range_leaves_out_the_lowest_value() -> None:
    bias = constant(np.full(6, -30_000_000, np.int32), scale=2e-4)
    case = layer("int8", replaced={14: bias}, steps=40, cell_clip=16.0)
    assert_agrees(case)


@levels
@pytest.mark.parametrize("op", ["LSTM", LAYER])
def test_every_layer_of_the_cases_is_taken_or_has_another_kernel(op: str, level: str) -> None:
    refused = set()
    for case in cases(op, count=8):
        rejection = delegated_case(case, level).placement.nodes[0].rejections.get("numba_cpu")
        if rejection is None:
            assert_agrees(case, level)
        else:
            refused.add(rejection.constraint)
    assert refused == {"scale", *(("operands", "dtype") if op == "LSTM" else ())}


@pytest.mark.parametrize("kind", KINDS)
def test_a_removed_delegate_leaves_its_states_to_the_core(kind: str) -> None:
    case = layer(kind, 2, 3, 8, 20)
    ours, theirs = delegated_case(case), Interpreter(model_content=case.model())
    x = case.steps[0][0]
    assert_same(run(ours, x), run(theirs, x))
    ours.remove_all_delegates()
    assert ours.placement.nodes[0].delegate is None
    assert_same(run(ours, x), run(theirs, x))


@pytest.mark.parametrize("kind", KINDS)
def test_states_start_over_when_they_are_reset(kind: str) -> None:
    case = layer(kind, 2, 3, 8, 20)
    ours = delegated_case(case)
    first = run(ours, case.steps[0][0])
    assert (run(ours, case.steps[0][0]) != first).any()
    ours.reset_all_variables()
    np.testing.assert_array_equal(run(ours, case.steps[0][0]), first)


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_may_become_longer(kind: str) -> None:
    case = layer(kind, 1, 3, 8, 20)
    ours, theirs = delegated_case(case), Interpreter(model_content=case.model())
    x = np.tile(case.steps[0][0], (1, 5, 1))
    assert_same(run(ours, x), run(theirs, x))


def matrix(*shape: int) -> Any:
    return constant(np.zeros(shape, np.int8), scale=0.01)


@pytest.mark.parametrize(
    ("kind", "replaced", "code"),
    [
        ("float", {2: tensor((6, 5))}, "computed-weights"),
        ("float", {19: tensor((1, 6))}, "state"),
        ("float", {2: matrix(6, 5)}, "dtype"),
        ("float", {1: constant(np.zeros((6, 0), np.float32))}, "weights-shape"),
        ("hybrid", {6: constant(np.zeros((6, 6), np.float32))}, "weights"),
        ("int8", {2: tensor((6, 5), "INT8", scale=0.01)}, "computed-weights"),
        ("int8", {18: tensor((1, 6), "INT8", scale=0.01)}, "state"),
        ("int8", {19: state(1, 6, type="INT16", scale=2.0**-16)}, "scale"),
    ],
)
def test_what_is_unusual_is_refused(kind: str, replaced: dict[int, Maybe], code: str) -> None:
    assert refusal(layer(kind, replaced=replaced)) == code


def test_a_normalised_gate_of_equal_rows_is_left_to_the_core() -> None:
    def equal(kind: str, columns: int, rows: int = 6) -> Any:
        values = np.full((rows, columns), 3, np.int8 if kind == "hybrid" else np.float32)
        return constant(values, scale=0.01 if kind == "hybrid" else None)

    for kind in ("float", "hybrid"):
        inputs, recurrent = {2: equal(kind, 5)}, {6: equal(kind, 6)}
        case = layer(kind, has_norm=True, replaced={**inputs, **recurrent})
        assert refusal(case) == "layer-norm"
        assert_agrees(layer(kind, has_norm=True, replaced={**inputs}))
        assert_agrees(layer(kind, has_norm=False, replaced={**inputs, **recurrent}))
        one_cell = {2: equal(kind, 5, 1), 6: equal(kind, 1, 1)}
        assert_agrees(layer(kind, cells=1, has_norm=True, replaced=one_cell))


def test_integers_without_scales_in_between_are_refused() -> None:
    assert refusal(layer("int8", has_intermediates=False)) == "operands"


@pytest.mark.parametrize("kind", ["float", "hybrid"])
def test_the_official_oddity_of_layers_without_activation_is_left_to_the_core(kind: str) -> None:
    assert refusal(layer(kind, fused_activation_function=Act.NONE)) == "activation"
    assert_agrees(layer(kind, fused_activation_function=Act.SIGN_BIT))


def refusal(case: OperatorCase) -> str:
    rejection = Alone(case).check()
    assert isinstance(rejection, Rejection)
    return str(rejection.constraint)


def test_reference_numerics_are_left_to_the_core() -> None:
    case = layer("int8")
    interpreter = Interpreter(
        model_content=case.model(),
        numerics="reference",
        experimental_delegates=[delegate()],
    )
    assert interpreter.placement.nodes[0].rejections["numba_cpu"].constraint == "numerics"


@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_rows_of_zeros_have_a_scale_of_their_own(is_asymmetric: bool) -> None:
    case = layer("hybrid", inputs=2, asymmetric_quantize_inputs=is_asymmetric)
    ours, theirs = delegated_case(case), Interpreter(model_content=case.model())
    x = np.array([[[0, 0], [1e-3, -5e-4], [70, 0]]], np.float32)
    assert_same(run(ours, x), run(theirs, x))
