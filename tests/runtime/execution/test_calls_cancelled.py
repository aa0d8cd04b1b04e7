"""Calls that are stopped, by ``cancel`` or by ``time_limit``, and what follows them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import (
    Delegate,
    DelegateContext,
    Eval,
    FailurePolicy,
    Interpreter,
    Limits,
    Node,
    OpContext,
    PlacementPolicy,
    Registration,
    Rejection,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import ArgumentError, CallCancelledError, TimeLimitError
from delegraph.micro import MicroInterpreter
from delegraph.schema.options import (
    AddOptions,
    IfOptions,
    LessOptions,
    StablehloWhileOptions,
    WhileOptions,
)
from delegraph.testing import graph_model, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.by_name import ByName, Y, run, sines
from support.running import result_of

F = np.float32
LIMIT = 0.5  # seconds; calls that end by themselves take milliseconds, even on a busy machine
LOOPS = {
    "WHILE": WhileOptions(cond_subgraph_index=1, body_subgraph_index=2),
    "STABLEHLO_WHILE": StablehloWhileOptions(cond_subgraph_index=1, body_subgraph_index=2),
}


def loop(op: str = "WHILE") -> bytes:
    """While i < n: i = i + step. Inputs i, n, step; the first output is the last i."""
    start, end = [tensor(()) for _ in range(3)], [tensor(()) for _ in range(3)]
    i, n, _ = condition = [tensor(()) for _ in range(3)]
    less = tensor((), "BOOL")
    body, j = [tensor(()) for _ in range(3)], tensor(())
    return model_of(
        Graph(start, end, [Op(op, start, end, LOOPS[op])]),
        Graph(condition, [less], [Op("LESS", [i, n], [less], LessOptions())]),
        Graph(body, [j, *body[1:]], [Op("ADD", [body[0], body[2]], [j], AddOptions())]),
    )


def empty_loop() -> bytes:
    """While x: nothing. No subgraph but the first has a node."""
    x, y, condition, body = (tensor((), "BOOL") for _ in range(4))
    loop = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    return model_of(
        Graph([x], [y], [Op("WHILE", [x], [y], loop)]),
        Graph([condition], [condition]),
        Graph([body], [body]),
    )


def allocated(model: bytes, **options: Any) -> Interpreter:
    interpreter = Interpreter(model_content=model, **options)
    interpreter.allocate_tensors()
    return interpreter


def give(interpreter: Interpreter, *values: float) -> None:
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], np.array(value, detail["dtype"]))


ENDLESS = 0.0, 3.0, 0.0
ENDING = 0.0, 3.0, 1.0


@contextmanager
def cancelling(cancel: Callable[[], None]) -> Iterator[None]:
    """Cancel again and again, in another thread."""
    is_over = threading.Event()

    def keep_on() -> None:
        while not is_over.wait(0.001):
            cancel()

    thread = threading.Thread(target=keep_on)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("delegate", [[], [ByName("ADD")]])
@pytest.mark.parametrize("op", LOOPS)
def test_a_loop_without_end_is_cancelled_from_another_thread(op: str, delegate: Any) -> None:
    interpreter = allocated(loop(op), delegates=delegate)
    give(interpreter, *ENDLESS)
    with cancelling(interpreter.cancel), pytest.raises(CallCancelledError) as caught:
        interpreter.invoke()
    assert str(caught.value) == "Client requested cancel during Invoke()"
    give(interpreter, *ENDING)
    assert result_of(interpreter) == 3


@pytest.mark.parametrize("op", LOOPS)
def test_a_loop_without_end_has_a_time_limit(op: str) -> None:
    interpreter = allocated(loop(op), limits=Limits(time=LIMIT))
    for _ in range(2):
        give(interpreter, *ENDLESS)
        with pytest.raises(TimeLimitError, match=r"more than the time limit of 0\.5 s and was"):
            interpreter.invoke()
    assert interpreter.incidents == ()


def test_a_loop_of_subgraphs_without_nodes_is_stopped() -> None:
    interpreter = allocated(empty_loop(), limits=Limits(time=LIMIT))
    give(interpreter, True)
    with pytest.raises(TimeLimitError):
        interpreter.invoke()


def test_a_loop_in_a_branch_is_stopped() -> None:
    condition, x, y = tensor((), "BOOL"), tensor((), "BOOL"), tensor((), "BOOL")
    branch, result = tensor((), "BOOL"), tensor((), "BOOL")
    inner, other = tensor((), "BOOL"), tensor((), "BOOL")
    options = IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    again = WhileOptions(cond_subgraph_index=2, body_subgraph_index=3)
    model = model_of(
        Graph([condition, x], [y], [Op("IF", [condition, x], [y], options)]),
        Graph([branch], [result], [Op("WHILE", [branch], [result], again)]),
        Graph([inner], [inner]),
        Graph([other], [other]),
    )
    interpreter = allocated(model, limits=Limits(time=LIMIT))
    give(interpreter, True, True)
    with pytest.raises(TimeLimitError):
        interpreter.invoke()
    give(interpreter, True, False)
    assert result_of(interpreter) == 0


def test_a_signal_handler_may_cancel() -> None:
    def copies(context: OpContext, node: Node) -> Eval:
        return lambda: signal.raise_signal(signal.SIGTERM)

    model = graph_model([("Raise", "x", "a"), ("SIN", "a", "y")], inputs="x", outputs="y")
    interpreter = allocated(model, custom_ops={"Raise": Registration("Raise", copies)})
    before = signal.signal(signal.SIGTERM, lambda *_: interpreter.cancel())
    try:
        with pytest.raises(CallCancelledError):
            interpreter.invoke()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_cancelling_when_nothing_runs_stops_no_later_call() -> None:
    interpreter = allocated(loop())
    interpreter.cancel()
    give(interpreter, *ENDING)
    interpreter.cancel()
    assert result_of(interpreter) == 3
    interpreter.cancel()
    interpreter.allocate_tensors()
    assert result_of(interpreter) == 3
    interpreter.cancel()
    interpreter.subgraph().invoke()
    interpreter.close()
    interpreter.cancel()


def test_a_signature_is_stopped() -> None:
    from delegraph.schema import tables
    from delegraph.schema.reader import read_model
    from delegraph.schema.writer import write_model

    record = read_model(np.frombuffer(loop(), np.uint8))
    named = [tables.TensorMap(name=name, tensor_index=i) for i, name in enumerate("ins")]
    ends = (tables.TensorMap(name="end", tensor_index=record.subgraphs[0].outputs[0]),)
    signature = tables.SignatureDef(signature_key="count", inputs=tuple(named), outputs=ends)
    model = write_model(record.replace(signature_defs=(signature,)))
    interpreter = Interpreter(model_content=model, limits=Limits(time=LIMIT))
    count = interpreter.get_signature_runner("count")
    with pytest.raises(TimeLimitError):
        count(i=F(0), n=F(3), s=F(0))
    assert count(i=F(0), n=F(3), s=F(1)) == {"end": 3}


# -- delegates -----------------------------------------------------------------------------------


class Patient(Delegate):
    """Takes every SIN and waits at one moment until it is to stop.

    Attributes:
        wrap: whether it tells of that in an error of its own.
    """

    def __init__(self, moment: str, *, wrap: bool = False) -> None:
        self.moment = moment
        self.wrap = wrap

    def name(self) -> str:
        return "patient"

    def prepare(self, context: DelegateContext) -> None:
        self.wait("claim", context)
        nodes = [
            index
            for index in context.get_execution_plan()
            if context.get_node_and_registration(index)[1].name == "SIN"
        ]
        kernel = Registration("Patient", self.prepare_kernel)
        context.replace_node_subsets_with_delegate_kernels(kernel, nodes, self)

    def prepare_kernel(self, context: Any, node: Node) -> Eval:
        self.wait("prepare", context)
        y = context.tensors[node.outputs[0]]
        context.resize_tensor(y, context.tensors[node.inputs[0]].shape)
        return lambda: self.wait("eval", context)

    def wait(self, moment: str, context: DelegateContext) -> None:
        stop = context.cancellation
        if moment != self.moment or stop is None:
            return
        while not stop.word[0]:
            pass
        if self.wrap:
            raise ValueError("somebody told me to stop")
        stop.raise_if_requested()


SINE = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")


@pytest.mark.repetition(3)
@pytest.mark.parametrize("on_failure", ["raise", "fallback", "shadow"])
@pytest.mark.parametrize("wrap", [False, True])
def test_a_delegate_that_is_stopped_has_not_failed(wrap: bool, on_failure: Any) -> None:
    patient = Patient("eval", wrap=wrap)
    interpreter = allocated(
        SINE,
        delegates=[patient],
        failures=FailurePolicy(on_failure=on_failure),
        limits=Limits(time=LIMIT),
    )
    interpreter.set_tensor(0, F([0, 0, 0, 0]))
    with pytest.raises(TimeLimitError):
        interpreter.invoke()
    assert interpreter.incidents == ()
    patient.moment = ""
    interpreter.invoke()


@pytest.mark.parametrize("moment", ["claim", "prepare"])
def test_a_delegate_that_is_stopped_while_it_is_applied_changes_nothing(moment: str) -> None:
    interpreter = allocated(SINE, limits=Limits(time=LIMIT))
    interpreter.set_tensor(0, F([0, 0, 0, 0]))
    with pytest.raises(TimeLimitError):
        interpreter.modify_graph_with_delegate(Patient(moment))
    assert not interpreter.placement.partitions
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == [0, 0, 0, 0]


class Cancelling(ByName):
    """Takes every SIN, and has the call cancelled at one moment; counts what comes to it.

    Attributes:
        interpreter: whose call it is.
    """

    interpreter: Interpreter

    def __init__(self, moment: str) -> None:
        super().__init__("SIN")
        self.moment = moment

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        self.note("claim")
        return super().is_node_supported_by_delegate(registration, node, context)

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        self.note("create")
        return super().create_delegate_kernel_interface()

    def note(self, moment: str) -> None:
        self.calls.append(moment)
        if moment == self.moment:
            self.interpreter.cancel()


@pytest.mark.parametrize("moment", ["claim", "create"])
def test_no_more_of_a_delegate_is_called_after_the_request(moment: str) -> None:
    interpreter = allocated(sines())
    delegate = Cancelling(moment)
    delegate.interpreter = interpreter
    with pytest.raises(CallCancelledError):
        interpreter.modify_graph_with_delegate(delegate)
    assert delegate.calls.count(moment) == 1
    assert run(interpreter).tolist() == pytest.approx(Y.tolist(), rel=1e-6)


def test_no_more_nodes_are_prepared_after_the_request() -> None:
    def prepare(context: OpContext, node: Node) -> Eval:
        prepared.append(node.index)
        interpreter.cancel()
        return lambda: None

    prepared: list[int] = []
    model = graph_model([("Stop", "x", "a"), ("Stop", "a", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(
        model_content=model, custom_ops={"Stop": Registration("Stop", prepare)}
    )
    with pytest.raises(CallCancelledError):
        interpreter.allocate_tensors()
    assert prepared == [0]


def test_making_an_interpreter_has_a_time_limit() -> None:
    with pytest.raises(TimeLimitError):
        Interpreter(model_content=SINE, delegates=[Patient("claim")], limits=Limits(time=LIMIT))


def test_allocating_has_a_time_limit() -> None:
    patient = Patient("")
    interpreter = Interpreter(model_content=SINE, delegates=[patient], limits=Limits(time=LIMIT))
    interpreter.resize_tensor_input(0, [2])
    patient.moment = "prepare"
    with pytest.raises(TimeLimitError):
        interpreter.allocate_tensors()


def test_measuring_has_the_time_limit_of_the_call() -> None:
    with pytest.raises(TimeLimitError):
        Interpreter(
            model_content=SINE,
            delegates=[Patient("eval")],
            placement=PlacementPolicy(partitions="measured"),
            limits=Limits(time=LIMIT),
        )


# -- other hosts, wrong arguments ----------------------------------------------------------------


def test_a_micro_interpreter_is_stopped() -> None:
    interpreter = MicroInterpreter(loop(), bytearray(1 << 16), time_limit=LIMIT)
    interpreter.allocate_tensors()
    for position, value in enumerate(ENDLESS):
        interpreter.input(position).data[...] = value
    with pytest.raises(TimeLimitError):
        interpreter.invoke()
    for position, value in enumerate(ENDING):
        interpreter.input(position).data[...] = value
    interpreter.cancel()
    interpreter.invoke()
    assert interpreter.output(0).data == 3


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf"), True, "1"])
def test_a_time_limit_is_a_positive_number(limit: Any) -> None:
    with pytest.raises(ArgumentError, match=r"Limits\.time is a positive number of"):
        Interpreter(model_content=SINE, limits=Limits(time=limit))


def test_an_interpreter_with_a_time_limit_does_not_keep_python_from_ending(tmp_path: Path) -> None:
    (tmp_path / "loop.tflite").write_bytes(loop())
    made = "Interpreter('loop.tflite', limits=Limits(time=9))"
    code = f"from delegraph import *; it = {made}; it.allocate_tensors()"
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
