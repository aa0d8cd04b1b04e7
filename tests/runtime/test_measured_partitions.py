"""The measured policy: partitions stay with a delegate only if it is faster than the kernels.

Time is what the fake clock says: kernels and delegates of these tests move it themselves.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from graph_model import SubgraphText, graph_model, subgraphs_model
from numpy.testing import assert_array_equal
from one_op import constant, tensor

from delegraph import (
    BuiltinOperator,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
    Interpreter,
    Node,
    OpContext,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    Tensor,
)
from delegraph.delegation.rules import PlacementRule
from delegraph.errors import OperatorError
from delegraph.kernels.registration import Eval, Prepare
from delegraph.runtime.measured_partitions import losing_nodes
from delegraph.schema.options import (
    AddOptions,
    GatherOptions,
    IfOptions,
    MulOptions,
    WhileOptions,
)

US = 1e-6


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


class Timed(SimpleDelegateInterface):
    """Takes operators by name, and a certain time for each; their result is their input."""

    def __init__(self, clock: Clock, seconds: Mapping[str, float], *, copy: float = 0) -> None:
        self.clock, self.seconds, self.copy = clock, seconds, copy
        self.runs = 0
        self.fails = False

    def name(self) -> str:
        return "timed"

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        return registration.name in self.seconds or Rejection("op", actual=registration.name)

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return TimedKernel(self)

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Tensor) -> None:
        self.clock.pass_by(self.copy)


class TimedKernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: Timed) -> None:
        self._delegate = delegate

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        inner = [context.get_node_and_registration(i)[1].name for i in params.nodes_to_replace]
        self._seconds = sum(self._delegate.seconds[name] for name in inner)

    def prepare(self, context: DelegateContext, node: Node) -> None:
        pass

    def eval(self, context: DelegateContext, node: Node) -> None:
        if self._delegate.fails:
            raise RuntimeError("lost the device")
        self._delegate.runs += 1
        self._delegate.clock.pass_by(self._seconds)
        for index in node.outputs:
            output = context.tensors[index]
            output.data[...] = context.tensors[node.inputs[0]].data
            output.data_is_stale = self._delegate.copy > 0


def kernels(clock: Clock, seconds: Mapping[str, float]) -> dict[str, Registration]:
    """Return custom operators that pass their input on, and take a certain time."""

    def kernel(name: str) -> Registration:
        def prepare(context: OpContext, node: Node) -> Eval:
            x, y = (context.tensors[i] for i in (node.inputs[0], node.outputs[0]))
            context.resize_tensor(y, x.shape)

            def run() -> None:
                clock.pass_by(seconds[name])
                np.copyto(y.data, x.data)

            return run

        return Registration(name, prepare)

    return {name: kernel(name) for name in seconds}


def chain(*ops: str) -> bytes:
    nodes = [(op, f"t{i}", f"t{i + 1}") for i, op in enumerate(ops)]
    return graph_model(nodes, inputs="t0", outputs=f"t{len(ops)}")


def measure(
    model: bytes,
    mine: Mapping[str, float],
    theirs: Mapping[str, float],
    *,
    copy: float = 0,
    others: Timed | None = None,
) -> dict[int, dict[int, Rejection]]:
    clock = others.clock if others else Clock()
    with Interpreter(model_content=model, custom_ops=kernels(clock, theirs)) as interpreter:
        if others is not None:
            interpreter.modify_graph_with_delegate(others)
        interpreter.modify_graph_with_delegate(Timed(clock, mine, copy=copy))
        delegate = interpreter.session.subgraphs[0].plan.applied[-1].delegate
        return losing_nodes(interpreter.session, delegate, clock=clock)


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
        lost = losing_nodes(i.session, second, clock=clock)
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
        assert losing_nodes(i.session, applied, clock=clock) == {}
        assert delegate.runs == 3  # to warm up, measured once, and to go on


# -- what must not change ------------------------------------------------------------------------


def stateful() -> bytes:
    """y = x + (v += x), with v a variable; the custom operator is last."""
    return graph_model(
        [("Accumulate", "x v", "s"), ("A", "s", "y")],
        inputs="x",
        outputs="y",
        tensors={"v": tensor((4,), is_variable=True)},
    )


def accumulate(clock: Clock) -> Registration:
    def prepare(context: OpContext, node: Node) -> Eval:
        x, v, s = (context.tensors[i] for i in (*node.inputs, *node.outputs))

        def run() -> None:
            v.data[...] += x.data
            np.copyto(s.data, v.data)
            context.resources["runs"] = context.resources.get("runs", 0) + 1

        return run

    return Registration("Accumulate", prepare)


def test_inputs_variables_and_resources_are_as_before() -> None:
    clock = Clock()
    ops = kernels(clock, {"A": 1e-3}) | {"Accumulate": accumulate(clock)}
    x = np.arange(4, dtype=np.float32)
    with Interpreter(model_content=stateful(), custom_ops=ops) as interpreter:
        session = interpreter.session
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        session.resources["table"] = {"a": [1]}
        interpreter.modify_graph_with_delegate(
            Policy(clock, {"A": 1e-4}, DelegateOptions(partition_policy="measured"))
        )
        assert session.resources == {"runs": 1, "table": {"a": [1]}}
        assert_array_equal(interpreter.get_tensor(0), x)
        interpreter.invoke()
        output = interpreter.get_output_details()[0]["index"]
        assert_array_equal(interpreter.get_tensor(output), 2 * x)


class Accumulating(Timed):
    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return AccumulatingKernel(self)


class AccumulatingKernel(TimedKernel):
    def eval(self, context: DelegateContext, node: Node) -> None:
        x, v, s = (context.tensors[i] for i in (*node.inputs, *node.outputs))
        v.data[...] += x.data
        np.copyto(s.data, v.data)


def watching(seen: list[Any]) -> Prepare:
    """Return the prepare of an operator that passes on its first input and records both."""

    def prepare(context: OpContext, node: Node) -> Eval:
        a, b, y = (context.tensors[i] for i in (*node.inputs, *node.outputs))
        context.resize_tensor(y, a.shape)

        def run() -> None:
            seen.append((a.data.copy(), b.data.copy()))
            np.copyto(y.data, a.data)

        return run

    return prepare


class Policy(Timed):
    """Has options. By the real clock it may lose or not."""

    def __init__(
        self, clock: Clock, seconds: Mapping[str, float], options: DelegateOptions
    ) -> None:
        super().__init__(clock, seconds)
        self._options = options

    def delegate_options(self) -> DelegateOptions:
        return self._options


def test_text_inputs_lack_data_as_before() -> None:
    model = graph_model(
        [("A", "x", "y"), ("Text", "t", "u")],
        inputs="x t",
        outputs="y u",
        tensors={"t": tensor((2,), "STRING"), "u": tensor((2,), "STRING")},
    )
    clock = Clock()
    ops = kernels(clock, {"A": 1, "Text": 0})
    with Interpreter(model_content=model, custom_ops=ops) as interpreter:
        interpreter.modify_graph_with_delegate(Timed(clock, {"A": 2}))
        session = interpreter.session
        lost = losing_nodes(session, session.subgraphs[0].plan.applied[0].delegate, clock=clock)
        assert sorted(lost[0]) == [0]
        assert session.subgraphs[0].tensors[1].data is None


def test_integers_made_up_are_zero_so_that_they_can_be_indices() -> None:
    model = graph_model(
        [("GATHER", "table i", "x", GatherOptions(axis=0)), ("A", "x", "y")],
        inputs="i",
        outputs="y",
        tensors={"i": tensor((4,), "INT32"), "table": constant(np.ones(3, np.float32))},
    )
    assert sorted(measure(model, {"A": 2e-3}, {"A": 1e-3})[0]) == [1]


@pytest.mark.parametrize(
    "type", ["FLOAT16", "BFLOAT16", "FLOAT64", "INT8", "BOOL", "INT64", "INT4"]
)
@pytest.mark.parametrize("scale", [None, 0.5])
def test_inputs_of_every_type_can_be_made_up(type: str, scale: float | None) -> None:
    model = graph_model(
        [("A", "x", "y")],
        inputs="x",
        outputs="y",
        tensors=dict.fromkeys("xy", tensor((4,), type, scale=scale)),
    )
    assert sorted(measure(model, {"A": 2e-3}, {"A": 1e-3})[0]) == [0]


def test_made_up_floats_are_numbers_and_integers_of_quantized_tensors_differ() -> None:
    for type, scale in (("FLOAT32", None), ("FLOAT16", None), ("BFLOAT16", None), ("INT8", 0.5)):
        x = tensor((64,), type, scale=scale)
        model = graph_model(
            [("Watch", "x x", "y"), ("A", "y", "z")],
            inputs="x",
            outputs="z",
            tensors=dict.fromkeys("xyz", x),
        )
        clock = Clock()
        seen: list[Any] = []
        ops = kernels(clock, {"A": 1e-3}) | {"Watch": Registration("Watch", watching(seen))}
        with Interpreter(model_content=model, custom_ops=ops) as interpreter:
            interpreter.modify_graph_with_delegate(Timed(clock, {"A": 1}))
            session = interpreter.session
            losing_nodes(session, session.subgraphs[0].plan.applied[0].delegate, clock=clock)
        assert len(np.unique(seen[0][0])) > 10, type


def test_the_rest_of_the_run_sees_variables_as_after_one_run() -> None:
    model = graph_model(
        [("Accumulate", "x v", "s"), ("Watch", "s x", "y")],
        inputs="x",
        outputs="y",
        tensors={"v": tensor((4,), is_variable=True)},
    )
    clock = Clock()
    seen: list[Any] = []
    ops = {
        "Accumulate": accumulate(clock),
        "Watch": Registration("Watch", watching(seen)),
    }
    with Interpreter(model_content=model, custom_ops=ops) as interpreter:
        interpreter.modify_graph_with_delegate(Accumulating(clock, {"Accumulate": 1e-3}))
        session = interpreter.session
        losing_nodes(session, session.subgraphs[0].plan.applied[0].delegate, clock=clock)
        (values, x) = seen[0]
        assert_array_equal(values, x)
        assert session.resources == {}
        assert not session.subgraphs[0].tensors[1].data.any()


def test_nodes_are_themselves_again_afterwards() -> None:
    clock = Clock()
    with Interpreter(model_content=chain("A"), custom_ops=kernels(clock, {"A": 1})) as interpreter:
        interpreter.modify_graph_with_delegate(Timed(clock, {"A": 1e-3}))
        session = interpreter.session
        plan = session.subgraphs[0].plan
        before = list(plan.nodes)
        assert losing_nodes(session, plan.applied[0].delegate, clock=clock) == {}
        assert plan.nodes == before
        assert not session.subgraphs[0].is_allocated


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
        assert sorted(losing_nodes(session, delegate, clock=clock)[0]) == [0]
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
        on_failure=on_failure,
    ) as interpreter:
        delegate.fails = True
        session = interpreter.session
        assert losing_nodes(session, session.subgraphs[0].plan.applied[0].delegate) == {}
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
        assert losing_nodes(session, delegate, clock=clock) == {}
        assert "lock" in session.resources
    assert "timed: kept without measuring: resources cannot be copied: TypeError" in caplog.text


def test_an_operator_without_a_kernel_is_kept_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    with Interpreter(model_content=chain("A"), delegates=[Timed(clock, {"A": 1})]) as interpreter:
        session = interpreter.session
        delegate = session.subgraphs[0].plan.applied[0].delegate
        assert losing_nodes(session, delegate, clock=clock) == {}
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
        assert sorted(losing_nodes(session, delegate, clock=clock)) == [1, 2]
    (values, _) = seen[0]  # the condition is False, so the main graph comes first
    assert values.max() > 1  # 2 x, and made-up floats are smaller than 1


def test_a_loop_that_never_ends_on_made_up_data_is_left() -> None:
    main: SubgraphText = (
        [("WHILE", "x", "y", WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))],
        "x",
        "y",
        {},
    )
    forever: SubgraphText = (
        [("Always", "x", "c")],
        "x",
        "c",
        {"c": tensor((1,), "BOOL")},
    )

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
        assert sorted(losing_nodes(session, delegate, clock=clock)) == [2]
        assert 10 < clock.now - begin < 11


# -- the policy ----------------------------------------------------------------------------------


class Crawling(SimpleDelegateInterface):
    """Computes ADD and the custom operator Idle; at ADD it is some hundred times too slow."""

    def __init__(self, policy: Any = "largest") -> None:
        self._options = DelegateOptions(partition_policy=policy)

    def name(self) -> str:
        return "crawling"

    def delegate_options(self) -> DelegateOptions:
        return self._options

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool:
        return registration.name in ("ADD", "Idle")

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return CrawlingKernel()


def be_busy(seconds: float = 0.002) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class CrawlingKernel(SimpleDelegateKernelInterface):
    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        (index,) = params.nodes_to_replace
        self._node, registration = context.get_node_and_registration(index)
        self._is_slow = registration.name == "ADD"

    def prepare(self, context: DelegateContext, node: Node) -> None:
        x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
        context.resize_tensor(y, x.shape)

    def eval(self, context: DelegateContext, node: Node) -> None:
        x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
        if self._is_slow:
            be_busy()
            np.add(x.data, x.data, out=y.data)
        else:
            np.copyto(y.data, x.data)


def idle(context: OpContext, node: Node) -> Eval:
    x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
    context.resize_tensor(y, x.shape)

    def run() -> None:
        be_busy()
        np.copyto(y.data, x.data)

    return run


CRAWL = graph_model(
    [
        ("ADD", "x x", "a", AddOptions()),
        ("MUL", "a a", "b", MulOptions()),
        ("Idle", "b", "y"),
    ],
    inputs="x",
    outputs="y",
)


def taken(interpreter: Interpreter) -> list[tuple[int, ...]]:
    return [partition.nodes for partition in interpreter.placement.partitions]


@pytest.mark.parametrize("who", ["user", "delegate"])
def test_measured_policy_keeps_what_saves_time_also_after_a_resize(
    who: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    policy: Any = {"partition_policy": "measured"} if who == "user" else {}
    with Interpreter(
        model_content=CRAWL,
        custom_ops={"Idle": Registration("Idle", idle)},
        delegates=[Crawling("measured" if who == "delegate" else "largest")],
        **policy,
    ) as interpreter:
        assert taken(interpreter) == [(2,)]
        assert "crawling, subgraph 0: 1 of 2 partitions pay" in caplog.text
        rejection = interpreter.placement.nodes[0].rejections["crawling"]
        assert rejection.constraint == "measured"
        for shape in ((4,), (2, 3)):
            interpreter.resize_tensor_input(0, shape)
            interpreter.allocate_tensors()
            x = np.full(shape, 3, np.float32)
            interpreter.set_tensor(0, x)
            interpreter.invoke()
            output = interpreter.get_output_details()[0]["index"]
            assert_array_equal(interpreter.get_tensor(output), 36 * np.ones(shape))
            assert taken(interpreter) == [(2,)]


def test_nodes_pinned_to_the_delegate_stay_whatever_the_time() -> None:
    with Interpreter(
        model_content=CRAWL,
        custom_ops={"Idle": Registration("Idle", idle)},
        delegates=[Crawling()],
        partition_policy="measured",
        rules=[PlacementRule("pin", "crawling", operators="ADD")],
    ) as interpreter:
        assert taken(interpreter) == [(0,), (2,)]


def test_a_delegate_of_all_or_nothing_is_not_measured(caplog: pytest.LogCaptureFixture) -> None:
    class AllOrNothing(Timed):
        def flags(self) -> DelegateFlags:
            return DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE

    clock = Clock()
    with Interpreter(
        model_content=chain("A"),
        custom_ops=kernels(clock, {"A": 0}),
        delegates=[AllOrNothing(clock, {"A": 1})],
        partition_policy="measured",
    ) as interpreter:
        assert taken(interpreter) == [(0,)]
    assert "kept without measuring: it takes every node or none" in caplog.text


def test_shadowing_starts_with_the_users_first_invoke() -> None:
    class Wrong(Timed):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            return WrongKernel(self)

    class WrongKernel(TimedKernel):
        def eval(self, context: DelegateContext, node: Node) -> None:
            context.tensors[node.outputs[0]].data[...] = -7

    with Interpreter(
        model_content=chain("Idle"),
        custom_ops={"Idle": Registration("Idle", idle)},
        delegates=[Wrong(Clock(), {"Idle": 0})],
        partition_policy="measured",
        on_failure="shadow",
    ) as interpreter:
        assert interpreter.incidents == ()
        assert taken(interpreter) == [(0,)]
        interpreter.allocate_tensors()
        x = np.arange(4, dtype=np.float32)
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        assert_array_equal(interpreter.get_tensor(1), x)
        assert [incident.is_quarantined for incident in interpreter.incidents] == [True]


def test_largest_policy_does_not_measure() -> None:
    with Interpreter(
        model_content=CRAWL,
        custom_ops={"Idle": Registration("Idle", idle)},
        delegates=[Crawling()],
    ) as interpreter:
        assert taken(interpreter) == [(0,), (2,)]
