"""The nodes a delegate gets: those it supports, in the largest partitions, as its options allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph import (
    DelegateContext,
    DelegateOptions,
    GraphPartitionHelper,
    Interpreter,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation.rejections import NO_REASON
from delegraph.errors import DelegateError
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import graph_model
from support.looking import Looking


def look(model: bytes, see: Callable[[DelegateContext], None]) -> None:
    with Interpreter(model_content=model) as interpreter:
        interpreter.modify_graph_with_delegate(Looking(see))


def by_name(*ops: str) -> Callable[[Registration, Node, DelegateContext], bool | Rejection]:
    def is_supported(
        registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        return registration.name in ops or Rejection("op", actual=registration.name)

    return is_supported


def series(text: str) -> bytes:
    """A chain of nodes: s is SIN, a is ADD, m is MUL."""
    ops = {"s": ("SIN",), "a": ("ADD", AddOptions()), "m": ("MUL", MulOptions())}
    nodes: list[Any] = []
    for i, letter in enumerate(text):
        op, *options = ops[letter]
        nodes.append((op, f"t{i}" if letter == "s" else f"t{i} t{i}", f"t{i + 1}", *options))
    return graph_model(nodes, inputs="t0", outputs=f"t{len(text)}")


def helped(model: bytes, *ops: str, nodes: tuple[int | None, int] = (None, 0), **span: Any) -> Any:
    """Return the helper, and the nodes it gives for (n, min_nodes_per_partition)."""
    found: list[Any] = []

    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, by_name(*ops))
        helper.partition(**span)
        found.extend((helper, helper.get_nodes_of_first_n_largest_partitions(*nodes)))

    look(model, see)
    return found


def constraints(helper: GraphPartitionHelper) -> dict[int, str]:
    return {index: rejection.constraint for index, rejection in helper.rejections.items()}


# -- asking --------------------------------------------------------------------------------------


def test_nodes_supported_nodes_and_partitions_are_counted() -> None:
    helper, nodes = helped(series("ssasmaass"), "SIN")
    assert (helper.num_total_nodes, helper.num_supported_nodes, helper.num_partitions) == (9, 5, 3)
    assert nodes == [0, 1, 7, 8, 3]
    assert constraints(helper) == dict.fromkeys((2, 4, 5, 6), "op")


def test_a_list_of_nodes_is_taken_without_asking() -> None:
    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, [3, 1, 0])
        helper.partition()
        assert (helper.num_total_nodes, helper.num_supported_nodes) == (3, 0)
        assert helper.num_partitions == 2
        assert helper.get_nodes_of_first_n_largest_partitions() == [0, 1, 3]

    look(series("sasa"), see)


@pytest.mark.parametrize(
    ("span", "taken", "left"),
    [
        ({"start_node_index": 2}, [2, 4], {0: "node-range", 1: "op", 3: "op"}),
        ({"end_node_index": 2}, [0, 2], {1: "op", 3: "op", 4: "node-range"}),
        ({"start_node_index": 1, "end_node_index": 1}, [], {
            0: "node-range", 1: "op", 2: "node-range", 3: "node-range", 4: "node-range",
        }),
        ({"end_node_index": 99}, [0, 2, 4], {1: "op", 3: "op"}),
    ],
)  # fmt: skip
def test_a_range_of_node_indices_leaves_the_others(
    span: dict[str, int], taken: list[int], left: dict[int, str]
) -> None:
    helper, nodes = helped(series("sasas"), "SIN", **span)
    assert nodes == taken
    assert constraints(helper) == left


def test_bare_false_is_no_reason_given() -> None:
    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, lambda registration, node, context: False)
        helper.partition()
        assert helper.rejections == {0: NO_REASON, 1: NO_REASON}
        assert helper.num_partitions == 0
        assert helper.get_nodes_of_first_n_largest_partitions() == []

    look(series("ss"), see)


def test_a_numpy_bool_is_an_answer() -> None:
    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, lambda r, node, c: np.bool_(node.index == 1))  # type: ignore[arg-type,return-value]  # what authors do
        helper.partition()
        assert helper.get_nodes_of_first_n_largest_partitions() == [1]
        assert helper.rejections == {0: NO_REASON}

    look(series("ss"), see)


@pytest.mark.parametrize("answer", [None, "yes", 1, (False, "too large")])
def test_an_answer_that_is_none_is_an_error_that_names_the_node(answer: Any) -> None:
    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(
            context, lambda r, node, c: answer if node.index else True, delegate="mine"
        )
        with pytest.raises(DelegateError, match=r"node 1 \(MUL\).*not a bool or a Rejection") as e:
            helper.partition()
        assert (e.value.delegate, e.value.phase, e.value.node_index) == ("mine", "claim", 1)
        assert repr(answer) in str(e.value)

    look(series("sm"), see)


def test_a_predicate_that_raises_is_an_error_that_names_node_and_cause() -> None:
    def is_supported(registration: Registration, node: Node, context: DelegateContext) -> bool:
        return bool({}["no such key"])

    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, is_supported, delegate="mine")
        message = r"node 0 \(SIN\): KeyError: 'no such key'"
        with pytest.raises(DelegateError, match=message) as e:
            helper.partition()
        assert (e.value.delegate, e.value.phase, e.value.node_index) == ("mine", "claim", 0)

    look(series("s"), see)


# -- choosing ------------------------------------------------------------------------------------

SIZES_3_1_2_2 = "sss a s a ss m ss".replace(" ", "")


@pytest.mark.parametrize(
    ("n", "minimum", "taken"),
    [
        (None, 0, [0, 1, 2, 6, 7, 9, 10, 4]),
        (99, 1, [0, 1, 2, 6, 7, 9, 10, 4]),
        (2, 0, [0, 1, 2, 6, 7]),
        (None, 2, [0, 1, 2, 6, 7, 9, 10]),
        (3, 3, [0, 1, 2]),
        (None, 4, []),
        (0, 0, []),
        (-1, 0, []),
        (1, -5, [0, 1, 2]),
    ],
)
def test_largest_partitions_come_first_and_ties_in_plan_order(
    n: int | None, minimum: int, taken: list[int]
) -> None:
    helper, nodes = helped(series(SIZES_3_1_2_2), "SIN", nodes=(n, minimum))
    assert nodes == taken
    assert set(helper.rejections) == set(range(len(SIZES_3_1_2_2))) - set(taken)


def test_limits_tell_which_of_them_left_a_node() -> None:
    helper, _ = helped(series(SIZES_3_1_2_2), "SIN", nodes=(3, 3))
    assert helper.rejections[6] == Rejection("min-nodes-per-partition", actual=2, expected=3)
    assert helper.rejections[4] == Rejection("max-delegated-partitions", actual=4, expected=3)
    assert helper.rejections[3].constraint == "op"


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        (DelegateOptions(), [0, 1, 2, 6, 7, 9, 10, 4]),
        (DelegateOptions(max_delegated_partitions=-1, min_nodes_per_partition=-1),
         [0, 1, 2, 6, 7, 9, 10, 4]),
        (DelegateOptions(max_delegated_partitions=2), [0, 1, 2, 6, 7]),
        (DelegateOptions(min_nodes_per_partition=3), [0, 1, 2]),
    ],
)  # fmt: skip
def test_limits_of_zero_or_less_in_options_are_none(
    options: DelegateOptions, taken: list[int]
) -> None:
    helper, _ = helped(series(SIZES_3_1_2_2), "SIN")
    assert sorted(helper.get_nodes_within(options)) == sorted(taken)


def test_the_last_choice_says_why_nodes_are_left() -> None:
    helper, _ = helped(series("ssas"), "SIN", nodes=(1, 0))
    assert constraints(helper) == {2: "op", 3: "max-delegated-partitions"}
    assert helper.get_nodes_within(DelegateOptions(min_nodes_per_partition=3)) == []
    assert constraints(helper) == {2: "op", **dict.fromkeys((0, 1, 3), "min-nodes-per-partition")}
    assert helper.get_nodes_within(DelegateOptions()) == [0, 1, 3]
    assert constraints(helper) == {2: "op"}


def test_there_are_no_nodes_before_the_question() -> None:
    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, by_name("SIN"))
        assert (helper.num_total_nodes, helper.num_supported_nodes) == (0, 0)
        assert (helper.num_partitions, helper.rejections) == (0, {})

    look(series("s"), see)


def largest(
    partitions: Sequence[tuple[int, ...]], n: int, minimum: int
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Slow definition: take the first of the largest again and again; return it and the rest."""
    left, taken = list(partitions), list[int]()
    for _ in range(n):
        size = max(map(len, left), default=0)
        if not left or size < minimum:
            break
        first = next(partition for partition in left if len(partition) == size)
        left.remove(first)
        taken += first
    return taken, left


@settings(max_examples=60)
@given(st.text("sam", min_size=1, max_size=30), st.integers(-1, 8), st.integers(-1, 6))
def test_choice_is_that_of_the_definition(text: str, n: int, minimum: int) -> None:
    runs = [list[int]()]
    for i, letter in enumerate(text):
        if letter == "s":
            runs[-1].append(i)
        elif runs[-1]:
            runs.append([])
    partitions = [tuple(run) for run in runs if run]
    helper, nodes = helped(series(text), "SIN", nodes=(n, minimum))
    taken, left = largest(partitions, n, minimum)  # a series: partitions are runs of neighbours
    assert nodes == taken
    assert helper.num_partitions == len(partitions)
    limited = {i for i, reason in helper.rejections.items() if reason.constraint != "op"}
    assert limited == {i for partition in left for i in partition}


# -- a simple delegate's options -----------------------------------------------------------------


class Odd(SimpleDelegateInterface):
    """Takes SIN; one of its methods returns what a test says."""

    def __init__(self, **returned: Any) -> None:
        self._returned = returned

    def name(self) -> str:
        return "odd"

    def delegate_options(self) -> DelegateOptions:
        options: DelegateOptions = self._returned.get("options", DelegateOptions())
        return options

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer: bool = self._returned.get("answer", registration.name == "SIN")
        return answer

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        kernel: SimpleDelegateKernelInterface = self._returned["kernel"]
        return kernel


@pytest.mark.parametrize(
    ("returned", "phase", "node", "message"),
    [
        ({"options": {"max_delegated_partitions": 1}}, "initialize", None,
         r"delegate_options\(\) returned {'max_delegated_partitions': 1}, not DelegateOptions"),
        ({"answer": None}, "claim", 0, r"node 0 \(SIN\): its answer is None"),
        ({"kernel": "none"}, "init", 0, r"returned 'none', not a SimpleDelegateKernelInterface"),
        ({}, "init", 0, r"create_delegate_kernel_interface\(\): KeyError: 'kernel'"),
    ],
)  # fmt: skip
def test_what_a_simple_delegate_returns_by_mistake_is_shown(
    returned: dict[str, Any], phase: str, node: int | None, message: str
) -> None:
    with pytest.raises(DelegateError, match=message) as e:
        Interpreter(model_content=series("sm"), delegates=[Odd(**returned)])
    assert (e.value.delegate, e.value.phase, e.value.node_index) == ("odd", phase, node)
