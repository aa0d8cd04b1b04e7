"""Delegates whose results are compared with those of Delegraph's kernels now and then."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from delegraph import DelegateContext, FailurePolicy, Interpreter, Node
from delegraph.delegation.tolerance import Tolerance
from delegraph.schema.options import AddOptions
from delegraph.testing import constant, graph_model, tensor
from support.by_name import sines
from support.faulty_delegate import Faulty, off_by
from support.policy_models import STATEFUL, assert_same, delegated, floats, stepped, undelegated

SHADOW = FailurePolicy(on_failure="shadow")


def test_a_wrong_delegate_is_quarantined_at_the_first_invoke() -> None:
    delegate = Faulty(fault=off_by(0.1))
    interpreter, results = delegated("chain", delegate, failures=SHADOW)
    assert_same(results, undelegated("chain"))
    assert delegate.runs == 1
    (incident,) = interpreter.incidents
    assert incident.is_quarantined
    assert incident.count == 1
    assert "FLOAT32[4]" in incident.error
    assert "at [3], the largest of 1 differences in 4 elements" in incident.error


def test_results_within_the_tolerance_are_the_delegates() -> None:
    delegate = Faulty(fault=off_by(0.1), tolerance={"FLOAT32": Tolerance(absolute=0.2)})
    interpreter, results = delegated(
        "chain", delegate, failures=FailurePolicy(on_failure="shadow", shadow_share=1)
    )
    assert interpreter.incidents == ()
    assert delegate.runs == 7
    for a, b in zip(results, undelegated("chain"), strict=True):
        np.testing.assert_allclose(a - b, [0, 0, 0, 0.1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("nodes", "is_right"), [(1, False), (8, True)])
def test_several_nodes_may_be_as_far_off_as_their_errors_add_up(nodes: int, is_right: bool) -> None:
    """One element in 1,001 is near zero, and has the errors of the numbers it is left of."""
    names = [f"t{i}" for i in range(nodes + 1)]
    model = graph_model(
        [("NEG", a, b, None) for a, b in pairwise(names)],
        inputs="t0",
        outputs=names[-1],
        tensors={name: tensor((1001,)) for name in names},
    )
    delegate = Faulty(fault=off_by(3e-4))
    interpreter = Interpreter(model_content=model, delegates=[delegate], failures=SHADOW)
    interpreter.allocate_tensors()
    x = np.append(np.linspace(1, 2, 1000), 1e-3).astype(np.float32)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    assert [incident.is_quarantined for incident in interpreter.incidents] == [True] * (
        not is_right
    )


def test_quarantine_holds_for_all_partitions_and_every_allocation() -> None:
    delegate = Faulty("SIN", fault=off_by(0.1))
    interpreter, results = delegated("resized", delegate, failures=SHADOW)
    assert_same(results, undelegated("resized"))
    assert delegate.runs == 1
    assert delegate.preparations == 2  # of two partitions, and no more after the resize
    assert interpreter.incidents[0].count == 1


def test_nothing_is_asked_of_a_quarantined_delegate() -> None:
    class Keeping(Faulty):
        def copy_to_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
            raise AssertionError("asked")

    def keep(context: Any, node: Node, run: int) -> None:
        context.set_buffer_handle(context.tensors[node.outputs[0]], 1, node.delegate)
        off_by(1)(context, node, run)

    interpreter, results = delegated("chain", Keeping(fault=keep), failures=SHADOW)
    assert_same(results, undelegated("chain"))
    assert len(interpreter.incidents) == 1


def test_quarantine_does_not_touch_other_delegates() -> None:
    wrong, right = Faulty("SIN", fault=off_by(1), name="wrong"), Faulty("ADD", name="right")
    interpreter = Interpreter(model_content=sines(), delegates=[wrong, right], failures=SHADOW)
    assert_same(stepped(interpreter, floats(7)), undelegated("chain"))
    assert (wrong.runs, right.runs) == (1, 7)


@pytest.mark.parametrize(("share", "noticed"), [(1.0, 2), (0.5, 3), (0.25, 5), (0.4, 4)])
def test_recomputed_invokes_are_spread_evenly_after_the_first(share: float, noticed: int) -> None:
    delegate = Faulty(fault=off_by(0.1, from_run=2))
    delegated("chain", delegate, failures=FailurePolicy(on_failure="shadow", shadow_share=share))
    assert delegate.runs == noticed


def test_spreading_goes_on_across_allocations() -> None:
    delegate = Faulty(fault=off_by(0.1, from_run=2))
    delegated("resized", delegate, failures=FailurePolicy(on_failure="shadow", shadow_share=0.25))
    assert delegate.runs == 5


@pytest.mark.parametrize("name", STATEFUL)
def test_a_state_is_advanced_once_although_computed_twice(name: str) -> None:
    delegate = Faulty(dynamic=True)
    interpreter, results = delegated(
        name, delegate, failures=FailurePolicy(on_failure="shadow", shadow_share=1)
    )
    assert_same(results, undelegated(name))
    assert interpreter.incidents == ()
    assert delegate.runs >= 7


def test_a_wrong_variable_counts_as_a_wrong_result() -> None:
    def forget(context: Any, node: Node, run: int) -> None:
        context.tensors[context.variables[0]].data[...] += 1

    interpreter, results = delegated("variable", Faulty(fault=forget), failures=SHADOW)
    assert_same(results, undelegated("variable"))
    assert "'h'" in interpreter.incidents[0].error
    assert interpreter.incidents[0].is_quarantined


def test_a_delegate_that_cannot_say_its_tolerance_leaves_its_nodes_to_the_kernels() -> None:
    class Speechless(Faulty):
        def capabilities(self) -> Any:
            raise LookupError("not configured")

    interpreter, results = delegated("chain", Speechless(dynamic=True), failures=SHADOW)
    assert_same(results, undelegated("chain"))
    assert interpreter.incidents[0].error == "LookupError: not configured"


def test_a_variable_within_the_tolerance_is_the_delegates() -> None:
    def forget(context: Any, node: Node, run: int) -> None:
        context.tensors[context.variables[0]].data[...] += 0.25

    _, results = delegated(
        "variable",
        Faulty(fault=forget, tolerance={"FLOAT32": Tolerance(absolute=0.5)}),
        failures=FailurePolicy(on_failure="shadow", shadow_share=1),
    )
    assert abs(results[1] - undelegated("variable")[1]) == pytest.approx(0.125)


def test_a_wrong_number_of_dynamic_elements_is_a_wrong_shape() -> None:
    def shorten(context: Any, node: Node, run: int) -> None:
        context.resize_tensor(context.tensors[node.outputs[0]], (1, 1))

    interpreter, results = delegated(
        "dynamic", Faulty(fault=shorten, dynamic=True), failures=SHADOW
    )
    assert_same(results, undelegated("dynamic"))
    assert "has a wrong shape" in interpreter.incidents[0].error


def test_random_operators_are_not_compared() -> None:
    shape = constant(np.array([4], np.int32))
    model = graph_model(
        [("RANDOM_UNIFORM", "shape", "r"), ("ADD", "r x", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors={"shape": shape},
    )
    interpreter = Interpreter(model_content=model, delegates=[Faulty()], failures=SHADOW)
    stepped(interpreter, floats(3))
    assert interpreter.incidents == ()
