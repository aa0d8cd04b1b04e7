"""Extreme values through every operator, beside Delegraph's own kernels: the same answers.

Integers are the same bit for bit, floats are NaN and infinite where the core's are; what the core
refuses while it runs, a model with the delegate refuses. New operators are swept without a word.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import delegate, levels
from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.graph import NUMPY_DTYPES
from delegraph.schema import options as o
from delegraph.schema.enums import TensorType
from delegraph.schema.tables import Buffer
from delegraph.testing import cases, constant, delegraph_outputs, fed, operator_case, tensor
from delegraph.testing.conformance.trials import Outputs, all_answers, open_interpreter, trials_of
from delegraph.testing.operator_case import OperatorCase
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.lowering import OPERATORS

Array = NDArray[Any]

CASES = int(os.environ.get("DELEGRAPH_SWEEP_CASES", "2"))
"""Of each operator; ``DELEGRAPH_SWEEP_CASES=50`` tries more than there is time for every day."""

THREADS = (1, 3)
"""Cases take them in turn."""

FLOAT_KINDS = "fV"
"""Of NumPy's types; V is bfloat16's."""

ADDING = (
    "AVERAGE_POOL_2D", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "LSTM",
    "MEAN", "REDUCE_PROD", "SUM", "SVDF", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM",
)  # fmt: skip
"""Whether their sums or products of the largest floats are infinite depends on the order."""

SMALLEST_NORMAL = 1.2e-38

LARGEST, TINY = np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal

FLOATS = {
    "NaN": [np.nan, 1.0, -2.0, 0.5],
    "infinities": [np.inf, 1.0, -np.inf, -2.0],
    "denormals": [TINY, -TINY, 1e-40, -0.0, 0.0],
    "extremes": [LARGEST, -LARGEST, 1.0, 1e-30],
}


ARG_OPTIONS = {
    "ARG_MAX": o.ArgMaxOptions(output_type=TensorType.INT32),
    "ARG_MIN": o.ArgMinOptions(output_type=TensorType.INT32),
}


def cycled(values: list[float], like: Array, first: int) -> Array:
    """Return an array of a shape and type, of values in turn."""
    order = (np.arange(like.size) + first) % len(values)
    with np.errstate(all="ignore"):
        return np.array(values)[order].astype(like.dtype).reshape(like.shape)


def extreme(like: Array, kind: str, first: int) -> Array:
    """Return an array of extreme values of a type."""
    if like.dtype.kind in FLOAT_KINDS:
        return cycled(FLOATS[kind], like, first)
    if like.dtype.kind not in "iu":
        return like
    limits = np.iinfo(like.dtype)
    values = [limits.max, limits.min, 0, 1, limits.max - 1, limits.min + 1]
    order = (np.arange(like.size) + first) % len(values)
    return np.array(values, like.dtype)[order].reshape(like.shape)


def extreme_cases(op: str, case: OperatorCase) -> dict[str, OperatorCase]:
    """Return a case fed with each kind of extreme values that has a defined answer."""
    dtypes = {array.dtype.kind for step in case.steps for array in step}
    if "O" in dtypes:
        return {}
    is_open = op in ADDING and not dtypes.isdisjoint(FLOAT_KINDS)
    return {
        kind: replace(case, steps=extreme_steps(case, kind))
        for kind in FLOATS
        if not (kind == "extremes" and is_open)
    }


def extreme_steps(case: OperatorCase, kind: str) -> tuple[tuple[Array, ...], ...]:
    """Return what a case is fed, made extreme."""
    return tuple(
        tuple(extreme(array, kind, i + k) for k, array in enumerate(step))
        for i, step in enumerate(case.steps)
    )


def extreme_constants(case: OperatorCase, kind: str) -> OperatorCase | None:
    """Return a case with a quarter of its float constants extreme; None when it has none."""
    records = case.records
    buffers, taken = list(records.buffers or ()), set[int]()
    for record in (records.subgraphs or ())[0].tensors or ():
        data = buffers[record.buffer].data
        if record.type is not TensorType.FLOAT32 or data is None or record.sparsity is not None:
            continue
        values = np.array(data).view(np.float32)
        values[::4] = cycled(FLOATS[kind], values[::4], len(taken))
        buffers[record.buffer] = Buffer(data=values.view(np.uint8))
        taken.add(record.buffer)
    return replace(case, records=records.replace(buffers=tuple(buffers))) if taken else None


def answer(interpreter: Interpreter, case: OperatorCase) -> Outputs | str:
    """Return the outputs of each step; the word ``refused`` when it is refused."""
    try:
        found = all_answers(interpreter, case)
    except DelegraphError:
        return "refused"
    interpreter.reset_all_variables()
    return found


def all_kinds(
    case: OperatorCase, kinds: Mapping[str, OperatorCase], *delegates: NumbaCpuDelegate
) -> dict[str, Outputs | str]:
    """Return the answers to each kind of values, one after the other by one interpreter."""
    with np.errstate(all="ignore"), open_interpreter(case, *delegates) as interpreter:
        return {kind: answer(interpreter, fed) for kind, fed in kinds.items()}


def assert_same(found: Array, expected: Array, tolerance: float) -> None:
    """Check values as the docstring of this module says."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind not in FLOAT_KINDS:
        np.testing.assert_array_equal(found, expected)
        return
    wide, wanted = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(wide), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(wide), np.isinf(wanted))
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(wide[~finite], wanted[~finite])
    near = tolerance * float(np.abs(wanted[finite]).max(initial=0)) + SMALLEST_NORMAL
    np.testing.assert_allclose(wide[finite], wanted[finite], rtol=0, atol=near)


def assert_same_answers(found: Outputs | str, expected: Outputs | str, tolerance: float) -> None:
    """Check the outputs of each step, or that both are refused."""
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    for step, wanted in zip(found, expected, strict=True):
        for x, y in zip(step, wanted, strict=True):
            assert_same(x, y, tolerance)


def assert_as_the_core(case: OperatorCase, *, tolerance: float = 0, **options: Any) -> None:
    """Check that the delegate answers a case as the core does."""
    given = delegate(**options)
    expected, found = (all_kinds(case, {"": case}, *by) for by in ((), (given,)))
    assert_same_answers(found[""], expected[""], tolerance)


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_extreme_values_have_the_answers_of_the_core(op: str) -> None:
    for i, trial in enumerate(trials_of(cases(op, seed=2, count=CASES))):
        case, kinds = trial.case, extreme_cases(op, trial.case)
        given = delegate(num_threads=THREADS[i % 2])
        expected, found = all_kinds(case, kinds), all_kinds(case, kinds, given)
        for kind in kinds:
            try:
                assert_same_answers(found[kind], expected[kind], case.tolerance)
            except AssertionError as error:
                raise AssertionError(f"{kind}, {given.options}, {case}") from error


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_extreme_constants_have_the_answers_of_the_core(op: str) -> None:
    for trial in trials_of(cases(op, seed=3, count=CASES)):
        for kind in FLOATS:
            case = extreme_constants(trial.case, kind)
            if case is None or (kind == "extremes" and op in ADDING):
                continue
            try:
                assert_as_the_core(case, tolerance=case.tolerance)
            except AssertionError as error:
                raise AssertionError(f"{kind}, {case}") from error


@pytest.mark.parametrize("length", [3, 70])
@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
def test_rows_with_nan_have_the_positions_of_the_core(op: str, length: int) -> None:
    x = np.full((4, length), np.nan, np.float32)
    x[1:, 1] = 1
    x[2, 0], x[2, 2:] = -np.inf, np.inf
    x[3, 2] = -2
    for axis, size in ((1, 4), (0, length)):
        given = [fed(x), constant(np.array([axis], np.int32))]
        case = operator_case(op, given, [tensor((size,), "INT32")], ARG_OPTIONS[op])
        assert_as_the_core(case)


@levels
@pytest.mark.parametrize("type", ["FLOAT32", "INT8", "UINT8"])
@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
def test_rows_of_any_length_have_the_positions_of_the_core(op: str, type: str, level: str) -> None:
    for length in (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 70):
        random = np.random.default_rng(length)
        extremes = [-np.inf, np.inf, -1, 0] if type == "FLOAT32" else [-128, 127, 0, 255]
        few = np.array(extremes).astype(NUMPY_DTYPES[TensorType[type]])
        x = np.concatenate([np.tile(few[:, None], length), random.choice(few, (30, length))])
        given = [fed(x, type), constant(np.array([1], np.int32))]
        case = operator_case(op, given, [tensor((len(x),), "INT32")], ARG_OPTIONS[op])
        assert_as_the_core(case, level=level)


@levels
@pytest.mark.parametrize("type", ["FLOAT32", "INT8", "UINT8"])
def test_pixels_of_any_width_are_resized_as_by_the_core(type: str, level: str) -> None:
    size, options = np.array([5, 11], np.int32), o.ResizeBilinearOptions(half_pixel_centers=True)
    for channels in (1, 2, 7, 8, 9, 15, 16, 17, 40):
        random = np.random.default_rng(channels)
        x = random.integers(0, 256, (2, 3, 4, channels)).astype(NUMPY_DTYPES[TensorType[type]])
        quantization = {} if type == "FLOAT32" else {"scale": 0.5, "zero_point": 3}
        y = tensor((2, 5, 11, channels), type, **quantization)
        given = [fed(x, type, **quantization), constant(size)]
        case = operator_case("RESIZE_BILINEAR", given, [y], options, version=3)
        assert_as_the_core(case, level=level, tolerance=1e-6 if type == "FLOAT32" else 0)


@levels
@pytest.mark.parametrize("channels", [7, 32, 70])
def test_the_largest_of_windows_with_nan_are_those_of_the_core(channels: int, level: str) -> None:
    random = np.random.default_rng(channels)
    x = random.choice(np.float32([np.nan, np.inf, -np.inf, 1, 2]), (2, 5, 5, channels))
    options = o.Pool2DOptions(stride_h=1, stride_w=1, filter_height=2, filter_width=2)
    case = operator_case("MAX_POOL_2D", [fed(x)], [tensor(x.shape)], options)
    assert_as_the_core(case, level=level)


@levels
@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
@pytest.mark.parametrize("length", [3, 16, 33, 70, 131])
def test_what_follows_the_last_nan_is_reduced(length: int, op: str, level: str) -> None:
    random = np.random.default_rng(length)
    few = np.float32([np.nan, *[np.inf, -np.inf, 1, 2, -3, 4, 0.5] * 5])
    layouts = [
        ((length,), [0]),
        ((4, length), [1]),
        ((length, 4), [0]),
        ((2, length, 3, 2), [1, 3]),
    ]
    for shape, axes in layouts:
        given = [fed(random.choice(few, shape)), constant(np.array(axes, np.int32))]
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        case = operator_case(op, given, [tensor(kept)], o.ReducerOptions(keep_dims=False))
        assert_as_the_core(case, level=level, num_threads=1)


@pytest.mark.parametrize("alpha", [np.nan, np.inf, -np.inf])
def test_alpha_does_not_matter_from_0_on(alpha: float) -> None:
    x = np.float32([2, 0, -3, np.inf, -np.inf, np.nan] * 6)
    given = [fed(x), constant(np.full(x.shape, alpha, np.float32))]
    case = operator_case("PRELU", given, [tensor(x.shape)])
    assert_as_the_core(case, num_threads=1)


@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
@pytest.mark.parametrize("type", ["FLOAT32", "INT8", "UINT8", "INT32"])
def test_the_extreme_of_nothing_is_that_of_the_core(type: str, op: str) -> None:
    scale = 0.5 if "8" in type else None
    x = fed(np.zeros((3, 0), type.lower()), scale=scale)
    given = [x, constant(np.array([1], np.int32))]
    case = operator_case(op, given, [tensor((3,), type, scale=scale)], o.ReducerOptions())
    assert_as_the_core(case, num_threads=1)


@pytest.mark.parametrize("given", [constant, fed])
@pytest.mark.parametrize("index", [-1, 4, 2**31 - 1, -(2**31)])
def test_an_index_out_of_range_is_refused_as_by_the_core(given: Any, index: int) -> None:
    x, where = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([0, index], np.int32)
    case = operator_case("GATHER", [fed(x), given(where)], [tensor((2, 3))], o.GatherOptions())
    arrays = list(case.steps[0])
    for delegates in ([], ["numba_cpu"]):
        with pytest.raises(DelegraphError, match=str(index)):
            delegraph_outputs(case.model(), arrays, delegates=delegates)


@pytest.mark.parametrize(("op", "scale"), [("DEQUANTIZE", -1.0), ("RELU", 3e38), ("GELU", 3e38)])
def test_odd_scales_end_as_in_the_core(op: str, scale: float) -> None:
    x = np.arange(-8, 8, dtype=np.int8)
    y = tensor((16,)) if op == "DEQUANTIZE" else tensor((16,), "INT8", scale=0.5)
    case = operator_case(op, [fed(x, scale=scale)], [y])
    messages = []
    for delegates in ([], ["numba_cpu"]):
        try:
            outputs = delegraph_outputs(case.model(), list(case.steps[0]), delegates=delegates)
            messages.append(str([z.tolist() for z in outputs]))
        except DelegraphError as error:
            messages.append(str(error))
    assert messages[0] == messages[1]
