"""What each delegate flag promises, and what the runtime makes of it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    Interpreter,
    Node,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import DelegateError
from delegraph.schema.options import AddOptions, WhereOptions
from delegraph.testing import graph_model, tensor
from support.by_name import ByName, ByNameKernel, X, Y, partitions, run, sines

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS
HINT = DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE
PROPAGATED = DYNAMIC | DelegateFlags.REQUIRE_PROPAGATED_SHAPES
PROFILING = DelegateFlags.PER_OPERATOR_PROFILING


# -- HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE ---------------------------------------------------


def test_the_hint_holds_when_every_node_is_taken() -> None:
    delegate = ByName("SIN", "ADD", "MUL", flags=HINT)
    interpreter = Interpreter(model_content=sines(), delegates=[delegate])
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
    assert partitions(interpreter) == [("by_name", (0, 1, 2, 3, 4))]


def test_a_hint_that_does_not_hold_names_the_first_node_left_and_changes_nothing() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    before = interpreter.placement
    hinting = ByName("ADD", "SIN", name="hinting", flags=HINT)
    with pytest.raises(DelegateError, match=r"left \d, the first of them node 2: op: is MUL"):
        Interpreter(model_content=sines(), delegates=[hinting])
    with pytest.raises(DelegateError, match="'hinting' could not be applied"):
        interpreter.modify_graph_with_delegate(hinting)
    assert interpreter.placement == before
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_the_hint_spares_the_graph_its_preparation() -> None:
    """A shape known only while invoking is no obstacle for a delegate that takes every node."""
    model = graph_model(
        [("WHERE", "c", "w", WhereOptions()), ("ADD", "w w", "y", AddOptions())],
        inputs="c",
        outputs="y",
        tensors={"c": tensor((4,), "BOOL"), "w": tensor((4, 1), "INT64"),
                 "y": tensor((4, 1), "INT64")},
    )  # fmt: skip
    with pytest.raises(DelegateError, match="static-sized"):
        Interpreter(model_content=model, delegates=[ByName("WHERE", "ADD")])
    interpreter = Interpreter(model_content=model, delegates=[ByName("WHERE", "ADD", flags=HINT)])
    assert partitions(interpreter) == [("by_name", (0, 1))]


# -- REQUIRE_PROPAGATED_SHAPES -----------------------------------------------------------------


class ShapeReading(ByName):
    """Notes the shape that the tensor inside its partition has when its kernel is prepared."""

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        shapes = self.shapes = []

        class Kernel(ByNameKernel):
            def prepare(self, context: DelegateContext, node: Node) -> None:
                shapes.append(context.tensors[1].shape)
                super().prepare(context, node)

        return Kernel(self)

    shapes: list[tuple[int, ...]]


@pytest.mark.parametrize(("flags", "seen"), [(DYNAMIC, (4,)), (PROPAGATED, (7,))])
def test_inner_tensors_have_their_new_shapes_only_for_delegates_that_ask(
    flags: DelegateFlags, seen: tuple[int, ...]
) -> None:
    model = graph_model([("SIN", "x", "s"), ("SIN", "s", "y")], inputs="x", outputs="y")
    delegate = ShapeReading("SIN", flags=flags)
    interpreter = Interpreter(model_content=model, delegates=[delegate])
    interpreter.resize_tensor_input(0, [7])
    x = np.linspace(0, 1, 7, dtype=np.float32)
    np.testing.assert_allclose(run(interpreter, x), np.sin(np.sin(x)), rtol=1e-6)
    assert delegate.shapes[-1] == seen


# -- PER_OPERATOR_PROFILING --------------------------------------------------------------------


class Profiling(ByName):
    """Records an event for each node that it runs."""

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        class Kernel(ByNameKernel):
            def eval(self, context: DelegateContext, node: Node) -> None:
                for inner, registration in self.nodes:
                    start = time.perf_counter_ns()
                    context.record_event(registration.name, inner.index, start, 7)
                super().eval(context, node)

        return Kernel(self)


def events(interpreter: Interpreter) -> list[tuple[str, int, str | None]]:
    interpreter.allocate_tensors()
    with interpreter.profile() as profile:
        interpreter.invoke()
    return [(event.name, event.node_index, event.delegate) for event in profile.events]


def test_a_profile_has_an_event_for_each_node_and_each_delegate_node() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    assert events(interpreter) == [
        ("by_name", 5, "by_name"),
        ("ADD", 1, None),
        ("MUL", 2, None),
        ("by_name", 6, "by_name"),
        ("ADD", 4, None),
    ]


def test_a_delegate_that_profiles_its_own_nodes_replaces_the_event_of_the_whole() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[Profiling("SIN", flags=PROFILING)])
    assert events(interpreter)[0] == ("SIN", 0, "by_name")
    assert ("by_name", 5, "by_name") not in events(interpreter)


def test_the_event_of_the_whole_can_be_forced() -> None:
    interpreter = Interpreter(
        model_content=sines(),
        delegates=[Profiling("SIN", flags=PROFILING)],
        experimental_force_delegate_node_profiling=True,
    )
    assert events(interpreter)[:2] == [("SIN", 0, "by_name"), ("by_name", 5, "by_name")]


def test_a_profile_may_have_both_the_whole_and_its_nodes() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[Profiling("SIN", flags=PROFILING)])
    interpreter.allocate_tensors()
    with interpreter.profile(whole_partitions=True) as profile:
        interpreter.invoke()
    names = [(event.name, event.node_index) for event in profile.events[:2]]
    assert names == [("SIN", 0), ("by_name", 5)]


def test_a_kernel_knows_whether_a_profile_is_taken_and_tells_of_fused_nodes() -> None:
    seen: list[bool] = []

    class Fusing(ByName):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            class Kernel(ByNameKernel):
                def eval(self, context: DelegateContext, node: Node) -> None:
                    seen.append(context.is_profiling)
                    first, *others = (inner.index for inner, _ in self.nodes)
                    context.record_event("FUSED", first, 0, 7, others)
                    super().eval(context, node)

            return Kernel(self)

    delegate = Fusing("SIN", "ADD", "MUL", flags=PROFILING)
    interpreter = Interpreter(model_content=sines(), delegates=[delegate])
    interpreter.allocate_tensors()
    with interpreter.profile() as profile:
        interpreter.invoke()
    interpreter.invoke()
    assert seen == [True, False]
    (event,) = profile.events
    assert (event.name, event.node_index, event.fused) == ("FUSED", 0, (1, 2, 3, 4))


def test_nothing_is_recorded_outside_the_profile_and_rows_are_plain() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[Profiling("SIN", flags=PROFILING)])
    interpreter.allocate_tensors()
    with interpreter.profile() as profile:
        interpreter.invoke()
    interpreter.invoke()
    rows: list[dict[str, Any]] = profile.rows()
    assert len(rows) == 5
    assert rows[0]["name"] == "SIN"
    assert all(row["duration"] >= 0 for row in rows)
    np.testing.assert_allclose(run(interpreter, X), Y, rtol=1e-6)
