"""Placement rules: which nodes they mean, what they bar, and how mistakes in them are told."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from delegraph import PlacementRule, Rejection
from delegraph.delegation.matched_rules import MatchedRules
from delegraph.delegation.placement import NodePlacement, Placement
from delegraph.delegation.rules import require_full
from delegraph.delegation.rules_file import Rules, placement_rules, rules_text
from delegraph.errors import ArgumentError, PlacementError
from delegraph.graph import parse_model
from delegraph.graph.model import Model, Signature
from delegraph.schema.options import AddOptions, WhileOptions
from delegraph.testing import graph_model, subgraphs_model
from support.by_name import sines

SINES = parse_model(sines())  # SIN x>a, ADD a x>b, MUL x two>c, SIN c>d, ADD b d>y

ADD = ([("ADD", "x x", "y", AddOptions())], "x", "y", {})
SIN = ([("SIN", "p", "q")], "p", "q", {})


def loop() -> Model:
    """Subgraph 0 calls 1 and 2 by a WHILE; nobody calls 3; 4 holds validation data."""
    call = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main: Any = ([("WHILE", "x", "y", call)], "x", "y", {})
    names = ["main", "cond", "body", "other", "VALIDATION:main"]
    content = subgraphs_model([main, SIN, ADD, SIN, SIN], names=names)
    signatures = (Signature("run", {}, {}, 0), Signature("alone", {}, {}, 3))
    return dataclasses.replace(parse_model(content), signatures=signatures)


def bind(rules: Rules, model: Model) -> MatchedRules:
    return MatchedRules(placement_rules(rules), model)


def meant(model: Model, **conditions: Any) -> dict[int, list[int]]:
    """Return the nodes of each subgraph that a rule with *conditions* means."""
    bound = bind([PlacementRule("exclude", **conditions)], model)
    barred = {s.index: sorted(bound.barred(s.index, "any")) for s in model.subgraphs}
    return {subgraph: nodes for subgraph, nodes in barred.items() if nodes}


@pytest.mark.parametrize(
    ("conditions", "nodes"),
    [
        ({"nodes": 3}, [3]),
        ({"nodes": [0, "2-3"]}, [0, 2, 3]),
        ({"nodes": " 1 - 2 "}, [1, 2]),
        ({"nodes": "3-99999999999999"}, [3, 4]),
        ({"operators": "ADD"}, [1, 4]),
        ({"operators": ["MUL", "S?N"]}, [0, 2, 3]),
        ({"operators": "*"}, [0, 1, 2, 3, 4]),
        ({"tensors": "a"}, [0, 1]),
        ({"tensors": ["tw*"]}, [2]),
        ({"tensors": ["[bd]"]}, [1, 3, 4]),
        ({"operators": "ADD", "tensors": "x"}, [1]),
        ({"operators": "SIN", "nodes": "1-4"}, [3]),
        ({"subgraph": 0, "operators": "SIN"}, [0, 3]),
    ],
    ids=str,
)
def test_nodes_meet_all_conditions(conditions: dict[str, Any], nodes: list[int]) -> None:
    assert meant(SINES, **conditions) == {0: nodes}


def test_a_bracket_may_be_part_of_a_tensor_name() -> None:
    model = parse_model(graph_model([("SIN", "x[0]", "y")], inputs="x[0]", outputs="y"))
    assert meant(model, tensors="x[0]") == {0: [0]}


@pytest.mark.parametrize(
    ("conditions", "nodes"),
    [
        ({"operators": "SIN"}, {1: [0], 3: [0]}),
        ({"subgraph": 2}, {2: [0]}),
        ({"subgraph": "other"}, {3: [0]}),
        ({"signature": "run"}, {0: [0], 1: [0], 2: [0]}),
        ({"signature": "run", "operators": "SIN"}, {1: [0]}),
        ({"signature": "alone"}, {3: [0]}),
        ({"nodes": 0}, {0: [0], 1: [0], 2: [0], 3: [0]}),
    ],
    ids=str,
)
def test_subgraphs_and_signatures_narrow_a_rule(
    conditions: dict[str, Any], nodes: dict[int, list[int]]
) -> None:
    assert meant(loop(), **conditions) == nodes


def test_exclude_bars_one_delegate_or_all() -> None:
    bound = bind(
        [PlacementRule("exclude", "npu", nodes=0), PlacementRule("exclude", nodes=1)], SINES
    )
    assert sorted(bound.barred(0, "npu")) == [0, 1]
    assert bound.barred(0, "gpu") == {
        1: Rejection("rule", "rule 2: exclude nodes 1 from every delegate")
    }


def test_pin_bars_all_other_delegates() -> None:
    bound = bind([PlacementRule("pin", "npu", nodes=0)], SINES)
    assert bound.barred(0, "npu") == {}
    assert bound.barred(0, "gpu") == {0: Rejection("rule", "rule 1: pin nodes 0 to npu")}


def test_the_first_of_several_rules_is_the_reason() -> None:
    rules = [PlacementRule("exclude", operators="SIN"), PlacementRule("exclude", nodes=0)]
    bound = bind(rules, SINES)
    assert "rule 1" in str(bound.barred(0, "any")[0])


# -- contradictions and rules without nodes --------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            [PlacementRule("pin", "npu", nodes=3), PlacementRule("pin", "gpu", operators="SIN")],
            "rule 1 (pin nodes 3 to npu) and rule 2 (pin operators SIN to gpu) contradict each "
            "other for node 3 (SIN) of subgraph 0",
        ),
        (
            [PlacementRule("exclude", nodes="0-1"), PlacementRule("pin", "npu", nodes=1)],
            "rule 1 (exclude nodes 0-1 from every delegate) and rule 2 (pin nodes 1 to npu) "
            "contradict each other for node 1 (ADD) of subgraph 0",
        ),
        (
            [PlacementRule("pin", "npu", nodes=1), PlacementRule("exclude", "npu", tensors="a")],
            "rule 1 (pin nodes 1 to npu) and rule 2 (exclude tensors a from npu) contradict",
        ),
    ],
)
def test_contradicting_rules_are_both_named(rules: list[PlacementRule], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        bind(rules, SINES)


def test_rules_that_agree_are_taken() -> None:
    rules = [
        PlacementRule("pin", "npu", nodes=1),
        PlacementRule("pin", "npu", operators="ADD"),
        PlacementRule("exclude", "gpu", nodes=1),
    ]
    assert bind(rules, SINES).barred(0, "npu") == {}


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"operators": ["CONV", "SIM"]}, "the model has operators ADD, MUL, SIN"),
        ({"nodes": "5-9"}, "the last node is 4"),
        ({"tensors": "conv*"}, "no tensor of the model has such a name"),
        ({"subgraph": 3}, "the model has subgraphs 0"),
        ({"subgraph": "body"}, "the model has subgraphs 0"),
        ({"signature": "run"}, "the model has no signatures"),
        ({"operators": "SIN", "nodes": 1}, "no node meets all of it"),
    ],
    ids=str,
)
def test_a_rule_without_a_node_is_refused(conditions: dict[str, Any], message: str) -> None:
    rules = [PlacementRule("exclude", operators="SIN"), PlacementRule("exclude", **conditions)]
    with pytest.raises(ArgumentError, match=rf"rule 2 \(.*\) matches nothing: {message}"):
        bind(rules, SINES)


def test_conditions_that_are_met_one_by_one_are_not_blamed() -> None:
    with pytest.raises(ArgumentError, match="matches nothing: no node meets all of it"):
        meant(loop(), subgraph=1, signature="run", operators="ADD", nodes=0, tensors="p")


def test_a_rule_for_nodes_that_only_validate_is_refused() -> None:
    with pytest.raises(ArgumentError, match="the model has subgraphs 0 'main', 1 'cond'"):
        meant(loop(), subgraph=4)
    with pytest.raises(ArgumentError, match="the model has signatures alone, run"):
        meant(loop(), signature="x")


# -- rules in code ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"action": "keep", "nodes": 1}, "action is 'exclude' or 'pin', not 'keep'"),
        ({"action": "pin", "nodes": 1}, "a rule that pins names the delegate"),
        ({"action": "exclude"}, "a rule needs at least one of: nodes, operators"),
        ({"action": "exclude", "delegate": "npu"}, "a rule needs at least one of"),
        ({"action": "exclude", "nodes": []}, "nodes is empty; leave it out"),
        ({"action": "exclude", "nodes": -1}, "not -1"),
        ({"action": "exclude", "nodes": "3-1"}, "not '3-1'"),
        ({"action": "exclude", "nodes": "1,2"}, "indices or ranges such as '10-12', not '1,2'"),
        ({"action": "exclude", "nodes": True}, "not True"),
        ({"action": "exclude", "nodes": [1.0]}, "not 1.0"),
        ({"action": "exclude", "operators": [1]}, "operators takes names, not 1"),
        ({"action": "exclude", "tensors": ""}, "tensors takes names, not ''"),
        ({"action": "exclude", "subgraph": True}, "subgraph is an index or a name, not True"),
        ({"action": "exclude", "subgraph": 1.5}, "subgraph is an index or a name, not 1.5"),
        ({"action": "exclude", "signature": 1}, "signature takes names, not 1"),
        ({"action": "exclude", "delegate": "", "nodes": 1}, "delegate takes names, not ''"),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        PlacementRule(**arguments)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (PlacementRule("exclude", nodes=1), "rules is a list of PlacementRule or a file"),
        (3, "rules is a list of PlacementRule or a file, not 3"),
        ([{"action": "exclude"}], "and one is {'action': 'exclude'}"),
    ],
    ids=["one rule", "number", "dictionary"],
)
def test_what_is_no_list_of_rules_is_refused(rules: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        placement_rules(rules)


def test_no_rules_bar_nothing() -> None:
    rules = placement_rules(None)
    assert len(rules) == 0
    assert bind(rules, SINES).barred(0, "any") == {}
    assert placement_rules(rules) is rules


# -- rules in a file -------------------------------------------------------------------------------


def test_a_file_says_the_same_as_code(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(
        """
        [[rule]]
        action = "exclude"
        operators = ["SOFTMAX", "Flex*"]
        tensors = "head/*"

        [[rule]]
        action = "pin"
        delegate = "npu"
        nodes = [3, "10-12"]
        subgraph = 0
        signature = "run"
        """
    )
    in_code = (
        PlacementRule("exclude", operators=["SOFTMAX", "Flex*"], tensors=["head/*"]),
        PlacementRule("pin", "npu", nodes=["3", "10-12"], subgraph=0, signature="run"),
    )
    for path in (file, str(file)):
        assert tuple(placement_rules(path)) == in_code


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rule]", "is not TOML: "),
        ("\xff", "is not TOML: "),
        ("[rule]\naction = 'pin'", "a rule is a [[rule]] table, with two brackets"),
        ("rule = [1]", "rule 1: a rule is a [[rule]] table, not 1"),
        ("[[rules]]\naction = 'pin'", "no key 'rules' here; each rule is a [[rule]] table"),
        ("[[rule]]\nnodes = 1", "rule 1: action is missing; it is 'exclude' or 'pin'"),
        (
            "[[rule]]\naction='exclude'\nnodes=1\n[[rule]]\naction='exclude'\noperator='ADD'",
            "rule 2: no key 'operator'; valid keys: action, delegate, nodes, operators, tensors, "
            "subgraph, signature",
        ),
        ("[[rule]]\naction = 'pin'\nnodes = 1", "rule 1: a rule that pins names the delegate"),
        ("[[rule]]\naction = 'exclude'\nnodes = 1.5", "rule 1: nodes takes indices or ranges"),
        ("[[rule]]\naction = 1\nnodes = 1", "rule 1: action is 'exclude' or 'pin', not 1"),
        ("[[rule]]\naction = ['pin']\nnodes = 1", "rule 1: action is 'exclude' or 'pin'"),
        ("[[rule]]\naction = 'pin'\ndelegate = ['a']\nnodes = 1", "rule 1: delegate takes names"),
    ],
    ids=str,
)
def test_mistakes_in_a_file_name_file_and_rule(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "rules.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ArgumentError, match=re.escape(message)) as caught:
        placement_rules(file)
    assert str(file) in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"none\.toml' cannot be read: No such file"):
        placement_rules(tmp_path / "none.toml")


def test_reasons_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "npu.toml"
    file.write_text("[[rule]]\naction = 'exclude'\nnodes = 0")
    bound = bind(file, SINES)
    assert str(bound.barred(0, "any")[0]) == (
        "rule 1 of npu.toml: exclude nodes 0 from every delegate"
    )


# -- what a placement must fulfil ------------------------------------------------------------------


def placement(
    delegates: Sequence[str | None], applied: Sequence[str] = ("npu", "gpu")
) -> Placement:
    """Return a placement of SINES with the delegate of each node; npu says why it left others."""
    nodes = [
        NodePlacement(
            0,
            operator.index,
            operator.name,
            delegate,
            rejections={} if delegate == "npu" else {"npu": Rejection("op", actual=operator.name)},
        )
        for operator, delegate in zip(SINES.subgraphs[0].operators, delegates, strict=True)
    ]
    return Placement(tuple(nodes), (), tuple(applied))


def test_pins_that_are_met_pass() -> None:
    bound = bind([PlacementRule("pin", "npu", operators="SIN")], SINES)
    bound.check_pins(placement(["npu", None, None, "npu", None]))


def test_pins_to_a_delegate_that_is_not_applied_pass() -> None:
    bound = bind([PlacementRule("pin", "npu", operators="SIN")], SINES)
    bound.check_pins(placement([None] * 5, applied=["gpu"]))


def test_missed_pins_are_listed_with_the_delegates_reason() -> None:
    rules = [PlacementRule("pin", "npu", operators=["SIN", "MUL"])]
    with pytest.raises(PlacementError) as caught:
        bind(rules, SINES).check_pins(placement([None, None, None, "npu", None]))
    assert str(caught.value) == (
        "rule 1 (pin operators SIN, MUL to npu) is not met by 2 nodes: node 0 (SIN): op: is SIN; "
        "node 2 (MUL): op: is MUL"
    )
    assert caught.value.delegate == "npu"


def test_require_full_groups_what_stays_behind() -> None:
    with pytest.raises(PlacementError) as caught:
        require_full(placement([None, "npu", "gpu", None, None]))
    assert str(caught.value) == (
        "require='full': 3 nodes stay behind: "
        "SIN (nodes 0, 3: npu says op: is SIN, gpu says no reason given); "
        "ADD (node 4: npu says op: is ADD, gpu says no reason given)"
    )


def test_require_full_without_a_delegate_says_so() -> None:
    with pytest.raises(
        PlacementError, match=r"is about named delegates, and none is named for SIN, "
    ):
        require_full(placement([None] * 5, applied=()))


def test_require_full_names_the_default_delegate_that_does_not_count() -> None:
    node = NodePlacement(0, 0, "SIN", "npu", 0, is_by_default=True)
    with pytest.raises(PlacementError, match=r"none is named for SIN: add delegates=\['npu'\]$"):
        require_full(Placement((node,), (), ("npu",), default_delegate="npu"))


def test_require_full_tells_one_reason_of_many_nodes_once() -> None:
    ops = ("SIN", "ADD", "MUL", "SUB", "EXP", "LOG")
    no = {"npu": Rejection("off", "it is off")}
    nodes = tuple(NodePlacement(0, i, ops[i % 6], rejections=no) for i in range(12))
    with pytest.raises(PlacementError) as caught:
        require_full(Placement(nodes, (), ("npu",)))
    assert str(caught.value) == (
        "require='full': 12 nodes stay behind: "
        "SIN, ADD, MUL, SUB, and 2 more (nodes 0-11: npu says it is off)"
    )


def test_require_full_passes_when_only_validation_stays_behind() -> None:
    nodes = (NodePlacement(0, 0, "SIN", "npu", 0), NodePlacement(1, 0, "SIN"))
    full = Placement(nodes, (), ("npu",), subgraph_names=("main", "VALIDATION:main"))
    require_full(full)
    with pytest.raises(PlacementError, match=r"1 node stays behind: SIN \(.*subgraph 1"):
        require_full(dataclasses.replace(full, subgraph_names=("main", "other")))


def test_long_lists_are_cut() -> None:
    model = parse_model(
        graph_model([("SIN", f"t{i}", f"t{i + 1}") for i in range(20)], inputs="t0", outputs="t20")
    )
    left = tuple(NodePlacement(0, i, "SIN") for i in range(20))
    bound = bind([PlacementRule("pin", "npu", operators="SIN")], model)
    with pytest.raises(PlacementError, match=r"by 20 nodes: node 0 .*node 7 .*; and 12 more$"):
        bound.check_pins(Placement(left, (), ("npu",)))


def test_rules_written_to_a_file_are_read_as_they_were(tmp_path: Path) -> None:
    rules = [
        PlacementRule("exclude", "npu", nodes=[3, "10-12"], subgraph=0),
        PlacementRule("pin", "gpu", operators=["ADD", "Flex*"], subgraph='a "b"\\\x7f\n😀'),
        PlacementRule("exclude", tensors="left/*", signature="serve"),
    ]
    file = tmp_path / "rules.toml"
    file.write_text(rules_text(rules), encoding="utf-8")
    assert tuple(placement_rules(file)) == tuple(rules)
    assert rules_text([]) == ""
