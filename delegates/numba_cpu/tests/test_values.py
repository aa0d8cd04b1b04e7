"""Extreme values through every operator, beside Delegraph's own kernels: the same answers.

Integers are the same bit for bit, floats are NaN and infinite where the core's are; what the core
refuses while it runs, a model with the delegate refuses. New operators are swept without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.errors import DelegraphError
from delegraph.testing.conformance.trials import all_answers, open_interpreter, trial_of
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.operator_cases import cases
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.operators import OPERATORS
from delegraph_numba_cpu.options import NumbaCpuOptions

Array = NDArray[Any]

CASES = 2

FLOAT_KINDS = "fV"
"""Of NumPy's types; V is bfloat16's."""

ADDING = (
    "AVERAGE_POOL_2D", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "LSTM",
    "MEAN", "REDUCE_PROD", "SUM", "SVDF", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM",
)  # fmt: skip
"""Whether their sums or products of the largest floats are infinite depends on the order."""

WITHOUT_ORDER = ("ARG_MAX", "ARG_MIN", "MAX_POOL_2D", "QUANTIZE")
"""What they make of NaN: the official kernels give one answer here and another there."""

SMALLEST_NORMAL = 1.2e-38

LARGEST, TINY = np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal

FLOATS = {
    "NaN": [np.nan, 1.0, -2.0, 0.5],
    "infinities": [np.inf, 1.0, -np.inf, -2.0],
    "denormals": [TINY, -TINY, 1e-40, -0.0, 0.0],
    "extremes": [LARGEST, -LARGEST, 1.0, 1e-30],
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


def extreme_cases(op: str, kind: str) -> Iterator[OperatorCase]:
    """Yield cases of an operator that are fed extreme values, if their answers are defined."""
    ops = {"extremes": ADDING, "NaN": WITHOUT_ORDER}.get(kind, ())
    for case in cases(op, seed=2, count=CASES):
        kinds = {array.dtype.kind for step in case.steps for array in step}
        trial = trial_of(case)
        if trial is None or "O" in kinds or (op in ops and kinds & set(FLOAT_KINDS)):
            continue
        steps = tuple(
            tuple(extreme(array, kind, i + k) for k, array in enumerate(step))
            for i, step in enumerate(case.steps)
        )
        yield replace(trial.case, steps=steps)


def answer(case: OperatorCase, *delegates: NumbaCpuDelegate) -> tuple[tuple[Array, ...], ...] | str:
    """Return the outputs of each step; the word ``refused`` when it is refused."""
    with np.errstate(all="ignore"):
        try:
            with open_interpreter(case, *delegates) as interpreter:
                return all_answers(interpreter, case)
        except DelegraphError:
            return "refused"


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


@pytest.mark.parametrize("kind", sorted(FLOATS))
@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_extreme_values_have_the_answers_of_the_core(op: str, kind: str) -> None:
    for case in extreme_cases(op, kind):
        expected = answer(case)
        for threads in (1, 3):
            delegate = NumbaCpuDelegate(NumbaCpuOptions(num_threads=threads))
            found = answer(case, delegate)
            if isinstance(expected, str) or isinstance(found, str):
                assert found == expected, case
                continue
            for step, wanted in zip(found, expected, strict=True):
                for x, y in zip(step, wanted, strict=True):
                    assert_same(x, y, case.tolerance)
