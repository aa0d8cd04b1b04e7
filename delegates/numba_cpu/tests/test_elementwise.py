"""Element-wise operators, quantization and softmax: against Delegraph's own kernels.

Integers are equal bit for bit; floats are within 1e-6, of themselves or of the largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import delegated
from delegated import LEVELS, levels, results, run
from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.schema import options as o
from delegraph.schema.enums import ActivationFunctionType
from delegraph.testing import TensorDef, cases, constant, fed, one_op_model, operator_case, tensor
from delegraph.testing.operator_case import OperatorCase, graph_case
from delegraph.testing.subgraphs import Graph, Op
from delegraph_numba_cpu.instructions.elementwise import (
    OPERATIONS,
    STEP_WORDS,
    Layout,
    Operation,
    Step,
)
from delegraph_numba_cpu.instructions.memory import Address
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import geometry

Array = NDArray[Any]


PAIRS = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
CURVES = (
    "LOGISTIC", "TANH", "ELU", "EXP", "LOG", "GELU", "HARD_SWISH", "SQRT", "RSQRT", "SIN", "COS",
)  # fmt: skip
ROUNDINGS = ("FLOOR", "CEIL", "ROUND", "ABS", "NEG", "SIGN", "SQUARE", "RELU", "RELU6")
OTHERS = ("LEAKY_RELU", "PRELU", "RELU_N1_TO_1", "RELU_0_TO_1", "SELECT", "SELECT_V2", "CAST")
COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
ROWS = ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")
OPS = (*PAIRS, *CURVES, *ROUNDINGS, *OTHERS, *COMPARISONS, *ROWS, "QUANTIZE", "DEQUANTIZE")

OPTIONS: dict[str, Any] = {
    "ADD": o.AddOptions(),
    "SUB": o.SubOptions(),
    "MUL": o.MulOptions(),
    "DIV": o.DivOptions(),
    "GELU": o.GeluOptions(),
    "SOFTMAX": o.SoftmaxOptions(beta=1.0),
}

SPECIAL = np.array(
    [
        np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1e-40, 1.2e-38, 1e-20, -1e-20, 1e-6,
        -1e-6, 0.3, 0.5, -0.5, 0.75, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, -3.0, 9.0, -9.0, 17.5, 87.0,
        88.5, 88.9, -87.4, -88.0, -95.0, -103.0, -104.0, -150.0, 8388607.5, -8388607.5, 1.7e7, 1e20,
        3e38, -3e38,
    ],
    np.float32,
)  # fmt: skip


class Watched(delegated.Watched):
    """The delegate, with the element-wise operations of its programs."""

    def operation_names(self) -> list[str]:
        """Names of what the steps of all chains do, in order."""
        names = {number: name for name, number in OPERATIONS.items()}
        return [names[operation] for operation in self.operations()]

    def operations(self) -> list[int]:
        """Return what the steps of all chains do, in order."""
        return [
            operation
            for row in self.rows
            if row.instruction.kernel == "chain"
            for operation in _operations(row.words["steps"], row.words["step_count"])
        ]


def _operations(steps: Address, count: int) -> Iterator[int]:
    words = steps.memory.array[: 8 * STEP_WORDS * count].view(np.int64).reshape(count, -1)
    return iter(words[:, Step.OPERATION].tolist())


def assert_same(found: Sequence[Array], expected: Sequence[Array]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        if theirs.dtype.kind != "f":
            np.testing.assert_array_equal(ours, theirs)
            continue
        finite = np.abs(theirs[np.isfinite(theirs)])
        largest = float(finite.max(initial=0))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * min(largest, 1.0))


def check(case: OperatorCase, level: str, **options: Any) -> Watched:
    """Check that all nodes are taken and results are the core's."""
    delegate = Watched(level, **options)
    expected, _ = results(case)
    found, taken = results(case, delegate)
    assert taken
    assert_same(found, expected)
    return delegate


@pytest.mark.repetition(2)
@levels
@pytest.mark.parametrize("op", OPS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of extreme values in the core's kernels
def test_registered_cases_come_out_as_from_the_core(op: str, level: str) -> None:
    taken = 0
    for case in cases(op, count=12):
        try:
            expected, _ = results(case)
        except (DelegraphError, ValueError, RuntimeError):
            continue
        found, is_whole = results(case, Watched(level))
        if is_whole:
            assert_same(found, expected)
            taken += 1
    assert taken


def floats(*shape: int, seed: int = 0, spread: float = 3.0) -> Array:
    return np.random.default_rng([seed, *shape]).normal(0, spread, shape).astype(np.float32)


def float_case(op: str, *operands: Array, options: Any = None) -> OperatorCase:
    chosen = OPTIONS.get(op) if options is None else options
    return operator_case(op, [fed(x) for x in operands], ["FLOAT32"], chosen)


def test_one_element_selected_has_the_shape_that_it_has_in_the_core() -> None:
    """The output keeps its shape where all inputs have one element, which resizes tell."""
    inputs = [constant(np.array([True])), tensor((1,), "INT32"), tensor((1,), "INT32")]
    model = one_op_model("SELECT_V2", inputs, [tensor((), "INT32")], o.SelectV2Options())
    shapes = []
    for delegates in ([], ["numba_cpu"]):
        interpreter = Interpreter(model_content=model, delegates=delegates)
        for length in (1, 8, 1):
            x = np.zeros(length, np.int32)
            shapes.append(run(interpreter, x, x).shape)
    assert shapes[:3] == shapes[3:] == [(), (8,), (1,)]


@levels
@pytest.mark.parametrize("op", [*CURVES, *ROUNDINGS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_come_out_as_from_the_core(op: str, level: str) -> None:
    expected, _ = results(float_case(op, SPECIAL))
    found, _ = results(float_case(op, SPECIAL), Watched(level))
    # The core's exponential overflows where ours, of the other sign, is denormal.
    smallest = 1.2e-38 if op == "LOGISTIC" else 1e-44
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found[0], expected[0], rtol=2e-6, atol=smallest)
    if op in ("ELU", "RELU"):  # -0 stays, as in LiteRT; NumPy's maximum of two zeros is either
        return
    zeros = (found[0] == 0) & (expected[0] == 0)
    np.testing.assert_array_equal(np.signbit(found[0])[zeros], np.signbit(expected[0])[zeros])


@levels
@pytest.mark.parametrize("op", PAIRS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pairs_of_special_values_come_out_as_from_the_core(op: str, level: str) -> None:
    a, b = (grid.copy() for grid in np.meshgrid(SPECIAL, SPECIAL))
    check(float_case(op, a, b), level)


@levels
@pytest.mark.parametrize("op", CURVES)
def test_curves_are_precise_everywhere(op: str, level: str) -> None:
    x = np.concatenate([np.linspace(-12, 12, 40_001), np.geomspace(1e-30, 80, 10_000)])
    if op in ("LOG", "SQRT", "RSQRT"):
        x = np.abs(x) + 1e-30
    expected, _ = results(float_case(op, x.astype(np.float32)))
    found, _ = results(float_case(op, x.astype(np.float32)), Watched(level))
    tolerance = 2e-7 * np.abs(expected[0]).max() if op == "GELU" else 1e-38  # it cancels
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6, atol=tolerance)


@levels
def test_any_number_of_elements_is_computed_and_no_more(level: str) -> None:
    for count in [*range(1, 70), 127, 128, 129, 1023, 1024, 1025, 2047, 5000]:
        delegate = check(float_case("TANH", floats(count)), level)
        assert delegate.operations() == [Operation.TANH]


@levels
@pytest.mark.parametrize(
    "shapes",
    [
        ((), (3, 4)),
        ((7,), (5, 7)),
        ((3,), (700, 3)),
        ((5, 1), (5, 300)),
        ((1, 5000), (3, 5000)),
        ((2, 1, 3), (2, 5, 3)),
        ((2, 1, 3, 1), (1, 4, 3, 5)),
        ((1, 2, 1, 2, 1, 2), (3, 2, 3, 2, 3, 2)),
        ((2, 1, 2, 1, 2), (1, 3, 1, 3, 1)),
        ((64, 1, 1, 24), (64, 8, 8, 24)),
        ((8, 8, 1), (8, 8, 24)),
    ],
)
def test_shapes_are_broadcast(shapes: tuple[tuple[int, ...], ...], level: str) -> None:
    for first, second in (shapes, shapes[::-1]):
        a, b = floats(*first), floats(*second, seed=1)
        check(float_case("SUB", a, b), level)
        check(operator_case("MUL", [fed(a), constant(b)], ["FLOAT32"], o.MulOptions()), level)


def test_repetitions_take_as_few_dimensions_as_possible() -> None:
    assert geometry((), (4, 5)).layout == Layout.PERIODIC
    assert geometry((1, 5), (4, 1, 5)).layout == Layout.PERIODIC
    assert geometry((4, 5), (4, 5)).layout == Layout.DIRECT
    assert geometry((4, 1, 5), (4, 3, 5)).strides == (5, 0, 1)
    assert geometry((1, 1), (1, 1)).shape == (1,)


@levels
def test_activations_are_fused(level: str) -> None:
    for activation in ActivationFunctionType:
        options = o.AddOptions(fused_activation_function=activation)
        if activation.name in ("NONE", "RELU", "RELU6", "RELU_N1_TO_1"):
            check(float_case("ADD", floats(99), floats(99, seed=1), options=options), level)


REALISTIC = [(0.0473214, 0.0312717, 0.0711391), (0.0234871, 0.0192837, 0.0398172)]
NICE = [(0.3, 0.1, 0.2), (0.5, 0.25, 0.5), (0.0625, 0.0625, 0.125)]


def every_pair(type: str) -> tuple[Array, Array]:
    values = np.arange(256).astype(np.uint8).view(type.lower())
    return np.repeat(values, 256).reshape(256, 256), np.tile(values, 256).reshape(256, 256)


def pair_case(
    op: str, type: str, scales: Sequence[float], a: Array, b: Array, options: Any = None
) -> OperatorCase:
    zero = 0 if type == "INT8" else 128
    inputs = [
        fed(a, type, scale=scales[0], zero_point=zero + 3),
        fed(b, type, scale=scales[1], zero_point=zero - 7),
    ]
    output = tensor((), type, scale=scales[2], zero_point=zero + 1)
    return operator_case(op, inputs, [output], options or OPTIONS.get(op), version=2)


@levels
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_every_pair_of_bytes_comes_out_as_from_the_core(op: str, type: str, level: str) -> None:
    for scales in [*REALISTIC, *NICE]:
        check(pair_case(op, type, scales, *every_pair(type)), level)


def test_formulas_are_found_for_scales_as_training_gives_them() -> None:
    wanted = {"ADD": Operation.NEAREST_SUM_OF_INT8, "SUB": Operation.NEAREST_SUM_OF_INT8}
    for op, operation in wanted.items():
        for scales in REALISTIC:
            delegate = check(pair_case(op, "INT8", scales, *every_pair("INT8")), LEVELS[0])
            assert delegate.operations() == [operation]


def test_halves_away_from_zero_come_from_a_truncation() -> None:
    delegate = check(pair_case("ADD", "INT8", NICE[1], *every_pair("INT8")), LEVELS[0])
    assert delegate.operations() == [Operation.SUM_OF_INT8]


def test_results_halfway_between_integers_come_from_a_table() -> None:
    delegate = check(pair_case("ADD", "INT8", NICE[0], *every_pair("INT8")), LEVELS[0])
    assert delegate.operations() == [Operation.LOOKUP_PAIR]


@levels
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
@pytest.mark.parametrize("op", ["ADD", "MUL"])
def test_what_official_vector_loops_leave_over_is_rounded_as_there(
    op: str, type: str, level: str
) -> None:
    a, b = every_pair(type)
    for columns in (5, 23, 250):  # of 256
        for scales in NICE:
            part = slice(0, columns)
            check(pair_case(op, type, scales, a[:, part], b[:, part]), level)
            check(pair_case(op, type, scales, a[:, :1], b[:, part]), level)


@levels
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
@pytest.mark.parametrize("op", ["LOGISTIC", "TANH", "HARD_SWISH", "RELU6", "GELU"])
def test_every_byte_comes_out_as_from_the_core(op: str, type: str, level: str) -> None:
    zero = 0 if type == "INT8" else 128
    values = np.arange(256).astype(np.uint8).view(type.lower())
    scale, offset = (1 / 256, zero - 128) if op == "LOGISTIC" else (1 / 128, zero)
    case = operator_case(
        op,
        [fed(np.resize(values, 300), type, scale=0.03, zero_point=zero + 5)],
        [tensor((), type, scale=scale, zero_point=offset)],
        OPTIONS.get(op),
        version=2 if op in ("LOGISTIC", "TANH", "RELU6", "GELU") else 1,
    )
    delegate = check(case, level)
    assert delegate.operations() == [Operation.LOOKUP]


@levels
def test_divisors_that_may_be_zero_are_refused(level: str) -> None:
    a, b = np.arange(8, dtype=np.int8), np.full(8, 3, np.int8)
    case = pair_case("DIV", "INT8", NICE[0], a, b)
    _, is_taken = results(case, Watched(level))
    assert not is_taken
    divisor = constant(b, scale=0.3, zero_point=1)
    inputs = [fed(a, scale=0.2, zero_point=0), divisor]
    output = tensor((), "INT8", scale=0.1, zero_point=2)
    check(operator_case("DIV", inputs, [output], o.DivOptions(), version=2), level)


@levels
def test_chains_are_one_pass_over_memory(level: str) -> None:
    shape = (3, 7, 11)
    x, y = tensor(shape), tensor(shape)
    a, b, c, d = (tensor(shape) for _ in range(4))
    ops = [
        Op("ADD", [x, constant(np.float32(3))], [a], o.AddOptions()),
        Op("RELU6", [a], [b]),
        Op("MUL", [x, b], [c], o.MulOptions()),
        Op("LOGISTIC", [c], [d]),
        Op("SUB", [constant(floats(11)), d], [y], o.SubOptions()),
    ]
    delegate = check(graph_case("ADD", [Graph([x], [y], ops)], [floats(*shape)]), level)
    assert len(delegate.kernels) == len(delegate.rows) == 1
    assert delegate.operation_names() == ["ADD", "CLAMP", "MUL", "LOGISTIC", "SUB"]


@levels
def test_values_that_others_read_are_stored(level: str) -> None:
    shape = (50,)
    x, a, b, c, y = (tensor(shape) for _ in range(5))
    ops = [Op("EXP", [x], [a]), Op("TANH", [a], [b]), Op("NEG", [a], [c])]
    ops.append(Op("MUL", [b, c], [y], o.MulOptions()))
    check(graph_case("MUL", [Graph([x], [y, b], ops)], [floats(50)]), level)


@levels
def test_a_chain_that_grows_by_broadcasting_is_right(level: str) -> None:
    x, row, y = tensor((9,)), tensor((9,)), tensor((5, 9))
    ops = [Op("TANH", [x], [row]), Op("ADD", [row, constant(floats(5, 1))], [y], o.AddOptions())]
    check(graph_case("ADD", [Graph([x], [y], ops)], [floats(9)]), level)


@levels
def test_long_chains_are_split(level: str) -> None:
    tensors: list[TensorDef] = [tensor((33,)) for _ in range(41)]
    ops = [
        Op("ADD", [a, constant(floats(33, seed=i))], [b], o.AddOptions())
        for i, (a, b) in enumerate(pairwise(tensors))
    ]
    check(graph_case("ADD", [Graph([tensors[0]], [tensors[-1]], ops)], [floats(33)]), level)


@levels
@pytest.mark.parametrize("op", COMPARISONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_compare_as_in_the_core(op: str, level: str) -> None:
    a, b = (fed(grid.copy()) for grid in np.meshgrid(SPECIAL, SPECIAL))
    check(operator_case(op, [a, b], ["BOOL"]), level)
    wide = np.array([-(2**63), -(2**32), -1, 0, 1, 2**32, 2**63 - 1])
    for type in ("int32", "int64"):
        a, b = (fed(grid.astype(type)) for grid in np.meshgrid(wide, wide))
        check(operator_case(op, [a, b], ["BOOL"]), level)


@levels
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_integers_wrap_and_are_limited_afterwards(op: str, level: str) -> None:
    values = np.array([-(2**31), -(2**30), -5, -1, 0, 1, 3, 7, 2**30, 2**31 - 1], np.int32)
    a, b = (fed(grid.copy()) for grid in np.meshgrid(values, values))
    for activation in ("NONE", "RELU", "RELU6", "RELU_N1_TO_1"):
        options = type(OPTIONS[op])(fused_activation_function=ActivationFunctionType[activation])
        check(operator_case(op, [a, b], ["INT32"], options), level)


@levels
@pytest.mark.parametrize("target", ["INT32", "INT8", "UINT8", "BOOL"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floats_saturate_when_they_become_integers(target: str, level: str) -> None:
    x = np.concatenate([SPECIAL, np.float32([2**31, 2147483520, -(2**31), 127.9, 255.9, -128.9])])
    check(operator_case("CAST", [fed(x)], [target], o.CastOptions()), level)


@levels
@pytest.mark.parametrize("type", ["FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64"])
def test_a_cast_to_the_same_type_changes_no_bit(type: str, level: str) -> None:
    values = np.frombuffer(SPECIAL.tobytes(), type.lower())
    check(operator_case("CAST", [fed(values)], [type], o.CastOptions()), level)


@levels
@pytest.mark.parametrize("op", ROWS)
@pytest.mark.parametrize("length", [1, 2, 10, 16, 31, 64, 65, 1001])
def test_rows_of_any_length_are_normalised(op: str, length: int, level: str) -> None:
    check(float_case(op, floats(7, length)), level)


@levels
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_with_special_values_come_out_as_from_the_core(level: str) -> None:
    x = floats(6, 37)
    x[0, 3], x[1, 4], x[2, 5], x[3] = np.nan, np.inf, -np.inf, -np.inf
    x[4] = 0
    for op in ROWS:
        check(float_case(op, x), level)


@levels
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
def test_softmax_of_bytes_adds_up_in_the_official_order(type: str, level: str) -> None:
    q = np.random.default_rng(5).integers(0, 256, (9, 333)).astype(np.uint8).view(type.lower())
    zero = -128 if type == "INT8" else 0
    case = operator_case(
        "SOFTMAX",
        [fed(q, type, scale=0.04, zero_point=7)],
        [tensor((), type, scale=1 / 256, zero_point=zero)],
        o.SoftmaxOptions(beta=1.0),
        version=2,
    )
    check(case, level)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("beta", [math.inf, -math.inf, math.nan, -1e30, -20.0, 0.0, 1e30])
@pytest.mark.parametrize(("type", "zero"), [("INT8", -128), ("UINT8", 0)])
def test_softmax_of_bytes_with_odd_betas_is_as_by_the_core(
    type: str, zero: int, beta: float
) -> None:
    q = np.arange(7, 47, dtype=np.int8).reshape(4, 10).view(type.lower())
    output = tensor((), type, scale=1 / 256, zero_point=zero)
    options = o.SoftmaxOptions(beta=beta)
    case = operator_case("SOFTMAX", [fed(q, type, scale=0.5)], [output], options, version=2)
    found, is_taken = results(case, Watched(LEVELS[0]))
    np.testing.assert_array_equal(found, results(case)[0])
    assert is_taken == (math.isfinite(beta) and beta >= 0)


@levels
def test_inexact_results_are_within_one_unit(level: str) -> None:
    for op in ("ADD", "MUL"):
        case = pair_case(op, "INT8", NICE[0], *every_pair("INT8"))
        expected, _ = results(case)
        delegate = Watched(level, exact=False)
        found, _ = results(case, delegate)
        assert np.abs(found[0].astype(int) - expected[0]).max() <= 1
        assert math.prod(found[0].shape) == 65536
        assert delegate.operations()[0] in (
            Operation.NEAREST_SUM_OF_INT8,
            Operation.PRODUCT_OF_INT8,
        )


@levels
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("scale", [1e2, 1e3])
def test_products_too_large_for_integers_come_from_a_table(
    scale: float, exact: bool, level: str
) -> None:
    case = pair_case("MUL", "INT8", (scale, scale, 1e-3), *every_pair("INT8"))
    assert check(case, level, exact=exact).operations() == [Operation.LOOKUP_PAIR]
