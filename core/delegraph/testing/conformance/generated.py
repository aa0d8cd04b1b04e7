"""Generates models by Hypothesis: chains and graphs of operators that a delegate claims.

The models are made of bricks: models of one operator that the delegate takes and computes rightly.
Sometimes an operator that the delegate does not claim is put between two bricks, so that there are
several partitions. Some inner tensors are also graph outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import SkipTest

import numpy as np
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from delegraph.delegation.partition_tolerance import ComputedNode
from delegraph.errors import DelegraphError
from delegraph.operators.tensor import Tensor
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import TensorType
from delegraph.testing.conformance.differences import allowed_of, array_difference
from delegraph.testing.conformance.features import features_of, forms_of
from delegraph.testing.conformance.kernel_observer import PATTERN, KernelWatch, WatchedDelegate
from delegraph.testing.conformance.operator_models import Brick, barrier_of, bricks, composed
from delegraph.testing.conformance.reproduction import rerun
from delegraph.testing.conformance.run_reports import suspect
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import (
    computed_nodes,
    described,
    open_interpreter,
)
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.outputs import outputs_of
from delegraph.tools.shrinking import shrunk

Array = NDArray[Any]

EXAMPLES = 60
"""Number of models that are drawn for each delegate."""

LONGEST = 8
"""Largest number of bricks in a model."""


def check_generated_models(subject: Subject, examples: int = EXAMPLES) -> int:
    """Generate up to *examples* models and compare results; return how many had claimed nodes.

    Raises:
        AssertionError: a result is wrong; the smallest model found is saved.
        SkipTest: there is no brick (one-operator model) to build from.
    """
    found = bricks(subject)
    if not found:
        raise SkipTest("there is no model with elements that the delegate takes and claims")
    failures: list[OperatorCase] = []
    taken = 0

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.lists(
            st.tuples(
                st.integers(0, len(found) - 1), st.integers(0, 255), st.booleans(), st.booleans()
            ),
            min_size=1,
            max_size=LONGEST,
        )
    )
    def compare(drawn: list[Brick]) -> None:
        nonlocal taken
        case = composed(found, drawn, barrier_of(subject))
        verdict = judged(subject, case)
        if verdict is None:
            reject()
        taken += 1
        if verdict:
            failures.append(case)
            raise AssertionError(verdict)

    try:
        compare()
    except AssertionError:
        if not failures:
            raise
        raise AssertionError(_message(subject, failures[-1])) from None
    return taken


def _message(subject: Subject, case: OperatorCase) -> str:
    small = shrunk(case, lambda simpler: bool(judged(subject, simpler)), subject.effort.tries)
    suspect(subject.name, judged, small, case)
    return (
        f"a generated model of {len(small.main.operators or ())} nodes comes out wrong: "
        f"{judged(subject, small)}" + rerun(subject, small, "generated")
    )


def judged(subject: Subject, case: OperatorCase) -> str | None:
    """Text about a fault in a delegate's result for the model of *case*; empty if it is right.

    The result is None if the model tests nothing: Delegraph cannot run it, some value is not
    finite, or the delegate claims none of its nodes.
    """
    try:
        right = _Right.of(subject, case)
    except DelegraphError:
        return None
    if right is None:
        return None
    try:
        watched = WatchedDelegate(subject.make(), KernelWatch(PATTERN))
        with open_interpreter(case, watched) as interpreter:
            if not interpreter.placement.partitions:
                return None
            got = outputs_of(interpreter, case.steps[0])
    except DelegraphError as error:
        return f"{type(error).__name__}: {error}"
    return right.difference(got, subject)


@dataclass(frozen=True)
class _Right:
    """Right outputs of a model, by Delegraph's kernels, and the values that each node computed."""

    expected: Sequence[Array]
    types: tuple[TensorType, ...]
    computed: tuple[ComputedNode, ...]
    outputs: tuple[int, ...]

    @classmethod
    def of(cls, subject: Subject, case: OperatorCase) -> _Right | None:
        with open_interpreter(case, keep_everything=True) as interpreter:
            expected = outputs_of(interpreter, case.steps[0])
            graph = interpreter.session.subgraphs[0]
            if not (_is_claimed(subject, case, graph) and all(map(_is_finite, graph.tensors))):
                return None
            types = tuple(graph.tensors[i].type for i in graph.outputs)
            with described(case, graph) as main:
                computed = computed_nodes(case, graph, main)
                return cls(expected, types, computed, tuple(main.outputs))

    def difference(self, got: Sequence[Array], subject: Subject) -> str:
        """Return how the first wrong output in *got* differs from the right one, or no text."""
        allowed = allowed_of(self.computed, self.outputs, self.types, subject.capabilities)
        for i, type in enumerate(self.types):
            found = array_difference(got[i], self.expected[i], type, allowed[i])
            if found:
                return f"output {i}: {found}"
        return ""


def _is_claimed(subject: Subject, case: OperatorCase, right: Subgraph) -> bool:
    """Whether claims cover every node of *case* whose operator the delegate claims."""
    is_dynamic = right.has_dynamic_tensors
    with described(case, right) as graph:
        return all(
            subject.claims(
                forms_of(graph, [operator]),
                features_of(graph, [operator], case.steps, is_dynamic),
            )
            for operator in graph.operators
            if operator.name in subject.operators
        )


def _is_finite(tensor: Tensor) -> bool:
    is_float = tensor.type.name in ("FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16")
    return not is_float or tensor.data is None or bool(np.isfinite(tensor.data).all())
