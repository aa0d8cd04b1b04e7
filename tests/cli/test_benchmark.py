from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from delegraph.schema.options import AddOptions
from delegraph.testing import one_op_model, tensor
from delegraph.tools.array_files import read_npz
from support.command import Command

BRIEF = ("--runs", 3, "--min-seconds", 0, "--warmup-runs", 2, "--warmup-seconds", 0)


@pytest.fixture
def add(tmp_path: Path) -> Path:
    """Two inputs, t0 + t1, of open length."""
    path = tmp_path / "add.tflite"
    kinds = [tensor((2,), shape_signature=(-1,)) for _ in range(2)]
    path.write_bytes(one_op_model("ADD", kinds, [tensor((2,))], AddOptions()))
    return path


@pytest.mark.parametrize("runtime", ["delegraph", "litert"])
def test_it_runs_so_often_on_either_runtime(delegraph: Command, sines: Path, runtime: str) -> None:
    shown = delegraph("benchmark", sines, "--runtime", runtime, *BRIEF, "--json").json
    assert (len(shown["samples"]["warmup"]), len(shown["samples"]["runs"])) == (2, 3)
    assert shown["setup"]["runtime"] == runtime
    assert shown["latency"]["count"] == 3


def test_the_options_are_the_run_control(delegraph: Command, sines: Path) -> None:
    words = ("--max-seconds", 9, "--delay", 0.001, "--frequency", 1e6)
    shown = delegraph("benchmark", sines, *BRIEF, *words, "--json").json
    assert shown["control"] == {
        "runs": 3,
        "min_seconds": 0,
        "max_seconds": 9,
        "warmup_runs": 2,
        "warmup_seconds": 0,
        "delay": 0.001,
        "frequency": 1e6,
    }


def test_a_dry_run_has_stages_and_no_times(delegraph: Command, sines: Path) -> None:
    ran = delegraph("benchmark", sines, "--dry-run", "-d", "sin")
    assert (ran.code, ran.err) == (0, "")
    assert "5 nodes: sin takes 2 in 2 partitions, 3 stay with Delegraph's kernels" in ran.out
    assert "Stages" in ran.lines
    assert "Times" not in ran.lines
    assert delegraph("benchmark", sines, "--dry-run", "--json").json["latency"] is None


def test_figures_are_shown_for_people(delegraph: Command, sines: Path) -> None:
    lines = delegraph("benchmark", sines, *BRIEF, "--name", "two sines").lines
    assert lines[0] == "two sines"
    assert "count first min mean std p5 median p90 p95 p99 max" in lines
    assert any(line.startswith("warm-up 2 ") for line in lines)
    assert any(line.startswith("inference 3 ") for line in lines)
    assert any(line.startswith("3 runs, ") for line in lines)
    assert "caution: 3 of at least 10 runs: too few to tell how much times vary" in lines


def test_the_result_is_written(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert delegraph("benchmark", sines, *BRIEF, "--result-json", path, "--name", "mine").code == 0
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["name"] == "mine"
    assert written["official"]["misc_metrics"]["num_runs"] == 3
    assert written["machine"]["versions"]["delegraph"]


def test_inputs_are_given_shaped_and_saved(delegraph: Command, add: Path, tmp_path: Path) -> None:
    path = tmp_path / "y.npz"
    words = ("-i", "t0=10", "--input-shape", "0=4", "--input-shape", "t1=4")
    ran = delegraph("benchmark", add, *BRIEF, *words, "--input-range", "1=5,7", "--save", path)
    assert ran.code == 0
    (values,) = read_npz(str(path)).values()
    assert values.shape == (4,)
    assert ((values >= 15) & (values <= 17)).all()
    shown = delegraph("benchmark", add, *BRIEF, *words, "--seed", 7, "--json").json
    assert [entry["source"] for entry in shown["inputs"]] == ["10", "random"]
    assert (shown["seed"], shown["distribution"]) == (7, "benchmark")


def test_the_seed_decides_the_outputs(delegraph: Command, add: Path, tmp_path: Path) -> None:
    found = []
    for seed in (1, 1, 2):
        path = tmp_path / "y.npz"
        delegraph("benchmark", add, *BRIEF, "--seed", seed, "--save", path)
        found.append(next(iter(read_npz(str(path)).values())))
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input-shape", "t0=a,2"], "'t0=a,2', expected [NAME=]1,224,224,3"),
        (["--input-range", "t0=1"], "1 number for 't0', expected [NAME=]LOW,HIGH"),
        (["--input-range", "t0=1,2,3"], "3 numbers for 't0', expected [NAME=]LOW,HIGH"),
        (["--input-shape", "4"], "a shape without a name: say of which input, 't0', 't1'"),
        (["--input-range", "x=1,2"], "a range of 'x', none of the inputs: 't0', 't1'"),
        (["--input-shape", "t0=1,2"], "input 't0' (float32 [-1]): shape [1, 2] does not fit"),
        (["--input-shape", "t0=1", "--input-shape", "t0=2"], "'t0=2' is a second one for the same"),
        (["--dry-run", "--save", "y.npz"], "no outputs to save in 'y.npz': the model did not run"),
        (["--save", "y.txt"], "expected a file ending in .npz"),
        (["--signature", "serve"], "no signature 'serve'"),
        (["--runs", "0"], "Invalid value for '--runs'"),
        (["--result-json", "absent/folder/r.json", *map(str, BRIEF)], "absent/folder/r.json"),
    ],
)
def test_mistakes_are_told_in_one_line(
    delegraph: Command, add: Path, words: list[str], message: str
) -> None:
    ran = delegraph("benchmark", add, *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
