"""A delegate and custom operators that take the time a test says, by a clock only they move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from delegraph import (
    DelegateContext,
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
from delegraph.operators.registration import Eval, Prepare
from delegraph.runtime.delegates.measured_partitions import losing_nodes
from delegraph.testing import graph_model

US = 1e-6


class Clock:
    """Clock that advances only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


class Timed(SimpleDelegateInterface):
    """Delegate that takes a set time per operator name, and copies inputs to outputs."""

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
    """Return custom operators that copy their input and take a set time."""

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
        return losing_nodes(interpreter.session.subgraphs, delegate, clock=clock)


def watching(seen: list[Any]) -> Prepare:
    """Return a ``prepare`` that copies the first input, and records input and output in *seen*."""

    def prepare(context: OpContext, node: Node) -> Eval:
        a, b, y = (context.tensors[i] for i in (*node.inputs, *node.outputs))
        context.resize_tensor(y, a.shape)

        def run() -> None:
            seen.append((a.data.copy(), b.data.copy()))
            np.copyto(y.data, a.data)

        return run

    return prepare
