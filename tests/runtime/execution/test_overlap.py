"""Asynchronous kernels in a running model: what runs meanwhile, and what a failure leaves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import (
    CustomOp,
    DelegateContext,
    DelegateFlags,
    FailurePolicy,
    Interpreter,
    Limits,
    Node,
    OpResolverType,
)
from delegraph.errors import CallCancelledError, DelegateNodeError, TimeLimitError
from delegraph.graph import parse_model
from delegraph.graph.model import CONTROL_EDGES
from delegraph.memory.arena_planner import TensorKind
from delegraph.schema.options import AddOptions, MulOptions, ReshapeOptions, SubOptions
from delegraph.testing import constant, graph_model, interrupted, tensor
from support.asynchronous_delegate import InThread, Late, LateEvent, LateFaulty
from support.by_name import ByName
from support.faulty_delegate import failing
from support.faulty_delegate import nothing as no_fault
from support.policy_models import (
    MODELS,
    assert_same,
    delegated,
    doubling,
    positive_positions,
    stepped,
    undelegated,
)
from support.running import result

FALLBACK = FailurePolicy(on_failure="fallback")

F = np.float32
X = np.array([0.1, 0.2, 0.3, 0.4], F)

KEEP_ALL = "experimental_preserve_all_tensors"
PLAIN = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
OPTIONS = {"ADD": AddOptions(), "MUL": MulOptions(), "SUB": SubOptions()}


def branches(first: str = "SIN") -> bytes:
    """(sin(x) + x x) + (x - x): SIN, MUL and SUB may run at the same time.

    Args:
        first: an operator in place of SIN.
    """
    return graph_model(
        [
            (first, "x", "a"),
            ("MUL", "x x", "b", MulOptions()),
            ("SUB", "x x", "c", SubOptions()),
            ("ADD", "a b", "d", AddOptions()),
            ("ADD", "d c", "y", AddOptions()),
        ],
        inputs="x",
        outputs="y",
    )


EXPECTED = np.sin(X) + X * X


def opened(*delegates: Any, model: bytes | None = None, **options: Any) -> Interpreter:
    """Return an interpreter with tensors allocated and its input set."""
    interpreter = Interpreter(model_content=model or branches(), delegates=delegates, **options)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    return interpreter


def invoked(interpreter: Interpreter) -> NDArray[Any]:
    interpreter.invoke()
    return result(interpreter)


# -- what runs meanwhile -----------------------------------------------------------------------


def test_partitions_of_two_delegates_run_at_the_same_time() -> None:
    both_run = threading.Barrier(2, timeout=20)

    def meet(context: DelegateContext, node: Node) -> None:
        both_run.wait()

    interpreter = opened(InThread("SIN", before=meet), InThread("MUL", name="two", before=meet))
    with interpreter.profile() as profile:
        np.testing.assert_allclose(invoked(interpreter), EXPECTED, 1e-6)
    one, two = (e for e in profile.events if e.delegate is not None)
    assert one.start < two.start + two.duration
    assert two.start < one.start + one.duration


def test_kernels_of_the_host_run_while_a_partition_does() -> None:
    late = Late("SIN")
    interpreter = opened(late)
    with interpreter.profile() as profile:
        interpreter.invoke()
    assert late.log == ["start 5", "wait 5"]
    assert [event.name for event in profile.events] == ["MUL", "SUB", "late", "ADD", "ADD"]
    started = next(event for event in profile.events if event.name == "late")
    assert all(event.start > started.start for event in profile.events if event is not started)


def test_what_the_plan_has_after_others_starts_before_them() -> None:
    late = Late("SUB")
    assert opened(late).placement.partitions[0].is_asynchronous
    interpreter = opened(late)
    order = [node.index for node, _ in interpreter.session.subgraphs[0].steps.nodes]
    assert order == [5, 0, 1, 3, 4]
    np.testing.assert_allclose(invoked(interpreter), EXPECTED, 1e-6)


def test_where_nothing_can_run_meanwhile_eval_is_called() -> None:
    late = Late("SIN")
    chain = graph_model([("NEG", "x", "a"), ("SIN", "a", "y")], inputs="x", outputs="y")
    np.testing.assert_allclose(invoked(opened(late, model=chain)), np.sin(-X), 1e-6)
    assert late.log == ["eval 2"]


def test_the_placement_tells_what_is_asynchronous_and_overlaps() -> None:
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS
    interpreter = opened(Late("SIN", flags=flags), ByName("MUL", flags=flags))
    one, two = interpreter.placement.partitions
    assert (one.is_asynchronous, one.overlaps) == (True, (1,))
    assert (two.is_asynchronous, two.overlaps) == (False, (0,))
    assert str(interpreter.placement).startswith(
        "5 nodes: late takes 1 in 1 partition (asynchronous), by_name takes 1 in 1 partition, "
    )
    interpreter.resize_tensor_input(0, [2])
    assert [partition.overlaps for partition in interpreter.placement.partitions] == [(), ()]


def test_a_node_whose_shape_stays_open_waits_for_those_before_it() -> None:
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS
    tensors = {"s": constant(np.array([2, 2], np.int32)), "r": tensor((2, 2)), "y": tensor((2, 2))}
    model = graph_model(
        [
            ("SIN", "x", "a"),
            ("MUL", "x x", "b", MulOptions()),
            ("SUB", "b a", "c", SubOptions()),
            ("CAST", "s", "t"),
            ("RESHAPE", "c t", "r", ReshapeOptions()),
            ("MUL", "r r", "y", MulOptions()),
        ],
        inputs="x",
        outputs="y",
        tensors=tensors | {"t": tensor((2,), "INT32")},
    )
    late = Late("SIN", "MUL", flags=flags)
    interpreter = opened(late, model=model, experimental_disable_delegate_node_fusion=True)
    for _ in range(2):
        np.testing.assert_allclose(
            invoked(interpreter).ravel(), (X * X - np.sin(X)) ** 2, 1e-5
        )  # fmt: skip
    assert [entry.split()[0] for entry in late.log[:4]] == ["start", "start", "wait", "wait"]


@pytest.mark.parametrize("model", [positive_positions(), doubling()])
def test_shapes_known_only_while_invoking_and_loops(model: bytes) -> None:
    x = np.ones(parse_model(model).subgraphs[0].tensors[0].shape, F)
    late = Late("MUL", "ADD", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    steps = [x, 3 * x, x / 2]
    found = stepped(Interpreter(model_content=model, delegates=[late]), steps)
    expected = stepped(Interpreter(model_content=model, delegates=[]), steps)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


# -- memory ------------------------------------------------------------------------------------


def random_graph(seed: int, count: int = 24) -> bytes:
    """Return a model of operators that read any tensors before; the last is the output."""
    rng = np.random.default_rng(seed)
    names, nodes = ["x"], []
    for made in range(count):
        name = f"t{made}" if made < count - 1 else "y"
        op = str(rng.choice(["SIN", "MUL", "SUB", "ADD", "RESHAPE"]))
        reads = [names[-min(len(names), int(rng.integers(1, 6)))] for _ in range(2)]
        if op == "RESHAPE":
            nodes.append((op, reads[0], name, ReshapeOptions(new_shape=np.array([4], np.int32))))
        elif op == "SIN":
            nodes.append((op, reads[0], name))
        else:
            nodes.append((op, " ".join(reads), name, OPTIONS[op]))
        names.append(name)
    return graph_model(nodes, inputs="x", outputs="y")


@pytest.mark.parametrize("keeps_all", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_memory_stays_until_it_is_waited_for(seed: int, keeps_all: bool) -> None:
    model = random_graph(seed)
    delegates = [Late("SIN"), Late("MUL", "ADD", name="two") if seed % 2 else Late("SUB")]
    options: dict[str, Any] = {"experimental_op_resolver_type": PLAIN}
    options |= {"experimental_disable_delegate_node_fusion": seed % 3 > 0}
    if keeps_all:
        options |= {KEEP_ALL: True}
    interpreter = opened(*delegates, model=model, **options)
    if interpreter.session.subgraphs[0].steps.overlap is None:
        return
    expected = invoked(opened(model=model, **{**options, KEEP_ALL: True}))
    for _ in range(2):
        np.testing.assert_array_equal(invoked(interpreter), expected)
    assert_apart(interpreter)


def assert_apart(interpreter: Interpreter) -> None:
    """Check that nobody writes what an asynchronous node uses, other nodes' copies apart."""
    subgraph = interpreter.session.subgraphs[0]
    overlap, graph = subgraph.steps.overlap, subgraph.memory.graph
    assert graph is not None
    nodes = {node.index: node for node, found in subgraph.steps.nodes if found.name != "RESHAPE"}
    for started, others in {} if overlap is None else overlap.meanwhile.items():
        own = nodes[started]
        for other in (nodes[index] for index in others if index in nodes):
            for written in other.outputs:
                for used in {*own.inputs, *own.outputs}:
                    assert not in_one_place(subgraph.tensors, written, used, graph)


def in_one_place(tensors: Sequence[Any], one: int, other: int, graph: Any) -> bool:
    if TensorKind.ARENA_RW not in (graph.tensor_kind(one), graph.tensor_kind(other)):
        return False
    return bool(np.shares_memory(tensors[one].data, tensors[other].data))


def test_working_memory_is_not_shared_with_nodes_that_run_meanwhile() -> None:
    class WithScratch(Late):
        def create_delegate_kernel_interface(self) -> Any:
            kernel = super().create_delegate_kernel_interface()
            prepare = kernel.prepare

            def with_scratch(context: DelegateContext, node: Node) -> None:
                prepare(context, node)
                scratches.append(context.scratch((8,), F))

            kernel.prepare = with_scratch  # type: ignore[method-assign]  # the one under test
            return kernel

    scratches: list[Any] = []
    opened(WithScratch("SIN"), WithScratch("MUL", name="two"))
    one, two = scratches[-2:]
    assert not np.shares_memory(one.data, two.data)


# -- what goes wrong ---------------------------------------------------------------------------


def fails(context: DelegateContext, node: Node) -> None:
    raise OSError("device lost")


def test_an_error_names_delegate_and_node() -> None:
    interpreter = opened(Late("SIN", before=fails), Late("MUL", name="two"))
    with pytest.raises(
        DelegateNodeError,
        match=r"Node number 5 \(late\) failed to invoke: OSError: device lost "
        r"\(delegate 'late', in place of node 0\)",
    ):
        interpreter.invoke()


def test_after_an_error_nothing_goes_on() -> None:
    other = Late("MUL", name="two")
    interpreter = opened(Late("SIN", before=fails), other)
    for _ in range(2):
        other.log.clear()
        with pytest.raises(DelegateNodeError):
            interpreter.invoke()
        assert other.log == ["start 6", "wait 6"]


def test_of_two_errors_the_second_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    interpreter = opened(Late("SIN", before=fails), Late("MUL", name="two", before=fails))
    with caplog.at_level(logging.WARNING), pytest.raises(DelegateNodeError, match="Node number 5"):
        interpreter.invoke()
    assert "node 6 (two) failed as well, in an invoke that had failed already" in caplog.text


@pytest.mark.parametrize("found", [None, 5, threading.Thread])
def test_an_event_must_be_one(found: object) -> None:
    class Wrong(Late):
        def create_delegate_kernel_interface(self) -> Any:
            kernel = super().create_delegate_kernel_interface()
            type(kernel).eval_async  # noqa: B018 - it has one
            kernel.eval_async = lambda context, node: found  # type: ignore[method-assign, assignment, return-value]  # wrong on purpose
            return kernel

    with pytest.raises(DelegateNodeError, match=r"eval_async\(\) returned .*, expected an object"):
        opened(Wrong("SIN")).invoke()


@pytest.mark.parametrize("kind", [Late, InThread])
def test_a_failing_partition_falls_back_to_the_kernels(kind: Any) -> None:
    interpreter = opened(
        kind("SIN", name="late", before=fails), Late("MUL", name="two"), failures=FALLBACK
    )
    for _ in range(2):
        np.testing.assert_allclose(invoked(interpreter), EXPECTED, 1e-6)
    (incident,) = interpreter.incidents
    assert (incident.delegate, incident.nodes, incident.count) == ("late", (0,), 2)
    assert (incident.phase, incident.error) == ("eval", "OSError: device lost")


def test_a_partition_that_cannot_even_start_falls_back() -> None:
    class Unstartable(Late):
        def create_delegate_kernel_interface(self) -> Any:
            kernel = super().create_delegate_kernel_interface()
            kernel.eval_async = fails  # type: ignore[method-assign, assignment]  # fails at once
            return kernel

    interpreter = opened(Unstartable("SIN"), failures=FALLBACK)
    np.testing.assert_allclose(invoked(interpreter), EXPECTED, 1e-6)
    assert [incident.error for incident in interpreter.incidents] == ["OSError: device lost"]


def test_shadow_finds_a_partition_that_is_wrong_and_keeps_it_out() -> None:
    class Wrong(Late):
        def create_delegate_kernel_interface(self) -> Any:
            kernel = super().create_delegate_kernel_interface()
            compute = kernel.compute

            def off(context: DelegateContext, node: Node) -> None:
                compute(context, node)
                context.tensors[node.outputs[0]].data[...] += 1

            kernel.compute = off  # type: ignore[method-assign]  # wrong on purpose
            return kernel

    late = Wrong("SIN")
    interpreter = opened(
        late, Late("MUL", name="two"), failures=FailurePolicy(on_failure="shadow", shadow_share=1.0)
    )
    for _ in range(3):
        np.testing.assert_allclose(invoked(interpreter), EXPECTED, 1e-6)
    assert late.log == ["start 5", "wait 5"]
    assert interpreter.placement.quarantined == ("late",)


def test_a_fallback_computes_while_nothing_else_does() -> None:
    seen: list[str] = []
    two = Late("MUL", name="two")

    def compute(x: NDArray[Any]) -> NDArray[Any]:
        seen.extend(two.log)
        return x + x

    twice = CustomOp("Twice", compute)

    @twice.shape
    def _(x: Any) -> tuple[int, ...]:
        shape: tuple[int, ...] = x.shape
        return shape

    interpreter = opened(
        Late("Twice", before=fails),
        two,
        model=branches("Twice"),
        failures=FALLBACK,
        custom_ops={"Twice": twice},
    )
    np.testing.assert_allclose(invoked(interpreter), 2 * X + X * X, 1e-6)
    assert seen == two.log == ["start 6", "wait 6"]


@pytest.mark.parametrize("policy", ["raise", "fallback", "shadow"])
@pytest.mark.parametrize("name", MODELS)
def test_state_is_as_without_delegate(name: str, policy: str) -> None:
    fault = no_fault if policy == "raise" else failing(every=2)
    late = LateFaulty("SIN", "ADD", "MUL", "RNN", "IF", fault=fault, dynamic=True)
    _, found = delegated(name, late, failures=FailurePolicy(on_failure=policy))
    assert_same(found, undelegated(name))


def test_a_control_edge_of_the_model_is_waited_for() -> None:
    def order(edges: bytes | None) -> list[int]:
        metadata = {} if edges is None else {CONTROL_EDGES: edges}
        nodes = [("SIN", "x", "y"), ("NEG", "x", "a"), ("NEG", "a", "z")]
        model = graph_model(nodes, inputs="x", outputs="y z", metadata=metadata)
        late = Late("SIN")
        opened(late, model=model).invoke()
        return [len(late.log), *(entry == "start 3" for entry in late.log)]

    assert order(None) == [2, True, False]
    first_to_second = bytes([1, 1, 1, 0, 2])  # version, subgraphs, edges, 0 and 1 in zig-zag
    assert order(first_to_second) == [1, False]  # nothing is left to run meanwhile


def test_an_invoke_may_be_interrupted_at_any_line() -> None:
    interpreter = opened(Late("SIN"), Late("MUL", name="two"))
    at = 0
    while interrupted(interpreter.invoke, at, inside=["delegraph", "support"]):
        np.testing.assert_allclose(invoked(interpreter), EXPECTED, 1e-6)
        at += 1
    assert at > 20


# -- what stops it -----------------------------------------------------------------------------


def test_a_cancelled_invoke_waits_for_what_goes_on() -> None:
    late = Late("SIN")
    interpreter: Interpreter
    stopping = ByName("MUL", name="stopping")
    interpreter = opened(late, stopping)
    stopping.calls = _Calling(lambda: interpreter.cancel())
    with pytest.raises(CallCancelledError):
        interpreter.invoke()
    assert late.log == ["start 5", "wait 5"]
    stopping.calls = []
    np.testing.assert_allclose(invoked(interpreter), EXPECTED, 1e-6)


class _Calling(list[str]):
    """A log that calls something at each evaluation."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self._call = call

    def append(self, entry: str) -> None:
        if entry == "eval":
            self._call()


def until_stopped(context: DelegateContext, node: Node) -> None:
    """Compute until the call shall stop."""
    request = context.cancellation
    assert request is not None
    stop = threading.Event()
    while not stop.wait(0.001):
        request.raise_if_requested()


def test_a_kernel_that_looks_ends_a_call_that_takes_too_long() -> None:
    interpreter = opened(
        InThread("SIN", before=until_stopped), Late("MUL"), limits=Limits(time=0.3)
    )
    with pytest.raises(TimeLimitError):
        interpreter.invoke()


def test_cancel_while_the_host_waits() -> None:
    def cancelled_later(context: DelegateContext, node: Node) -> None:
        threading.Timer(0.05, interpreter.cancel).start()  # before the invoke it has no effect
        until_stopped(context, node)

    interpreter = opened(InThread("SIN", before=cancelled_later), Late("MUL"))
    with pytest.raises(CallCancelledError):
        interpreter.invoke()


class _Interrupted(LateEvent):
    """Is interrupted while it is waited for, some times; logs whether it was asked to stop."""

    def __init__(self, times: int, log: list[str], context: DelegateContext) -> None:
        request = context.cancellation
        assert request is not None
        super().__init__(lambda: log.append("stopped" if request.word[0] else "done"))
        self._left = times

    def wait(self) -> None:
        if self._left:
            self._left -= 1
            raise KeyboardInterrupt
        super().wait()


def interrupted_kernel(times: int, log: list[str]) -> Late:
    class Interruptible(Late):
        def create_delegate_kernel_interface(self) -> Any:
            kernel = super().create_delegate_kernel_interface()
            kernel.eval_async = lambda context, node: _Interrupted(times, log, context)  # type: ignore[method-assign]  # waits
            return kernel

    return Interruptible("SIN", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)


def test_an_interrupt_leaves_nothing_going_on() -> None:
    log: list[str] = []
    interpreter = opened(interrupted_kernel(1, log))
    with pytest.raises(KeyboardInterrupt):
        interpreter.invoke()
    assert log == ["stopped"]


@pytest.mark.parametrize("what", ["allocate", "remove", "reset", "close", "invoke"])
def test_after_a_second_interrupt_the_next_call_waits_first(what: str) -> None:
    log: list[str] = []
    interpreter = opened(interrupted_kernel(2, log))
    with pytest.raises(KeyboardInterrupt):
        interpreter.invoke()
    assert log == []
    if what == "allocate":
        interpreter.resize_tensor_input(0, [3])
        interpreter.allocate_tensors()
    elif what == "remove":
        interpreter.remove_all_delegates()
    elif what == "reset":
        interpreter.reset_all_variables()
    elif what == "close":
        interpreter.close()
    else:
        with pytest.raises(KeyboardInterrupt):
            interpreter.invoke()
    assert log[0] == "done"
