"""Rules and ``require`` of an interpreter hold for any delegate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import (
    Delegate,
    DelegateContext,
    Interpreter,
    PlacementPolicy,
    PlacementRule,
    Registration,
)
from delegraph.errors import ArgumentError, DelegateError, PlacementError
from delegraph.testing import graph_model
from support.by_name import ByName, Y, partitions, run, sines

OPS = ("SIN", "ADD", "MUL")


class Greedy(Delegate):
    """Asks for every node of the plan, whatever it is; computes nothing."""

    def __init__(self) -> None:
        self.previewed: list[tuple[int, ...]] = []

    def name(self) -> str:
        return "greedy"

    def prepare(self, context: DelegateContext) -> None:
        nodes = context.get_execution_plan()
        self.previewed += [
            params.nodes_to_replace for params in context.preview_delegate_partitioning(nodes)
        ]
        registration = Registration("greedy", lambda context, node: lambda: None)
        context.replace_node_subsets_with_delegate_kernels(registration, nodes, self)


def owners(interpreter: Interpreter) -> list[str | None]:
    return [node.delegate for node in interpreter.placement.nodes]


@pytest.mark.parametrize(
    "rule",
    [
        PlacementRule("exclude", nodes=["0", 3]),
        PlacementRule("exclude", "by_name", operators="SIN"),
        PlacementRule("exclude", tensors=["a", "d"], operators="SIN"),
    ],
    ids=str,
)
def test_excluded_nodes_stay_behind_and_say_why(rule: PlacementRule) -> None:
    interpreter = Interpreter(
        model_content=sines(), delegates=[ByName(*OPS)], placement=PlacementPolicy(rules=[rule])
    )
    assert owners(interpreter) == [None, "by_name", "by_name", None, "by_name"]
    reason = interpreter.placement.nodes[3].rejections["by_name"]
    assert (reason.constraint, str(reason)) == ("rule", f"rule 1: {rule}")
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_rules_hold_for_delegates_that_partition_themselves() -> None:
    greedy = Greedy()
    interpreter = Interpreter(
        model_content=sines(),
        delegates=[greedy],
        placement=PlacementPolicy(rules=[PlacementRule("exclude", nodes=2)]),
    )
    assert owners(interpreter) == ["greedy", "greedy", None, "greedy", "greedy"]
    assert 2 not in {node for nodes in greedy.previewed for node in nodes}
    assert interpreter.placement.nodes[2].rejections["greedy"].constraint == "rule"


def test_a_delegate_that_may_take_everything_from_another_may_not_take_barred_nodes() -> None:
    interpreter = Interpreter(
        model_content=sines(),
        delegates=[ByName("SIN"), Greedy()],
        placement=PlacementPolicy(rules=[PlacementRule("exclude", "greedy", nodes=0)]),
    )
    assert owners(interpreter) == ["by_name", "greedy", "greedy", "greedy", "greedy"]


def test_pinned_nodes_wait_for_their_delegate() -> None:
    interpreter = Interpreter(
        model_content=sines(),
        delegates=[ByName(*OPS, name="first"), ByName(*OPS, name="second")],
        placement=PlacementPolicy(rules=[PlacementRule("pin", "second", operators="ADD")]),
    )
    assert owners(interpreter) == ["first", "second", "first", "first", "second"]
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_a_missed_pin_is_an_error_with_the_delegates_reason() -> None:
    with pytest.raises(PlacementError, match=r"node 2 \(MUL\): op: is MUL, needs SIN$"):
        Interpreter(
            model_content=sines(),
            delegates=[ByName("SIN")],
            placement=PlacementPolicy(rules=[PlacementRule("pin", "by_name", nodes="2-3")]),
        )


def test_rules_hold_after_a_resize_and_for_delegates_that_come_later() -> None:
    interpreter = Interpreter(
        model_content=graph_model([("SIN", "x", "a"), ("SIN", "a", "y")], inputs="x", outputs="y"),
        delegates=[ByName("SIN")],
        placement=PlacementPolicy(rules=[PlacementRule("exclude", nodes=0)]),
    )
    interpreter.resize_tensor_input(0, [7])
    interpreter.allocate_tensors()
    assert partitions(interpreter) == [("by_name", (1,))]
    interpreter.modify_graph_with_delegate(ByName("SIN", name="later"))
    assert partitions(interpreter) == [("by_name", (1,))]


def test_rules_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text("[[rule]]\naction = 'exclude'\noperators = 'SIN'")
    interpreter = Interpreter(
        model_content=sines(), delegates=[ByName(*OPS)], placement=PlacementPolicy(rules=file)
    )
    assert owners(interpreter)[0] is None


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([PlacementRule("exclude", nodes=5)], "matches nothing"),
        ("no/such.toml", "cannot be read"),
        (3, "rules is a list of PlacementRule or a file"),
    ],
    ids=["no node", "no file", "number"],
)
def test_mistakes_in_rules_are_argument_errors(rules: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Interpreter(model_content=sines(), placement=PlacementPolicy(rules=rules))


def test_require_full_fails_when_a_node_stays_behind() -> None:
    with pytest.raises(PlacementError, match=r"2 nodes stay behind: SIN \(nodes 0, 3: ") as caught:
        Interpreter(
            model_content=sines(),
            delegates=[ByName("ADD", "MUL")],
            placement=PlacementPolicy(require="full"),
        )
    assert isinstance(caught.value, DelegateError)


def test_require_full_counts_all_delegates_together() -> None:
    delegates = [ByName("ADD", "MUL"), ByName("SIN", name="second")]
    interpreter = Interpreter(
        model_content=sines(), delegates=delegates, placement=PlacementPolicy(require="full")
    )
    assert None not in owners(interpreter)


def test_require_full_agrees_with_rules_only_when_these_leave_nothing() -> None:
    with pytest.raises(PlacementError, match="by_name says rule 1: exclude nodes 1 from every"):
        Interpreter(
            model_content=sines(),
            delegates=[ByName(*OPS)],
            placement=PlacementPolicy(rules=[PlacementRule("exclude", nodes=1)], require="full"),
        )


def test_a_kernel_is_not_made_for_a_barred_node() -> None:
    delegate = ByName(*OPS)
    rule = PlacementRule("exclude", operators="*")
    Interpreter(
        model_content=sines(), delegates=[delegate], placement=PlacementPolicy(rules=[rule])
    )
    assert delegate.calls == []
