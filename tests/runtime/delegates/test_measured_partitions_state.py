"""Measuring partitions: the data made up for it, and what must be as before afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from delegraph import (
    DelegateContext,
    DelegateOptions,
    Interpreter,
    Node,
    OpContext,
    Registration,
    SimpleDelegateKernelInterface,
)
from delegraph.operators.registration import Eval
from delegraph.runtime.delegates.measured_partitions import losing_nodes
from delegraph.schema.options import GatherOptions
from delegraph.testing import constant, graph_model, tensor
from support.timed_delegate import Clock, Timed, TimedKernel, chain, kernels, measure, watching


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
        lost = losing_nodes(
            session.subgraphs, session.subgraphs[0].plan.applied[0].delegate, clock=clock
        )
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
            losing_nodes(
                session.subgraphs, session.subgraphs[0].plan.applied[0].delegate, clock=clock
            )
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
    ops = {"Accumulate": accumulate(clock), "Watch": Registration("Watch", watching(seen))}
    with Interpreter(model_content=model, custom_ops=ops) as interpreter:
        interpreter.modify_graph_with_delegate(Accumulating(clock, {"Accumulate": 1e-3}))
        session = interpreter.session
        subgraphs = session.subgraphs
        losing_nodes(subgraphs, subgraphs[0].plan.applied[0].delegate, clock=clock)
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
        assert losing_nodes(session.subgraphs, plan.applied[0].delegate, clock=clock) == {}
        assert plan.nodes == before
        assert not session.subgraphs[0].is_allocated
