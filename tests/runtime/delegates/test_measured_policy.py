"""The measured policy as users and delegates ask for it, with the rules and policies beside it."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from delegraph import (
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    DelegateParams,
    FailurePolicy,
    Interpreter,
    Node,
    OpContext,
    PlacementPolicy,
    Registration,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation.rules import PlacementRule
from delegraph.operators.registration import Eval
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import graph_model
from support.timed_delegate import Clock, Timed, TimedKernel, chain, kernels


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
    [("ADD", "x x", "a", AddOptions()), ("MUL", "a a", "b", MulOptions()), ("Idle", "b", "y")],
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
    policy = PlacementPolicy(partitions="measured") if who == "user" else None
    with Interpreter(
        model_content=CRAWL,
        custom_ops={"Idle": Registration("Idle", idle)},
        delegates=[Crawling("measured" if who == "delegate" else "largest")],
        placement=policy,
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
        placement=PlacementPolicy(
            partitions="measured", rules=[PlacementRule("pin", "crawling", operators="ADD")]
        ),
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
        placement=PlacementPolicy(partitions="measured"),
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
        placement=PlacementPolicy(partitions="measured"),
        failures=FailurePolicy(on_failure="shadow"),
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
        model_content=CRAWL, custom_ops={"Idle": Registration("Idle", idle)}, delegates=[Crawling()]
    ) as interpreter:
        assert taken(interpreter) == [(0,), (2,)]
