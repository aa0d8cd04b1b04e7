"""ADD, SUB, MUL of int16, whole quotients of int32, and sines, against Delegraph's own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import delegate, delegated, levels, results
from delegraph import Interpreter
from delegraph.errors import ModelError
from delegraph.schema import options as o
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.testing import constant, fed, operator_case, tensor
from delegraph.testing.operator_case import OperatorCase
from delegraph_numba_cpu.lowering.elementwise.elementwise_sin_cos import quarter_turns
from test_elementwise import Watched, check, float_case

OPTIONS: dict[str, Any] = {"ADD": o.AddOptions, "SUB": o.SubOptions, "MUL": o.MulOptions}

SCALES = [
    (1e-3, 1e-3, 2e-3),
    (3e-4, 0.02, 0.011),
    (1.0, 1e-7, 0.3),
    (0.5, 0.25, 1e-4),
    (1e-5, 2e-5, 30.0),
    (0.01, 0.01, 1e-9),
]
"""Of both operands and the output; the last ones give results that saturate, or are all zero."""


def operand(*shape: int, seed: int) -> NDArray[np.int16]:
    """Return values of the whole range, one in four of its ends."""
    generator = np.random.default_rng([seed, *shape])
    values = generator.integers(-32768, 32768, shape)
    ends = generator.choice([-32768, -1, 0, 1, 32767], shape)
    return np.where(generator.random(shape) < 0.25, ends, values).astype(np.int16)


def int16_case(
    op: str,
    a: NDArray[np.int16],
    b: NDArray[np.int16],
    scales: tuple[float, float, float],
    zero_points: tuple[int, int, int] = (0, 0, 0),
    **options: Any,
) -> OperatorCase:
    operands = [
        fed(x, scale=scale, zero_point=zero)
        for x, scale, zero in zip((a, b), scales, zero_points, strict=False)
    ]
    output = tensor((), "INT16", scale=scales[2], zero_point=zero_points[2])
    return operator_case(op, operands, [output], OPTIONS[op](**options), version=5)


@levels
@pytest.mark.parametrize("op", OPTIONS)
@pytest.mark.parametrize("scales", SCALES)
def test_any_scales(op: str, scales: tuple[float, float, float], level: str) -> None:
    for activation in (Act.NONE, Act.RELU):
        for size in (3000, 16, 7):
            a, b = operand(size, seed=0), operand(size, seed=1)
            check(int16_case(op, a, b, scales, fused_activation_function=activation), level)


def test_products_of_scales_too_far_apart_are_left_to_the_core() -> None:
    a, b = operand(9, seed=0), operand(9, seed=1)
    case = int16_case("MUL", a, b, (1.0, 1.0, 3e-31))
    (expected,), _ = results(case)
    (found,), is_taken = results(case, delegate())
    assert not is_taken
    np.testing.assert_array_equal(found, expected)


@levels
@pytest.mark.parametrize("op", OPTIONS)
@pytest.mark.parametrize("shapes", [((5, 1, 33), (7, 1)), ((1,), (40,)), ((2, 3, 17), (3, 17))])
def test_operands_of_different_shapes(op: str, shapes: Any, level: str) -> None:
    a, b = (operand(*shape, seed=i) for i, shape in enumerate(shapes))
    check(int16_case(op, a, b, (1e-3, 7e-4, 2e-3)), level)


@levels
def test_differences_may_have_zero_points(level: str) -> None:
    a, b = operand(500, seed=0), operand(500, seed=1)
    for zero_points in ((-32768, 32767, 5), (32767, -32768, -9), (1, 2, 3)):
        check(int16_case("SUB", a, b, (1e-3, 7e-4, 2e-3), zero_points), level)


@levels
@pytest.mark.parametrize("op", ["ADD", "SUB"])
@pytest.mark.parametrize("shifts", [(0, 3), (2, 0), (0, 0), (15, 0)])
def test_scales_that_are_powers_of_two(op: str, shifts: tuple[int, int], level: str) -> None:
    scales = 2.0 ** -(8 + shifts[0]), 2.0 ** -(8 + shifts[1]), 2.0**-8
    a, b = operand(3000, seed=0), operand(3000, seed=1)
    check(int16_case(op, a, b, scales, pot_scale_int16=True), level)


def test_threads_share_the_work() -> None:
    a, b = operand(70_003, seed=0), operand(70_003, seed=1)
    check(int16_case("ADD", a, b, (1e-3, 7e-4, 2e-3)), "auto", threads=3)


EDGES = [-(2**31), -(2**31) + 1, -(2**30), -7, -2, -1, 0, 1, 2, 7, 2**30, 2**31 - 2, 2**31 - 1]


@levels
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the quotient that 32 bits cannot hold
def test_whole_quotients_are_rounded_down(level: str) -> None:
    random = np.random.default_rng(0).integers(-(2**31), 2**31, 50)
    a, b = (np.array([*EDGES, *random], np.int32) for _ in range(2))
    divisors = constant(b[b != 0])
    check(operator_case("FLOOR_DIV", [fed(a[:, None].copy()), divisors], ["INT32"]), level)


def test_divisors_that_may_be_zero_are_refused() -> None:
    x = np.array([4, 5], np.int32)
    for divisor in (fed(x), constant(np.array([0, 3], np.int32))):
        case = operator_case("FLOOR_DIV", [fed(x), divisor], ["INT32"])
        assert delegated(case.model()).placement.nodes[0].delegate is None


@levels
@pytest.mark.parametrize(("op", "function"), [("SIN", np.sin), ("COS", np.cos)])
def test_sines_of_any_float_are_right_to_the_last_bit_but_one(
    op: str, function: Any, level: str
) -> None:
    sizes = np.concatenate([np.geomspace(1e-45, 3.4e38, 3000), np.arange(1, 3000) * (np.pi / 2)])
    x = np.concatenate([sizes, -sizes, np.linspace(-9, 9, 2000)]).astype(np.float32)
    (found,), is_taken = results(float_case(op, x), made := Watched(level))
    assert is_taken
    assert made.operation_names() == ["SINE"]
    np.testing.assert_allclose(found, function(x.astype(np.float64)), rtol=1.2e-7, atol=0)


@levels
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sines_of_what_is_no_number_are_none(level: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    for op in ("SIN", "COS"):
        (found,), _ = results(float_case(op, x), Watched(level))
        assert np.isnan(found[:3]).all()
        assert list(found[3:]) == ([0, 0] if op == "SIN" else [1, 1])
        assert np.signbit(found[4]) == (op == "SIN")


def test_multiples_of_quarter_turns_are_cut_to_few_bits() -> None:
    first, second, _ = quarter_turns()[:255].T
    mantissas = np.frexp(np.stack([first, second]))[0]
    np.testing.assert_array_equal(mantissas * 2.0**29 % 1, 0)
    np.testing.assert_array_equal(mantissas[0] * 2.0**27 % 1, 0)


@pytest.mark.parametrize("missing", [(0, 1, 2), (0,), (2,)], ids=str)
@pytest.mark.parametrize("op", OPTIONS)
def test_plain_integers_are_left_to_the_core(op: str, missing: tuple[int, ...]) -> None:
    a, b = operand(3, 40, seed=1), operand(3, 40, seed=2)
    scales: list[float | None] = [None if i in missing else 0.5 for i in range(3)]
    inputs = [fed(x, scale=scale) for x, scale in zip((a, b), scales, strict=False)]
    case = operator_case(op, inputs, [tensor((), "INT16", scale=scales[2])], OPTIONS[op]())
    answers = []
    for delegates in ([], [delegate()]):
        try:
            interpreter = Interpreter(model_content=case.model(), delegates=delegates)
            interpreter.allocate_tensors()
        except ModelError as error:
            answers.append(str(error))
            continue
        assert interpreter.placement.nodes[0].delegate is None
        for index, x in enumerate((a, b)):
            interpreter.set_tensor(index, x)
        interpreter.invoke()
        answers.append(interpreter.get_tensor(2).tolist())
    assert answers[0] == answers[1]
