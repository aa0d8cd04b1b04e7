"""``bisect``: a delegate that goes wrong at some node, in both hosts, and files that show it."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, PlacementRule
from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import ArgumentError, PluginError
from delegraph.testing import constant, graph_model
from delegraph.tools import Bisection, InputRequest, Setup, bisect, diff
from support import faulty_nodes
from support.corpus import corpus_file, needs_corpus
from support.faulty_delegate import Faulty, off_by
from support.faulty_nodes import number

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals as POSIX has them")

EXACT = Tolerance(absolute=1e-3)
FILE = str(Path(faulty_nodes.__file__))


@pytest.fixture
def chain(tmp_path: Path) -> str:
    """Eight nodes, one after the other, of ``[4], float32``; node *i* computes the tensor n*i*."""
    ops = ["ADD", "MUL", "SUB", "NEG", "ADD", "ABS", "MUL", "ADD"]
    nodes: list[Any] = []
    for i, op in enumerate(ops):
        before = f"n{i - 1}" if i else "x"
        nodes.append((op, before if op in ("NEG", "ABS") else f"{before} half", f"n{i}"))
    tensors = {"half": constant(np.full(4, 0.5, np.float32))}
    path = tmp_path / "chain.tflite"
    path.write_bytes(graph_model(nodes, inputs="x", outputs="n7", tensors=tensors))
    return str(path)


def faulty(model: str, fault: str, *nodes: int, **changes: Any) -> Setup:
    numbers = "+".join(str(number(f"n{node}")) for node in nodes)
    setup = Setup(model, delegate_files=(f"{FILE}:{fault}={numbers}",), use_default_delegates=False)
    return replace(setup, **changes)


def named(found: Bisection) -> list[list[int]]:
    return [[node.index for node in culprit.nodes] for culprit in found.culprits]


@pytest.fixture(params=["delegraph", "litert", "litert2"])
def runtime(request: pytest.FixtureRequest) -> str:
    if request.param != "delegraph":
        pytest.importorskip("ai_edge_litert")
    return str(request.param)


@pytest.mark.repetition(1)
def test_a_wrong_node_is_named_with_files_that_show_it(
    chain: str, runtime: str, tmp_path: Path
) -> None:
    folder = tmp_path / "found"
    setup = faulty(chain, "wrong", 4, runtime=runtime)
    found = bisect(setup, tolerance=EXACT, runs=2, folder=folder)
    assert named(found) == [[4]]
    assert (found.reference.runtime, found.reference.delegates) == (runtime, ("none",))
    culprit = found.culprits[0]
    assert culprit.outcome.kind == "differs"
    assert culprit.named_after <= log2(8) + 3
    assert (culprit.nodes[0].op, culprit.nodes[0].delegate) == ("ADD", "faulty")
    files = culprit.reproduction
    assert files is not None
    assert (files.is_whole, files.rules) == (False, "")
    with Interpreter(files.model, delegates=()) as small:
        assert [node.op for node in small.placement.nodes] == ["ADD"]
        assert small.get_output_details()[0]["shape"].tolist() == [1]  # made smaller
    again = diff(
        replace(setup, model=files.model), inputs=InputRequest((files.inputs,)), tolerance=EXACT
    )
    assert again.failures
    right = diff(replace(setup, rules=found.rules_file), runs=2, tolerance=EXACT)
    assert not right.failures
    assert [n.index for n in right.test_placement.nodes if n.delegate is None] == [4]
    with np.load(files.outputs) as outputs:
        assert outputs["found/n4"][-1] - outputs["expected/n4"][-1] == 50


@pytest.mark.repetition(2, "kinds")  # each starts many processes
def test_a_node_that_crashes_the_process_is_named(chain: str, runtime: str) -> None:
    found = bisect(faulty(chain, "crash", 2, runtime=runtime), tolerance=EXACT, runs=1)
    assert named(found) == [[2]]
    assert found.culprits[0].outcome.kind == "crashed"
    assert "SIGSEGV" in found.culprits[0].outcome.text
    assert found.is_complete


@pytest.mark.repetition(2, "kinds")
def test_a_node_that_hangs_is_named(chain: str) -> None:
    found = bisect(faulty(chain, "hang", 6), tolerance=EXACT, runs=1, time_limit=3)
    assert named(found) == [[6]]
    assert found.culprits[0].outcome.kind == "hung"
    assert found.culprits[0].outcome.text == "no answer after 3 s"


@pytest.mark.repetition(2, "kinds")
@pytest.mark.parametrize("fault", ["raises", "refuses"])
def test_a_node_that_raises_is_named(chain: str, runtime: str, fault: str) -> None:
    found = bisect(faulty(chain, fault, 3, runtime=runtime), tolerance=EXACT, runs=1)
    assert named(found) == [[3]]
    assert found.culprits[0].outcome.kind == "raised"
    wanted = "device lost" if fault == "raises" else "no such instruction"
    assert wanted in found.culprits[0].outcome.text


def test_faults_of_several_kinds_are_all_found(chain: str) -> None:
    setup = faulty(chain, "wrong", 1, 6)
    file = f"{setup.delegate_files[0]},raises={number('n4')}"
    found = bisect(replace(setup, delegate_files=(file,)), tolerance=EXACT, runs=1)
    assert sorted(named(found)) == [[1], [4], [6]]
    assert sorted(c.outcome.kind for c in found.culprits) == ["differs", "differs", "raised"]


def test_a_search_ends_after_so_many_culprits(chain: str, tmp_path: Path) -> None:
    setup = faulty(chain, "wrong", 1, 6)
    found = bisect(setup, tolerance=EXACT, runs=1, most_culprits=1, folder=tmp_path / "found")
    assert (len(found.culprits), found.is_complete) == (1, False)
    assert "the search ended after 1 culprit: more nodes may be faulty" in found.remarks[0]
    assert found.culprits[0].reproduction is not None
    assert Path(found.rules_file).is_file()


def test_files_of_an_earlier_search_are_told(chain: str, tmp_path: Path) -> None:
    (tmp_path / "own.npz").touch()
    first = bisect(faulty(chain, "wrong", 1, 6), tolerance=EXACT, runs=1, folder=tmp_path)
    assert first.remarks == ()
    again = bisect(faulty(chain, "wrong", 4), tolerance=EXACT, runs=1, folder=tmp_path)
    (remark,) = again.remarks
    assert remark.endswith("an earlier search: culprit2.npz, culprit2.outputs.npz, culprit2.tflite")
    right = bisect(faulty(chain, "wrong"), tolerance=EXACT, runs=1, folder=tmp_path)
    assert right.remarks[0].endswith("culprit.tflite, culprit2.npz and 3 more")


def test_nodes_that_fail_only_together_come_with_a_model_of_both(
    chain: str, tmp_path: Path
) -> None:
    setup = faulty(chain, "together", 2, 6)
    found = bisect(setup, tolerance=EXACT, runs=1, folder=tmp_path)
    assert named(found) == [[2, 6]]
    files = found.culprits[0].reproduction
    assert files is not None
    with Interpreter(files.model, delegates=()) as small:
        assert [node.op for node in small.placement.nodes] == ["SUB", "MUL"]


def test_what_fails_only_in_its_context_is_kept_as_the_whole(chain: str, tmp_path: Path) -> None:
    """It takes four nodes of the model to make it wrong, and their names in it."""

    def fault(context: Any, node: Any, run: int) -> None:
        if len(context.tensors) > 8 and len(node.options.nodes_to_replace) > 3:
            off_by(5.0)(context, node, run)

    setup = Setup(chain, delegates=(Faulty(fault=fault),))
    found = bisect(setup, tolerance=EXACT, runs=1, folder=tmp_path)
    assert [len(nodes) for nodes in named(found)] == [4, 4]
    files = found.culprits[0].reproduction
    assert files is not None
    assert files.is_whole
    assert files.model == chain
    again = diff(
        replace(setup, rules=files.rules), inputs=InputRequest((files.inputs,)), tolerance=EXACT
    )
    assert again.failures
    assert "-d '<Faulty>' --rules" in files.command


def test_roundings_alone_are_no_fault_of_nodes(chain: str, tmp_path: Path) -> None:
    setup = Setup(chain, delegates=(Faulty("ADD", fault=off_by(1e-6)),))
    found = bisect(setup, tolerance=Tolerance(), runs=1, folder=tmp_path / "none")
    assert (named(found), len(found.probes), found.is_right) == ([], 1, False)
    assert found.cause is not None
    assert found.cause["text"].startswith("roundings alone: each node and the outputs")
    assert found.remarks == ("--layers --sort worst shows how much each node adds",)
    assert bisect(setup, runs=1).is_right


def test_only_the_guilty_delegate_is_kept_off(chain: str, tmp_path: Path) -> None:
    wrong, right = Faulty("MUL", fault=off_by(5.0)), Faulty("MUL", "SUB", name="right")
    setup = Setup(chain, delegates=(wrong, right))
    bisect(setup, tolerance=EXACT, runs=1, folder=tmp_path / "one")
    again = replace(setup, rules=str(tmp_path / "one" / "rules.toml"))
    with again.interpreter() as interpreter:
        assert [node.delegate for node in interpreter.placement.nodes][1:3] == ["right", "right"]
    both = replace(setup, delegates=(wrong, Faulty("MUL", "SUB", fault=off_by(5.0), name="other")))
    rules = bisect(both, tolerance=EXACT, runs=1, folder=tmp_path / "both").rules_file
    assert not diff(replace(both, rules=rules), runs=1, tolerance=EXACT).failures


def test_a_right_delegate_takes_one_probe(chain: str, tmp_path: Path) -> None:
    found = bisect(faulty(chain, "wrong"), tolerance=EXACT, runs=2, folder=tmp_path / "none")
    assert found.is_right
    assert len(found.probes) == 1
    assert not (tmp_path / "none").exists()


def test_the_search_goes_on_with_the_inputs_that_fail(chain: str, tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    for name, value in (("a", 1), ("b", 3), ("c", 1)):
        np.save(folder / f"{name}.npy", np.full(4, value, np.float32))

    def fault(context: Any, node: Any, run: int) -> None:
        if 2 in node.options.nodes_to_replace and context.tensors[0].data[0] == 3:
            off_by(5.0)(context, node, run)

    setup = Setup(chain, delegates=(Faulty(fault=fault),))
    found = bisect(setup, tolerance=EXACT, inputs=InputRequest((str(folder),)))
    assert named(found) == [[2]]
    assert found.run.endswith("b.npy")
    assert found.probes[0].runs == (0, 1)
    assert found.probes[1].runs == (1,)
    assert sorted(found.probes[-1].runs) == [0, 1, 2]


@pytest.mark.parametrize(("delegates", "has_advice"), [(("none",), False), ((), True)])
def test_what_is_wrong_without_any_node_is_not_blamed_on_one(
    chain: str, tmp_path: Path, delegates: tuple[str, ...], has_advice: bool
) -> None:
    other = tmp_path / "other.tflite"
    nodes: list[Any] = [("MUL", "x two", "n7")]
    tensors = {"two": constant(np.full(4, 2, np.float32))}
    other.write_bytes(graph_model(nodes, inputs="x", outputs="n7", tensors=tensors))
    reference = Setup(str(other), delegates=delegates)
    found = bisect(faulty(chain, "wrong"), reference, tolerance=EXACT, runs=1)
    assert not found.culprits
    assert found.baseline is not None
    assert ("compare with a reference of the same runtime" in found.remarks[0]) is has_advice


def test_the_users_own_rules_hold_and_pins_are_refused(chain: str) -> None:
    own = (PlacementRule("exclude", nodes=1),)
    found = bisect(faulty(chain, "wrong", 1, 5, rules=own), tolerance=EXACT, runs=1)
    assert named(found) == [[5]]
    assert [node.index for node in found.candidates] == [0, 2, 3, 4, 5, 6, 7]
    pin = (PlacementRule("pin", "faulty", nodes=1),)
    with pytest.raises(ArgumentError, match=r"rule 1 \(pin nodes 1 to faulty\) cannot hold"):
        bisect(faulty(chain, "wrong", rules=pin), tolerance=EXACT)


def test_mistakes_are_told_as_they_are(chain: str) -> None:
    with pytest.raises(PluginError, match="no_such"):
        bisect(Setup(chain, delegates=("no_such",)), tolerance=EXACT)
    with pytest.raises(ArgumentError, match="a tolerance is given for 'q'"):
        bisect(faulty(chain, "wrong"), tolerance={"q": EXACT}, runs=1)


def test_json_has_culprits_and_probes(chain: str, tmp_path: Path) -> None:
    shown = bisect(faulty(chain, "wrong", 0), tolerance=EXACT, runs=1, folder=tmp_path).to_json()
    (culprit,) = shown["culprits"]
    assert culprit["nodes"][0]["op"] == "ADD"
    assert culprit["outcome"]["kind"] == "differs"
    assert shown["probes"][0]["nodes"] == [[0, i] for i in range(8)]
    words = shlex.split(culprit["reproduction"]["command"])
    assert words[:3] == ["delegraph", "diff", str(tmp_path / "culprit.tflite")]
    assert shown["rules_file"] == str(tmp_path / "rules.toml")


@needs_corpus
@pytest.mark.repetition(1)
def test_mobilenet_v2_takes_log2_n_plus_3_probes(runtime: str) -> None:
    node = 37
    model = str(corpus_file("test_data__mobilenet_v2_1.0_224_quant"))
    with Interpreter(model, delegates=()) as interpreter:
        names = [found.name for found in interpreter.placement.nodes]
    setup = Setup(model, runtime, delegate_files=(f"{FILE}:wrong={number(names[node])}",))
    found = bisect(setup, tolerance=Tolerance(absolute=1), runs=1)
    assert named(found) == [[node]]
    assert not found.setup.use_default_delegates or runtime == "delegraph"
    assert found.culprits[0].named_after <= log2(len(names)) + 3
