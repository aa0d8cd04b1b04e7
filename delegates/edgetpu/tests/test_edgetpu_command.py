"""The command: files, terminal, JSON, exit codes."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from compiled_models import DIGITS
from delegraph.testing import CommandResult, run_command, tensor
from delegraph_edgetpu.report import pipeline_line
from delegraph_edgetpu.unmapped_table import print_unmapped
from quantised_chains import chain

MODEL = chain(
    [("RELU", "x", "a"), ("SOFTMAX", "a", "b"), ("TANH", "b", "c"), ("RELU", "c", "y")],
    outputs="y",
    shape=(1, 19200),
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "wide.tflite"
    path.write_bytes(MODEL)
    return path


def run(*arguments: object) -> CommandResult:
    return run_command("edgetpu", "compile", *arguments)


def test_compiled_model_and_log_are_written(model: Path, tmp_path: Path) -> None:
    assert run(model, "-o", tmp_path / "out").code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "wide_edgetpu.log",
        "wide_edgetpu.tflite",
    ]


def test_log_has_the_shape_of_the_real_one(model: Path, tmp_path: Path) -> None:
    run(model, "-o", tmp_path)
    lines = (tmp_path / "wide_edgetpu.log").read_text().splitlines()
    assert lines[0].startswith("Edge TPU Compiler version ")
    assert lines[1:] == [
        "Input: wide.tflite",
        "Output: wide_edgetpu.tflite",
        "For Delegraph's simulated Edge TPU; a real one needs Google's edgetpu_compiler.",
        "",
        "Operator                       Count      Status",
        "",
        "RELU                           1          Mapped to Edge TPU",
        "RELU                           1          More than one subgraph is not supported",
        "SOFTMAX                        1          Operation is otherwise supported, but not "
        "mapped due to some unspecified limitation",
        "TANH                           1          More than one subgraph is not supported",
        "",
        "Node 1 (SOFTMAX): 19,200 elements, limit 16,000. Remedy: apply it to a shorter vector, "
        "or leave it at the end of the model.",
        "Node 2 (TANH): it needs the results of node 1 (SOFTMAX), which does not map, and only one "
        "part is compiled. Remedy: make node 1 (SOFTMAX) map, which is the "
        "first in the way.",
        "Node 3 (RELU): it needs the results of node 1 (SOFTMAX), which does not map, and only one "
        "part is compiled. Remedy: make node 1 (SOFTMAX) map, which is the "
        "first in the way.",
    ]


def test_terminal_says_what_the_real_one_says_and_why(model: Path, tmp_path: Path) -> None:
    text = run(model, "-o", tmp_path).out
    for line in (
        "Model compiled successfully in ",
        "\nFor Delegraph's simulated Edge TPU; a real one needs Google's edgetpu_compiler.\n",
        f"Input model: {model}",
        "On-chip memory used for caching model parameters: 0.00B",
        "On-chip memory remaining for caching model parameters: 8.00MiB",
        "Off-chip memory used for streaming uncached model parameters: 0.00B",
        "Number of Edge TPU subgraphs: 1",
        "Total number of operations: 4",
        "Number of operations that will run on Edge TPU: 1",
        "Number of operations that will run on CPU: 3",
        "19,200 elements, limit 16,000",
        "Device time, an estimate: at least ",
    ):
        assert line in text
    assert "Operation is otherwise supported" not in text


def test_help_says_that_a_real_device_needs_another_compiler() -> None:
    words = " ".join(run("--help").out.split())
    assert "simulated Edge TPU; a real one needs Google's edgetpu_compiler." in words


def test_show_operations_prints_the_log(model: Path, tmp_path: Path) -> None:
    text = run(model, "-s", "-o", tmp_path).out
    assert "SOFTMAX                        1          Operation is otherwise" in text


def test_rows_that_wait_for_one_node_are_put_together(model: Path, tmp_path: Path) -> None:
    rows = run(model, "-o", tmp_path).out.splitlines()
    assert any(row.split()[:3] == ["2-3", "RELU,", "TANH"] for row in rows)


def test_json_has_every_operator_with_rule_actual_and_remedy(model: Path, tmp_path: Path) -> None:
    result = run(model, "--json", "-o", tmp_path)
    assert result.code == 0
    (found,) = result.json
    assert found["path"] == str(tmp_path / "wide_edgetpu.tflite")
    assert (found["mapped"], found["unmapped"]) == (1, 3)
    reason = found["operators"][1]["reasons"][0]
    assert reason["rule"] == "softmax-elements"
    assert (reason["actual"], reason["expected"]) == ("19,200 elements", "limit 16,000")
    assert reason["remedy"]
    assert "480 MHz" in found["estimate"]["formula"]


def test_a_pipeline_is_compared_with_the_whole_model() -> None:
    whole, fast, slow = (SimpleNamespace(estimate=SimpleNamespace(seconds=s)) for s in (4, 2, 4.5))
    told = pipeline_line([fast, fast], whole)  # type: ignore[list-item, arg-type]  # what is read
    assert told.endswith("whole model takes 4 s: 2.0 times as often as one device")
    told = pipeline_line([fast, slow], whole)  # type: ignore[list-item, arg-type]  # what is read
    assert "the time of segment 1" in told
    assert "no faster than one device: leave -n out" in told


def test_segments_are_written(tmp_path: Path) -> None:
    ran = run(DIGITS, "-n", 2, "-o", tmp_path)
    assert ran.code == 0
    assert "Pipeline of 2 segments: an answer each " in ran.out
    assert sorted(path.name for path in tmp_path.glob("*.tflite")) == [
        "digits_int8_segment_0_of_2_edgetpu.tflite",
        "digits_int8_segment_1_of_2_edgetpu.tflite",
    ]


def test_exit_code_tells_a_model_from_a_wrong_argument(tmp_path: Path, model: Path) -> None:
    floats = tmp_path / "floats.tflite"
    floats.write_bytes(
        chain([("RELU", "x", "y")], outputs="y", tensors={n: tensor((4,)) for n in "xy"})
    )
    result = run(floats, "-o", tmp_path)
    assert result.code == 1
    assert "floats.tflite: the model is not quantised" in result.err
    absent = run(tmp_path / "absent.tflite", "-o", tmp_path)
    assert absent.code == 2
    assert "absent.tflite' does not exist" in absent.err
    assert run(model, "-m", 9, "-o", tmp_path).code == 2
    result = run(model, "-o", model / "inside")
    assert result.code == 2
    assert "cannot be written: Not a directory" in result.err
    result = run(model, "-i", "nowhere", "-o", tmp_path)
    assert result.code == 2
    assert "no operator makes a tensor 'nowhere'" in result.err


def test_a_file_name_in_place_of_the_folder_is_refused(model: Path, tmp_path: Path) -> None:
    done = run(model, "-o", tmp_path / "out.tflite")
    assert done.code == 2
    assert "out.tflite' is the name of a file, give a folder" in done.err
    assert not (tmp_path / "out.tflite").exists()


def test_two_files_of_one_name_are_refused_before_anything_is_written(
    tmp_path: Path, model: Path
) -> None:
    (tmp_path / "other").mkdir()
    twin = tmp_path / "other" / "wide.tflite"
    twin.write_bytes(MODEL)
    result = run(model, twin, "-o", tmp_path / "out")
    assert result.code == 2
    assert "'wide_edgetpu.tflite' would be written twice" in result.err
    assert not (tmp_path / "out").exists()


def test_intermediate_tensors_are_separated_by_commas(model: Path, tmp_path: Path) -> None:
    result = run(model, "-i", "a, a", "--json", "-o", tmp_path)
    assert result.code == 0
    assert result.json[0]["mapped"] == 1


def test_the_version_is_shown_without_a_model() -> None:
    assert run("--version").out.startswith("Edge TPU Compiler version ")


@pytest.mark.parametrize(
    ("flags", "advice"),
    [
        (["-a"], "No such option '-a': .* Leave it out; -i NAMES .* -n N"),
        (["-t", 60], "No such option '-t': .* Leave it out, or .* timeout 60 delegraph"),
    ],
)
def test_a_missing_flag_of_the_real_compiler_says_what_to_use(
    flags: list[object], advice: str
) -> None:
    result = run(*flags)
    assert result.code == 2
    assert re.search(advice, result.err)


def test_an_operator_at_the_end_needs_no_remedy(tmp_path: Path) -> None:
    path = tmp_path / "ends.tflite"
    path.write_bytes(chain([("RELU", "x", "a"), ("ABS", "a", "y")], outputs="y", shape=(1, 8)))
    (found,) = run(path, "--json", "-o", tmp_path).json
    assert found["operators"][1]["reasons"][0]["remedy"].startswith("none: at the end")


LONG = ("63", "TFLite_Detection_PostProcess", "it is no operator of the Edge TPU", "none needed")


@pytest.mark.parametrize("width", [50, 60, 80, 140])
def test_no_name_is_broken_in_a_narrow_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_unmapped([LONG, ("1-2", "ADD x2, RELU", "it needs the results of node 0", "map node 0")])
    shown = capsys.readouterr().out
    assert "TFLite_Detection_PostProcess" in shown
    assert max(map(len, shown.splitlines())) <= width
