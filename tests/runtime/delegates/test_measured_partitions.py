"""The measured policy: partitions stay with a delegate only if it is faster than the kernels.

Time is what the fake clock says: kernels and delegates of these tests move it themselves.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from delegraph import (
    BuiltinOperator,
    DelegateContext,
    FailurePolicy,
    Interpreter,
    Node,
    OpContext,
    Registration,
    Rejection,
)
from delegraph.errors import OperatorError
from delegraph.operators.registration import Eval
from delegraph.runtime.delegates.measured_partitions import losing_nodes
from delegraph.schema.options import IfOptions, MulOptions, WhileOptions
from delegraph.testing import constant, graph_model, subgraphs_model, tensor
from delegraph.testing.several_ops import SubgraphText
from support.timed_delegate import US, Clock, Timed, chain, kernels, measure, watching

# -- who wins ------------------------------------------------------------------------------------


def test_partitions_that_take_longer_than_their_kernels_lose() -> None:
    lost = measure(
        chain("Fast", "Other", "Slow"),
        mine={"Fast": 100 * US, "Slow": 812 * US},
        theirs={"Fast": 640 * US, "Other": 1, "Slow": 640 * US},
    )
    reason = Rejection("measured", actual="812 us", expected="less than the kernels' 640 us")
    assert lost == {0: {2: reason}}


def test_a_partition_counts_as_a_whole() -> None:
    mine = {"Fast": 100 * US, "Slow": 200 * US}
    theirs = {"Fast": 250 * US, "Slow": 100 * US}
    assert measure(chain("Fast", "Slow"), mine, theirs) == {}
    theirs = {"Fast": 150 * US, "Slow": 100 * US}
    assert sorted(measure(chain("Fast", "Slow"), mine, theirs)[0]) == [0, 1]


def test_who_is_just_as_fast_as_the_kernels_loses() -> None:
    assert sorted(measure(chain("A"), {"A": 5 * US}, {"A": 5 * US})[0]) == [0]


def test_copies_of_what_others_read_are_the_delegates_time() -> None:
    fast, slow = {"A": 100 * US}, {"A": 300 * US}
    assert measure(chain("A"), fast, slow, copy=199 * US) == {}
    assert sorted(measure(chain("A"), fast, slow, copy=201 * US)[0]) == [0]


def test_what_only_the_delegate_reads_is_not_copied() -> None:
    # Two partitions: B sits between them, but the second reads the first's output directly.
    model = graph_model(
        [("A", "x", "a"), ("B", "x", "b"), ("C", "a b", "y")], inputs="x", outputs="y b"
    )
    with_edge = {"A": 100 * US, "C": 100 * US}
    theirs = {"A": 300 * US, "B": 1, "C": 900 * US}
    assert measure(model, with_edge, theirs, copy=500 * US) == {}


def test_nodes_of_an_earlier_delegate_are_named_as_the_models_nodes() -> None:
    clock = Clock()
    first = Timed(clock, {"A": 10 * US})

    class TakesDelegates(Timed):
        def is_node_supported_by_delegate(
            self, registration: Registration, node: Node, context: DelegateContext
        ) -> bool:
            return registration.builtin_code == BuiltinOperator.DELEGATE

    with Interpreter(model_content=chain("A", "A"), custom_ops=kernels(clock, {"A": 1.0})) as i:
        i.modify_graph_with_delegate(first)
        i.modify_graph_with_delegate(TakesDelegates(clock, {"timed": 50 * US}))
        second = i.session.subgraphs[0].plan.applied[-1].delegate
        lost = losing_nodes(i.session.subgraphs, second, clock=clock)
    assert sorted(lost[0]) == [0, 1]
    assert lost[0][0].expected == "less than the kernels' 20 us"


def test_a_delegate_that_took_nothing_loses_nothing() -> None:
    assert measure(chain("A"), {}, {"A": 1 * US}) == {}


def test_measuring_ends_when_its_time_is_up() -> None:
    clock = Clock()
    delegate = Timed(clock, {"A": 0.3})
    with Interpreter(
        model_content=chain("A", "B"), custom_ops=kernels(clock, {"A": 1, "B": 0})
    ) as i:
        i.modify_graph_with_delegate(delegate)
        applied = i.session.subgraphs[0].plan.applied[-1].delegate
        assert losing_nodes(i.session.subgraphs, applied, clock=clock) == {}
        assert delegate.runs == 3  # to warm up, measured once, and to go on


# -- what cannot be measured ---------------------------------------------------------------------


def refusing(context: OpContext, node: Node) -> Eval:
    def run() -> None:
        raise OperatorError("data out of range")

    return run


def test_partitions_behind_a_failing_node_are_kept_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    ops = kernels(clock, {"A": 1e-3, "B": 1e-3}) | {"Refuse": Registration("Refuse", refusing)}
    model = chain("A", "Refuse", "B")
    with Interpreter(model_content=model, custom_ops=ops) as interpreter:
        interpreter.modify_graph_with_delegate(Timed(clock, {"A": 1, "B": 1}))
        session = interpreter.session
        delegate = session.subgraphs[0].plan.applied[0].delegate
        assert sorted(losing_nodes(session.subgraphs, delegate, clock=clock)[0]) == [0]
    assert "timed, subgraph 0: kept without measuring: nodes 4: " in caplog.text
    assert "data out of range" in caplog.text


@pytest.mark.parametrize("on_failure", ["raise", "fallback"])
def test_a_delegate_that_fails_while_measured_is_kept_and_no_incident_is_left(
    on_failure: Any, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    delegate = Timed(clock, {"A": 1})
    with Interpreter(
        model_content=chain("A"),
        custom_ops=kernels(clock, {"A": 1e-3}),
        delegates=[delegate],
        failures=FailurePolicy(on_failure=on_failure),
    ) as interpreter:
        delegate.fails = True
        session = interpreter.session
        assert losing_nodes(session.subgraphs, session.subgraphs[0].plan.applied[0].delegate) == {}
        assert session.incidents.all() == ()
    assert "lost the device" in caplog.text


def test_resources_that_cannot_be_copied_leave_everything_unmeasured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    with Interpreter(
        model_content=chain("A"),
        custom_ops=kernels(clock, {"A": 1e-3}),
        delegates=[Timed(clock, {"A": 1})],
    ) as interpreter:
        session = interpreter.session
        session.resources["lock"] = threading.Lock()
        delegate = session.subgraphs[0].plan.applied[0].delegate
        assert losing_nodes(session.subgraphs, delegate, clock=clock) == {}
        assert "lock" in session.resources
    assert "timed: kept without measuring: resources cannot be copied: TypeError" in caplog.text


def test_an_operator_without_a_kernel_is_kept_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    with Interpreter(model_content=chain("A"), delegates=[Timed(clock, {"A": 1})]) as interpreter:
        session = interpreter.session
        delegate = session.subgraphs[0].plan.applied[0].delegate
        assert losing_nodes(session.subgraphs, delegate, clock=clock) == {}
    assert "kept without measuring: node 1: Node number 0 (A) has no kernel" in caplog.text


# -- subgraphs -----------------------------------------------------------------------------------

BODY: SubgraphText = ([("A", "x", "y")], "x", "y", {})


def test_branches_are_measured_whether_or_not_they_are_taken() -> None:
    main: SubgraphText = (
        [("IF", "c x", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=2))],
        "c x",
        "y",
        {"c": tensor((1,), "BOOL")},
    )
    model = subgraphs_model([main, BODY, BODY])
    assert measure(model, {"A": 1e-4}, {"A": 1e-3}) == {}
    assert sorted(measure(model, {"A": 1e-3}, {"A": 1e-4})) == [1, 2]


def test_called_subgraphs_are_measured_on_the_data_of_their_caller() -> None:
    main: SubgraphText = (
        [
            ("MUL", "x two", "big", MulOptions()),
            ("IF", "c big", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=2)),
        ],
        "c x",
        "y",
        {"c": tensor((1,), "BOOL"), "two": constant(np.full(4, 2, np.float32))},
    )
    clock = Clock()
    seen: list[Any] = []
    ops = kernels(clock, {"A": 1e-3}) | {"Watch": Registration("Watch", watching(seen))}
    body: SubgraphText = ([("Watch", "x x", "z"), ("A", "z", "y")], "x", "y", {})
    model = subgraphs_model([main, BODY, body])
    with Interpreter(model_content=model, custom_ops=ops) as interpreter:
        interpreter.modify_graph_with_delegate(Timed(clock, {"A": 1}))
        session = interpreter.session
        delegate = session.subgraphs[2].plan.applied[0].delegate
        assert sorted(losing_nodes(session.subgraphs, delegate, clock=clock)) == [1, 2]
    (values, _) = seen[0]  # the condition is False, so the main graph comes first
    assert values.max() > 1  # 2 x, and made-up floats are smaller than 1


def test_a_loop_that_never_ends_on_made_up_data_is_left() -> None:
    main: SubgraphText = (
        [("WHILE", "x", "y", WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))],
        "x",
        "y",
        {},
    )
    forever: SubgraphText = ([("Always", "x", "c")], "x", "c", {"c": tensor((1,), "BOOL")})

    def always(context: OpContext, node: Node) -> Eval:
        c = context.tensors[node.outputs[0]]
        return lambda: c.data.fill(True)

    clock = Clock()
    ops = kernels(clock, {"A": 1e-3}) | {"Always": Registration("Always", always)}
    model = subgraphs_model([main, forever, BODY])
    with Interpreter(model_content=model, custom_ops=ops) as interpreter:
        interpreter.modify_graph_with_delegate(Timed(clock, {"A": 0.1}))
        session = interpreter.session
        delegate = session.subgraphs[2].plan.applied[0].delegate
        begin = clock.now
        assert sorted(losing_nodes(session.subgraphs, delegate, clock=clock)) == [2]
        assert 10 < clock.now - begin < 11
