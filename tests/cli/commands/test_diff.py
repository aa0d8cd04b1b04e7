from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from delegraph.testing import graph_model, one_op_model, tensor
from support.command import Command, Refused

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models"


def test_it_prints_how_far_outputs_are_off(delegraph: Command, sines: Path) -> None:
    done = delegraph("diff", sines, "-d", "sin", "--runs", "3")
    assert done.code == 0, done.err
    assert "reference: sines.tflite" in done.out
    assert "5 stay with Delegraph's kernels" in done.out
    assert "3 runs: seed 0 to seed 2" in done.out


def test_the_verdict_comes_first(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    assert delegraph("diff", sines, "-d", "sin", "--runs", "3").lines[0].startswith("same")
    assert "both sides are the same set-up" in delegraph("diff", sines, "-d", "none").lines[1]
    wrong, page = tmp_path / "wrong.py", tmp_path / "page.html"
    wrong.write_text(WRONG)
    words = ("diff", sines, "--delegate-file", wrong)
    lines = delegraph(*words, "--runs", "2").lines
    assert lines[0].startswith("differs: 2 of 2 elements of y are off by more than the numerics")
    assert lines[1] == "--layers finds the first node that differs"
    assert lines[2] == "exit code 0: without --tolerance no difference is a failure"
    assert "exit code 0" not in delegraph(*words, "--runs", "1", "--tolerance", "1e-3").out
    done = delegraph(*words, "--layers", "--html", page, "--json")
    assert f"page written to {page}\n" in done.err
    assert done.json["verdict"]["node"] == 0
    assert len(done.json["runs"]) == 50  # as without --layers
    assert len(done.json["layers"]["runs"]) == 1
    assert done.json["verdict"]["text"].startswith("differs from node 0 (SIN) on: ")
    text = page.read_text(encoding="utf-8")
    assert 'differs from <a href="#node-0">node 0 (SIN)</a> on' in text
    assert f"<code>delegraph diff {sines} " in text


def test_a_float_model_differs_from_its_quantized_one(delegraph: Command, tmp_path: Path) -> None:
    floats, integers = DIGITS / "digits_float.tflite", DIGITS / "digits_int8.tflite"
    page, words = tmp_path / "page.html", ("--reference", integers, "--runs", "2")
    ran = delegraph("diff", floats, *words, "--html", page)
    assert ran.lines[0].startswith("differs: ")
    assert "note: image: 61 of 128 values are beyond the range of the reference's input" in ran.out
    mean = next(line.split()[5] for line in ran.lines if line.startswith("digit float32 / int8"))
    assert f"<td class=number>{mean}</td>" in page.read_text(encoding="utf-8")


def test_json_has_all_of_it(delegraph: Command, sines: Path) -> None:
    done = delegraph("diff", sines, "--runs", "2", "--seed", "5", "--json")
    answer = json.loads(done.out)
    assert answer["runs"] == ["seed 5", "seed 6"]
    assert answer["outputs"][0]["raw"]["max"] == {"avg": 0.0, "std": 0.0, "min": 0.0, "max": 0.0}
    assert answer["test"]["latency"]["count"] == 2


def test_another_reference_is_named_by_what_differs(delegraph: Command, sines: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    done = delegraph(
        "diff", sines, "--runs", "1", "--json", "--reference", "--runtime litert --threads 1"
    )
    setup = json.loads(done.out)["reference"]["setup"]
    assert (setup["runtime"], setup["threads"]) == ("litert", 1)


def test_a_tolerance_that_does_not_hold_is_exit_code_1(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    words = ["diff", sines, "--runs", "1", "--delegate-file", wrong, "--tolerance"]
    assert delegraph(*words, "y=9").code == 0
    done = delegraph(*words, "1e-3,1e-3")
    assert done.code == 1
    assert "further off than the tolerance: y: 1 of 1 elements" in done.err
    assert "greatest difference at [0" in done.out
    assert "node 0 (SIN) is wrong: on the reference's inputs 1 of 1 elements" in done.out
    cause = json.loads(delegraph(*words, "1e-3", "--json").out)["cause"]
    assert (cause["kind"], cause["node"], cause["operator"]) == ("wrong node", 0, "SIN")


WRONG = """
from support.faulty_delegate import Faulty, off_by


class Wrong(Faulty):
    def __init__(self):
        super().__init__("SIN", fault=off_by(1.0))
"""


@pytest.mark.parametrize("word", ["much", "y=", "-1", "y=1,2,3", "nan"])
def test_a_tolerance_that_is_none_is_refused(refused: Refused, sines: Path, word: str) -> None:
    assert "expected [OUTPUT=]ABSOLUTE[,RELATIVE]" in refused("diff", sines, f"--tolerance={word}")


def test_layers_name_what_is_wrong(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    words = ["diff", sines, "--runs", "1", "--delegate-file", wrong, "--layers"]
    done = delegraph(*words, "--sort", "worst", "--node-data", tmp_path / "data")
    assert done.code == 0, done.err
    rows = done.out[done.out.index("Layers") :].splitlines()[2:]
    assert [row.split()[:2] for row in rows[:2]] == [["0", "SIN"], ["3", "SIN"]]
    assert "the reference has the same kernel" in done.out
    data = json.loads((tmp_path / "data" / "max_abs_error_same_inputs.json").read_text())
    (graph,) = data.values()
    values = {key: entry["value"] for key, entry in graph["results"].items()}
    assert values == {"0": pytest.approx(1), "3": pytest.approx(1)}
    (drift,) = json.loads((tmp_path / "data" / "max_abs_error.json").read_text()).values()
    assert set(drift["results"]) == {"0", "1", "2", "3", "4"}


def test_layers_are_of_the_worst_run_and_the_verdict_of_all(delegraph: Command) -> None:
    floats, integers = DIGITS / "digits_float.tflite", DIGITS / "digits_int8.tflite"
    words = ("diff", integers, "--reference", floats, "--tolerance", "0.05")
    plain, layers = delegraph(*words), delegraph(*words, "--layers")
    assert (plain.code, layers.code) == (1, 1)
    off = plain.lines[0].removeprefix("differs: ")
    assert off.startswith("13 of 500 elements of digit are off by more than the tolerance")
    assert off in layers.lines[0]
    assert "layers of seed 47, the worst of 50 runs" in layers.out


def test_json_has_each_layer_and_why_not(delegraph: Command, sines: Path) -> None:
    done = delegraph("diff", sines, "-d", "sin", "--runs", "1", "--layers", "--json")
    layers = json.loads(done.out)["layers"]
    assert layers["inner"] == "alone"
    assert [layer["op"] for layer in layers["layers"]] == ["SIN", "ADD", "MUL", "SIN", "ADD"]
    assert layers["layers"][1]["same_inputs_note"] == "the reference has the same kernel"
    assert layers["layers"][0]["same_inputs"]["raw"]["max"]["max"] < 1e-6


def test_what_partitions_hide_is_said_once(delegraph: Command, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    model = tmp_path / "chain.tflite"
    nodes: list[Any] = [("ADD", "x x", "a"), ("ADD", "a x", "b"), ("ADD", "b x", "y")]
    model.write_bytes(graph_model(nodes, inputs="x", outputs="y"))
    words = ["diff", model, "--runtime", "litert", "--runs", "1", "--layers"]
    done = delegraph(*words, "--inner", "boundaries")
    assert "2 tensors of nodes 0-1: inside partition 0 of XNNPACK" in done.out
    assert "--inner exposed or --inner alone has delegates compute these" in done.out
    assert "inside partition" not in delegraph(*words).out


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_layers_are_drawn(delegraph: Command, sines: Path, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / f"layers{suffix}"
    done = delegraph("diff", sines, "-d", "sin", "--runs", "1", "--layers", "--plot", picture)
    assert done.code == 0, done.err
    if suffix == ".svg":
        text = picture.read_text()
        assert all(word in text for word in ("drift", "same inputs", "SIN 0", "ADD 4", "equal"))
    else:
        assert picture.read_bytes().startswith(b"\x89PNG")


# -- --bisect --------------------------------------------------------------------------------------

WRONG_SINES = Path(__file__).parents[3] / "docs" / "demo" / "wrong_sines.py"
"""A delegate of SIN that is wrong at node 3 of the demo's model."""


def test_bisect_names_the_node_and_writes_what_shows_it(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    words = ("diff", sines, "--delegate-file", WRONG_SINES, "--runs", "2", "--tolerance", "0.001")
    folder = tmp_path / "found"
    done = delegraph(*words, "--bisect", folder, "-v")
    assert done.code == 1
    assert done.err.endswith("error: the result is wrong: 1 culprit\n")
    assert done.out.count("differs: ") == 1
    assert "probe 1: 2 of 2 nodes with delegates: differs: " in done.err
    assert "2 nodes with delegates, 5 probes" in done.out
    assert any(line.startswith("3 SIN sines") for line in done.lines)
    command = next(line for line in done.lines if line.startswith("delegraph diff"))
    again = delegraph(*shlex.split(command)[1:])
    assert again.code == 1
    assert "further off than the tolerance" in again.err
    assert delegraph(*words, "--rules", folder / "rules.toml").code == 0


def test_an_interrupted_search_prints_its_culprits(
    delegraph: Command, sines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def interrupt(what: str, done: float, total: float | None) -> None:
        told.append(what)
        if ", 1 culprit, " in what:
            raise KeyboardInterrupt

    shown = "delegraph.cli.commands.diff.shown_progress"
    monkeypatch.setattr(shown, lambda: contextlib.nullcontext(interrupt))
    words = ("diff", sines, "--delegate-file", WRONG_SINES, "--runs", 2, "--tolerance", 1e-3)
    ran = delegraph(*words, "--bisect", tmp_path / "found")
    assert ran.code == 130
    assert "note: interrupted: more nodes may be faulty" in ran.lines
    assert told[0] == "1 probe, 0 culprits, 2 candidates left"
    names = {path.name for path in (tmp_path / "found").iterdir()}
    assert {"culprit.tflite", "culprit.npz", "rules.toml"} <= names


def test_bisect_of_a_right_delegate_ends_well(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    words = ("-d", "sin", "--runs", "1", "--tolerance", "0.001", "--bisect", tmp_path, "--json")
    done = delegraph("diff", sines, *words)
    assert done.code == 0, done.err
    assert json.loads(done.out)["culprits"] == []
    assert (
        "right: outputs are within the tolerance with all nodes"
        in delegraph("diff", sines, *words[:-1]).out
    )


def test_bisect_says_that_the_named_delegate_takes_no_node(
    delegraph: Command, tmp_path: Path
) -> None:
    model = tmp_path / "sine.tflite"
    model.write_bytes(one_op_model("SIN", [tensor((4,))], [tensor((4,))]))
    words = ("-d", "add_sub", "-d", "sin", "--runs", 1, "--bisect", tmp_path / "found")
    ran = delegraph("diff", model, *words)
    assert ran.lines[0].endswith("with all nodes that delegates take")
    assert "note: add_sub takes no node" in ran.lines


def test_bisect_without_a_tolerance_takes_the_numerics_profile(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    words = ("--delegate-file", WRONG_SINES, "--runs", "1", "--bisect", tmp_path / "found")
    done = delegraph("diff", sines, *words)
    assert done.code == 1
    assert done.lines[0] == "further off than the numerics profile: node 3 (SIN)"
    assert done.err.strip() == "error: the result is wrong: 1 culprit"
    command = next(line for line in done.lines if line.startswith("delegraph diff"))
    assert delegraph(*shlex.split(command)[1:]).code == 1


@pytest.mark.parametrize(("tolerance", "code"), [("1e-12", 1), ("1", 0)])
def test_bisect_of_xnnpack_ends_as_the_comparison_does(
    delegraph: Command, tolerance: str, code: int
) -> None:
    pytest.importorskip("ai_edge_litert")
    words = ("--runtime", "litert", "--runs", "1", "--tolerance", tolerance)
    model = DIGITS / "digits_float.tflite"
    done = delegraph("diff", model, *words, "--bisect")
    assert done.code == delegraph("diff", model, *words).code == code
    assert done.lines[0].startswith("differs: " if code else "same within the tolerance: ")
    assert done.lines[1].startswith("nothing to search: XNNPACK has all nodes")
    assert f"alone: delegraph diff {model} --runtime litert --layers" in done.out
    shown = delegraph("diff", model, *words, "--bisect", "--json").json
    assert (shown["culprits"], shown["probes"]) == ([], [])


@pytest.mark.parametrize(("width", "figures"), [(60, "dB dB"), (72, "drift inputs dB")])
def test_narrow_terminals_keep_names_drift_and_the_sort_key(
    fresh_delegraph: Command, width: int, figures: str
) -> None:
    folder = Path(__file__).parents[3] / "docs" / "demo" / "models"
    models = [folder / f"digits_{kind}.tflite" for kind in ("int8", "float")]
    words = ("-d", "none", "--reference", str(models[1]), "--layers", "--runs", 1)
    ran = fresh_delegraph("diff", models[0], *words, COLUMNS=f"{width}")
    start = ran.lines.index("Layers")
    assert ran.lines[start + 1] == ".../ in names is digits_1/"
    assert ran.lines[start + 3] == f"node operator name {figures}"
    assert any(line.startswith("no room for runs on, drift") for line in ran.lines)
