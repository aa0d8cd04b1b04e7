from __future__ import annotations

from pathlib import Path

from command import Command


def test_stages_come_in_execution_order(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "--delegate", "sin")
    assert (ran.code, ran.err) == (0, "")
    start = ran.lines.index("In execution order")
    assert ran.lines[start + 1 : start + 6] == [
        "partition runs on count nodes in out operators",
        "0 sin 1 0 4 B 4 B SIN",
        "- Delegraph 2 1-2 - - ADD, MUL",
        "1 sin 1 3 4 B 4 B SIN",
        "- Delegraph 1 4 - - ADD",
    ]


def test_refused_nodes_come_with_reason_and_where_they_run(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "sin", "-d", "add_sub")
    start = ran.lines.index("Left by a delegate")
    assert ran.lines[start + 1 :] == [
        "delegate operator count nodes reason runs on",
        "sin ADD 2 1, 4 op: is ADD, needs SIN add_sub",
        "sin MUL 1 2 op: is MUL, needs SIN Delegraph",
        "add_sub MUL 1 2 op: is MUL, needs ADD or SUB Delegraph",
    ]


def test_json_holds_partitions_nodes_and_stages(delegraph: Command, sines: Path) -> None:
    shown = delegraph("explain", sines, "-d", "sin", "--json").json
    assert shown["delegates"] == ["sin"]
    assert shown["numerics"] == "builtin"
    assert [p["nodes"] for p in shown["partitions"]] == [[0], [3]]
    assert shown["nodes"][1]["rejections"]["sin"]["constraint"] == "op"
    assert [stage["ops"] for stage in shown["stages"]] == [
        ["SIN"],
        ["ADD", "MUL"],
        ["SIN"],
        ["ADD"],
    ]


def test_a_model_with_unresolved_operators_can_be_explained(
    delegraph: Command, custom: Path, sines: Path
) -> None:
    ran = delegraph("explain", custom, "-d", "sin")
    assert ran.code == 0
    assert "sin FlexErf 1 0 op: is FlexErf, needs SIN Delegraph" in ran.lines


def test_options_reach_the_delegate(delegraph: Command, sines: Path) -> None:
    ran = delegraph("explain", sines, "-d", "add_sub:min_nodes=3")
    assert "add_sub ADD 2 1, 4 min-nodes-per-partition: is 2, needs 3 Delegraph" in ran.lines


def test_plugin_trouble_exits_with_3(delegraph: Command, sines: Path) -> None:
    for delegate, message in (
        ("nosuch", "no installed plugin provides delegate 'nosuch'"),
        ("sin:x=1", "delegate 'sin' has no options"),
        ("a:b:c", "delegate 'a:b:c' cannot be read"),
    ):
        ran = delegraph("explain", sines, "-d", delegate)
        assert ran.code == 3
        assert message in ran.err
        assert len(ran.err.splitlines()) == 1
