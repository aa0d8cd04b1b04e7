"""A placement written down, and what is told when a later one differs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delegraph import Interpreter, PlacementPolicy, PlacementRule
from delegraph.errors import ArgumentError
from delegraph.testing import graph_model, subgraphs_model
from delegraph.tools.placement_lock import (
    NodeChange,
    PlacementDifference,
    PlacementLock,
    compare,
    lock_of,
)
from delegraph.tools.placement_lock_file import read_lock, write_lock
from support.by_name import ByName, sines

OPS = ("SIN", "ADD", "MUL")


def locked(
    delegates: Sequence[Any], model: bytes | None = None, **arguments: Any
) -> tuple[PlacementLock, Interpreter]:
    content = sines() if model is None else model
    interpreter = Interpreter(model_content=content, delegates=delegates, **arguments)
    names = [delegate.name() for delegate in delegates]
    return lock_of(interpreter, "some/folder/sines.tflite", names), interpreter


def difference(
    before: Sequence[Any], after: Sequence[Any], **arguments: Any
) -> PlacementDifference:
    old, _ = locked(before)
    new, interpreter = locked(after, **arguments)
    return compare(old, new, interpreter.placement)


def test_what_computes_the_rest_by_default_counts_as_left() -> None:
    old, _ = locked([ByName("SIN")])
    _, interpreter = locked([ByName("SIN"), ByName("ADD", name="rest")])
    assert old != lock_of(interpreter, "sines.tflite", ["by_name"])
    interpreter.session.rest = interpreter.session.delegates[-1]
    new = lock_of(interpreter, "sines.tflite", ["by_name"])
    assert old == new
    assert not compare(old, new, interpreter.placement)


def test_a_named_delegate_that_is_the_default_now_still_has_its_nodes() -> None:
    old, _ = locked([ByName("ADD", name="fast")])
    _, interpreter = locked([ByName("SIN"), ByName("ADD", name="fast")])
    interpreter.session.rest = interpreter.session.delegates[-1]
    assert old.is_about("fast")
    new = lock_of(interpreter, "sines.tflite", ["by_name"], counts_default=True)
    assert str(compare(old, new, interpreter.placement)) == (
        "delegates changed: fast became by_name; fast is not named any more, and runs 2 nodes by "
        "default; 2 nodes joined by_name"
    )


def test_the_version_of_a_named_delegate_is_told_where_nodes_moved() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=["sin"])
    lock = lock_of(interpreter, "sines.tflite", ["sin"])
    assert list(lock.versions) == ["sin"]
    old = replace(lock, versions={"sin": "delegraph-example 0.0.1"})
    assert not compare(old, lock, interpreter.placement)
    subgraph = replace(lock.subgraphs[0], delegates=("sin", "sin", None, "sin", None))
    found = compare(replace(old, subgraphs=(subgraph,)), lock, interpreter.placement)
    assert str(found).startswith(f"sin is of {lock.versions['sin']}, not delegraph-example 0.0.1; ")


# -- the file --------------------------------------------------------------------------------------


def test_a_lock_survives_its_file(tmp_path: Path) -> None:
    content = subgraphs_model(
        [([("SIN", "x", "y")], "x", "y", {}), ([("Näh", "x", "y")], "x", "y", {})],
        names=["main", "zweiter"],
    )
    lock, interpreter = locked([ByName("SIN", name="sin")], content)
    path = tmp_path / "placement.json"
    write_lock(lock, path)
    assert read_lock(path) == lock
    assert not compare(read_lock(path), lock, interpreter.placement)
    first = path.read_bytes()
    write_lock(read_lock(path), path)
    assert path.read_bytes() == first


def test_a_lock_is_readable_with_a_line_for_each_node(tmp_path: Path) -> None:
    lock, _ = locked([ByName("SIN", name="sin")])
    path = tmp_path / "placement.json"
    write_lock(lock, path)
    lines = [line.strip() for line in path.read_text().splitlines()]
    start = lines.index('"nodes": {')
    assert lines[start + 1 : start + 6] == [
        '"0 SIN": "sin",',
        '"1 ADD": null,',
        '"2 MUL": null,',
        '"3 SIN": "sin",',
        '"4 ADD": null',
    ]
    assert '"file": "sines.tflite",' in lines
    assert '"sin": 2' in lines
    assert path.read_text().endswith("}\n")


def without(key: str) -> Callable[[Any], Any]:
    return lambda content: {k: v for k, v in content.items() if k != key}


def with_nodes(nodes: Any) -> Callable[[Any], Any]:
    def changed(content: Any) -> Any:
        content["subgraphs"][0]["nodes"] = nodes
        return content

    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: [], "is no placement lock; 'delegraph explain --lock' writes one"),
        (without("format"), "is no placement lock"),
        (lambda c: c | {"version": 2}, "has version 2, this Delegraph reads 1; write it again"),
        (without("version"), "has version None"),
        (without("model"), "is damaged: 'model' is None, expected a JSON object"),
        (lambda c: c | {"model": {"file": 1}}, "damaged: 'file' is 1, expected a JSON string"),
        (lambda c: c | {"delegates": "sin"}, "'delegates' is 'sin', expected a JSON array"),
        (lambda c: c | {"delegates": [1]}, r"'delegates' is \[1\], expected names"),
        (lambda c: c | {"subgraphs": [1]}, "damaged: subgraph 0 is 1"),
        (with_nodes([]), r"'nodes' is \[\], expected a JSON object"),
        (with_nodes({"1 SIN": "sin"}), "node 0 of subgraph 0 is '1 SIN': 'sin', expected an entry"),
        (with_nodes({"0": "sin"}), "node 0 of subgraph 0 is '0'"),
        (with_nodes({"0 SIN": 3}), "node 0 of subgraph 0 is '0 SIN': 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "change",
)
def test_a_damaged_lock_is_told(tmp_path: Path, change: Callable[[Any], Any], message: str) -> None:
    path = tmp_path / "placement.json"
    write_lock(locked([])[0], path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ArgumentError, match=message) as caught:
        read_lock(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{", "is damaged: not JSON"), (b"\xff", "not JSON"), (b"[" * 100_000, "not JSON")],
    ids=["half", "no text", "deep"],
)
def test_what_is_no_json_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "placement.json"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=message):
        read_lock(path)


def test_files_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be read: No such file"):
        read_lock(tmp_path / "none.json")
    with pytest.raises(ArgumentError, match="cannot be written: No such file"):
        write_lock(locked([])[0], tmp_path / "none" / "placement.json")


# -- comparing -------------------------------------------------------------------------------------


def test_the_same_placement_is_no_difference() -> None:
    found = difference([ByName("SIN")], [ByName("SIN")])
    assert not found
    assert str(found) == "no difference"


def test_nodes_that_left_come_with_the_delegates_reason() -> None:
    found = difference([ByName(*OPS)], [ByName("SIN")])
    assert str(found) == "3 nodes left by_name"
    assert found.nodes[1] == NodeChange(0, 2, "MUL", "by_name", None, "op: is MUL, needs SIN")


def test_rules_are_a_reason_to_leave() -> None:
    rule = PlacementRule("exclude", nodes=1)
    found = difference([ByName(*OPS)], [ByName(*OPS)], placement=PlacementPolicy([rule]))
    assert str(found) == "1 node left by_name"
    assert found.nodes[0].reason == f"rule 1: {rule}"


def test_nodes_that_joined_are_told() -> None:
    found = difference([ByName("SIN")], [ByName("SIN", "ADD")])
    assert str(found) == "2 nodes joined by_name"
    assert found.nodes[0] == NodeChange(0, 1, "ADD", None, "by_name", "")


def test_nodes_that_change_hands_left_one_and_joined_the_other() -> None:
    before = [ByName("SIN", name="first"), ByName("ADD", name="second")]
    after = [ByName("MUL", name="first"), ByName("ADD", "SIN", name="second")]
    found = difference(before, after)
    assert str(found) == "2 nodes left first; 2 nodes joined second; 1 node joined first"
    reason = "op: is SIN, needs MUL"
    assert [change.reason for change in found.nodes] == [reason, "", reason]


def test_other_delegates_are_told_beside_the_nodes() -> None:
    found = difference([ByName("SIN", name="npu")], [])
    assert str(found) == "delegates changed: npu became none; 2 nodes left npu"
    assert found.nodes[0].reason == "npu is not applied"


def test_another_model_is_told() -> None:
    other = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
    found = difference([ByName("SIN")], [ByName("SIN")], model=other)
    assert re.fullmatch(
        r"model changed: sines\.tflite has sha256 \w{12}, not \w{12} \(5 nodes became 1\)",
        str(found),
    )
    assert found.nodes == ()


def test_a_model_with_other_contents_is_still_compared_node_by_node() -> None:
    found = difference([ByName("SIN")], [ByName("ADD")], model=sines() + b"appended")
    assert "(same operators, other contents); 2 nodes left by_name; 2 nodes joined" in str(found)


def test_a_model_with_other_operators_is_told() -> None:
    names = ["SIN", "COS", "SIN", "COS", "SIN"]
    nodes = [(op, f"t{i}", f"t{i + 1}") for i, op in enumerate(names)]
    other = graph_model(nodes, inputs="t0", outputs="t5")
    found = difference([], [], model=other)
    assert str(found).endswith("(it has other operators)")


def test_a_lock_edited_by_hand_is_told() -> None:
    lock, interpreter = locked([])
    edited = PlacementLock(lock.model, lock.sha256, (), (), ())
    assert str(compare(edited, lock, interpreter.placement)) == (
        "the lock names other nodes than the model has"
    )


def test_the_same_nodes_in_more_partitions_are_a_difference() -> None:
    found = difference(
        [ByName("ADD")], [ByName("ADD")], experimental_disable_delegate_node_fusion=True
    )
    assert str(found) == "by_name has 2 partitions instead of 1"
    assert found.to_json() == {
        "summary": "by_name has 2 partitions instead of 1",
        "causes": [],
        "nodes": [],
        "partitions": ["by_name has 2 partitions instead of 1"],
    }
