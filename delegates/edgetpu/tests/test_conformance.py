"""Delegraph's conformance kit, on operators of the kit compiled one by one.

``edgetpu-custom-op`` is an operator like any other for the kit: the package registers a kernel for
it, with which the delegate is compared. Source models are no references for it, since they can be
resized; ``test_custom_op.py`` compares with those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec

import pytest

from compiled_models import addition, compiled_records, random_inputs
from delegraph.testing import DelegateConformance, OperatorCase, Subject, cases, trial_of
from delegraph.testing.conformance.composition import behind_a_reshape
from delegraph_edgetpu.custom_options import CUSTOM_OP
from delegraph_edgetpu.delegate import TYPES

OPERATORS = (
    "ADD",
    "AVERAGE_POOL_2D",
    "CONV_2D",
    "FULLY_CONNECTED",
    "LOGISTIC",
    "RESHAPE",
    "SPLIT",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
)
OF_EACH = 4


class TestEdgeTpu(DelegateConformance):
    """By Delegraph's kernels, bit for bit."""

    delegate = "edgetpu"
    examples = 15

    def cases(self) -> Iterable[OperatorCase]:
        return _all_cases()


class TestViaAnotherDelegate(TestEdgeTpu):
    """By another delegate, on another device."""

    delegate = "edgetpu:device=pci,via=numba_cpu"

    def subjects(self, config: pytest.Config) -> list[Subject]:
        return super().subjects(config) if find_spec("delegraph_numba_cpu") else []


@cache
def _all_cases() -> tuple[OperatorCase, ...]:
    found = [case for op in OPERATORS for case in _compiled_cases(op)]
    late = (behind_a_reshape(trial) for trial in map(trial_of, found[:2]) if trial)
    odd = [_with_shape(()), _with_shape((3, 0)), _with_shape((1, 1, 2, 3, 4))]
    return (*found, *odd, *(trial.case for trial in late if trial is not None))


def _compiled_cases(op: str) -> Iterator[OperatorCase]:
    """Yield a few cases of *op* in 8 bits, each compiled into one custom operator."""
    found = 0
    for trial in filter(None, map(trial_of, cases(op, count=40))):
        is_static = "dynamic-shapes" not in trial.features
        if is_static and trial.case.steps[0] and {"INT8", "UINT8"} & trial.types:
            made = OperatorCase(CUSTOM_OP, compiled_records(trial.case.model()), trial.case.steps)
            if trial_of(made) is not None and set(made.types()) <= set(TYPES):
                yield made
                found += 1
        if found == OF_EACH:
            return


def _with_shape(shape: tuple[int, ...]) -> OperatorCase:
    """Return the case of an addition."""
    model = addition(shape=shape)
    return OperatorCase(CUSTOM_OP, compiled_records(model), (tuple(random_inputs(model)),))
