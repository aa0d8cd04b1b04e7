"""Placement rules and ``require`` in the official interpreter, as in Delegraph's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, OpResolverType, PlacementPolicy, PlacementRule
from delegraph.errors import ArgumentError, PlacementError
from delegraph.native import LiteRtInterpreter
from delegraph.testing import constant, graph_model
from support.by_name import ByName, X, Y, doubling_while, sines
from support.signatures import two_signatures

pytest.importorskip("ai_edge_litert.interpreter")

ALONE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES

RULES: dict[str, Sequence[PlacementRule]] = {
    "a node off one delegate": [PlacementRule("exclude", "by_name", nodes=1)],
    "an operator off all": [PlacementRule("exclude", operators="SIN")],
    "by tensor": [PlacementRule("exclude", tensors="c")],
    "off another delegate": [PlacementRule("exclude", "other", operators="*")],
    "pinned to another": [PlacementRule("pin", "other", nodes="0-1")],
    "pinned": [PlacementRule("pin", "by_name", nodes="2-3")],
}


def allocated(kind: Any, *delegates: Any, **arguments: Any) -> Any:
    arguments = {"model_content": sines(), "experimental_op_resolver_type": ALONE, **arguments}
    interpreter = kind(delegates=list(delegates), **arguments)
    interpreter.allocate_tensors()
    return interpreter


def taker() -> ByName:
    return ByName("SIN", "ADD", "MUL")


@pytest.mark.parametrize("name", RULES)
def test_rules_place_nodes_as_in_delegraphs_interpreter(name: str) -> None:
    ours, theirs = (
        allocated(kind, taker(), placement=PlacementPolicy(rules=RULES[name]))
        for kind in (Interpreter, LiteRtInterpreter)
    )
    assert [n.delegate for n in theirs.placement.nodes] == [
        n.delegate for n in ours.placement.nodes
    ]
    reasons = [
        {d: str(r) for d, r in n.rejections.items()}
        for interpreter in (ours, theirs)
        for n in interpreter.placement.nodes
    ]
    assert reasons[:5] == reasons[5:]


def test_results_are_right_when_rules_split_a_partition() -> None:
    interpreter = allocated(
        LiteRtInterpreter,
        taker(),
        placement=PlacementPolicy(rules=[PlacementRule("exclude", nodes=1)]),
    )
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    np.testing.assert_allclose(
        interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), Y, rtol=1e-6
    )


def test_rules_count_nodes_of_the_model_after_an_earlier_delegate() -> None:
    first, second = ByName("SIN", name="first"), ByName("ADD", "MUL", name="second")
    rules = [PlacementRule("exclude", "second", nodes=4)]
    interpreter = allocated(
        LiteRtInterpreter, first, second, placement=PlacementPolicy(rules=rules)
    )
    taken = [node.delegate for node in interpreter.placement.nodes]
    assert taken == ["first", "second", "second", "first", None]


def test_rules_hold_in_other_subgraphs() -> None:
    rules = [PlacementRule("exclude", "by_name", subgraph=1)]
    delegate = ByName("LESS", "ADD")
    interpreter = allocated(
        LiteRtInterpreter,
        delegate,
        model_content=doubling_while(),
        placement=PlacementPolicy(rules=rules),
    )
    taken = {(n.subgraph, n.op): n.delegate for n in interpreter.placement.nodes}
    assert taken == {(0, "WHILE"): None, (1, "LESS"): None, (2, "ADD"): "by_name"}


def test_rules_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text("[[rule]]\naction = 'exclude'\nnodes = 3\ndelegate = 'by_name'")
    interpreter = allocated(LiteRtInterpreter, taker(), placement=PlacementPolicy(rules=file))
    rejection = interpreter.placement.nodes[3].rejections["by_name"]
    assert str(rejection) == "rule 1 of rules.toml: exclude nodes 3 from by_name"


def test_a_rule_without_a_node_is_refused() -> None:
    with pytest.raises(ArgumentError, match="matches nothing: the last node is 4"):
        allocated(
            LiteRtInterpreter,
            taker(),
            placement=PlacementPolicy(rules=[PlacementRule("exclude", nodes=9)]),
        )


def test_a_missed_pin_names_node_and_reason() -> None:
    rules = [PlacementRule("pin", "by_name", nodes=1)]
    with pytest.raises(PlacementError, match=r"node 1 \(ADD\): op: is ADD, needs SIN"):
        allocated(LiteRtInterpreter, ByName("SIN"), placement=PlacementPolicy(rules=rules))


def test_require_full_lists_what_no_delegate_has() -> None:
    with pytest.raises(PlacementError, match=r"3 nodes stay behind: ADD \(nodes 1, 4: "):
        allocated(LiteRtInterpreter, ByName("SIN"), placement=PlacementPolicy(require="full"))
    allocated(LiteRtInterpreter, taker(), placement=PlacementPolicy(require="full"))


def test_require_full_does_not_count_what_xnnpack_takes_by_default() -> None:
    model = graph_model(
        [("SIN", "x", "s"), ("MUL", "s two", "y")],
        inputs="x",
        outputs="y",
        tensors={"two": constant(np.full(1, 2, np.float32))},
    )
    auto = OpResolverType.AUTO
    arguments = {"model_content": model, "experimental_op_resolver_type": auto}
    found = allocated(LiteRtInterpreter, ByName("SIN"), **arguments)
    assert str(found.placement) == (
        "2 nodes: by_name takes 1 in 1 partition; the rest: XNNPACK, by default"
    )
    assert [p.is_by_default for p in found.placement.partitions] == [False, True]
    with pytest.raises(PlacementError, match=r"1 node stays behind: MUL \(node 1: "):
        allocated(
            LiteRtInterpreter, ByName("SIN"), placement=PlacementPolicy(require="full"), **arguments
        )


def test_an_unknown_requirement_is_refused() -> None:
    with pytest.raises(ArgumentError, match="require is 'most', expected one of: None, 'full'"):
        allocated(LiteRtInterpreter, placement=PlacementPolicy(require="most"))


def test_a_node_that_xnnpack_takes_against_a_rule_is_an_error() -> None:
    rules = [PlacementRule("exclude", nodes="1-2")]
    message = (
        r"XNNPACK has nodes that rules keep from it: node 1 \(ADD\): rule 1: exclude nodes 1-2"
    )
    with pytest.raises(PlacementError, match=message):
        allocated(
            LiteRtInterpreter,
            taker(),
            placement=PlacementPolicy(rules=rules),
            experimental_op_resolver_type=OpResolverType.AUTO,
        )


def test_a_signature_is_checked_too() -> None:
    rules = [PlacementRule("exclude", "sine", signature="wave")]
    excluding, requiring = (
        LiteRtInterpreter(
            model_content=two_signatures(),
            delegates=[ByName("SIN", "NEG", name="sine")],
            experimental_op_resolver_type=ALONE,
            placement=asked,
        )
        for asked in (PlacementPolicy(rules), PlacementPolicy(rules, "full"))
    )
    one = np.ones(1, np.float32)
    np.testing.assert_allclose(excluding.get_signature_runner("wave")(x=one)["y"], np.sin(one))
    with pytest.raises(PlacementError, match="1 node stays behind: SIN"):
        requiring.get_signature_runner("wave")(x=one)


def test_old_keywords_work_and_warn() -> None:
    rules = [PlacementRule("exclude", operators="SIN")]
    with pytest.warns(DeprecationWarning, match=r"rules=.*use placement=PlacementPolicy\(rules="):
        interpreter = allocated(LiteRtInterpreter, taker(), rules=rules)
    assert {node.op for node in interpreter.placement.nodes if node.delegate is None} == {"SIN"}


def test_measured_partitions_are_refused() -> None:
    measured = PlacementPolicy(partitions="measured")
    text = r"PlacementPolicy\(partitions=\.\.\.\) needs delegraph\.Interpreter"
    with pytest.raises(ArgumentError, match=text):
        LiteRtInterpreter(model_content=sines(), placement=measured)
