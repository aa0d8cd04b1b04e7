from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from delegraph.cli.options.preprocessing import FILTERS, PRESETS
from delegraph.tools.evaluation import picture_resizing, presets
from support.command import Command, Refused
from support.pictured import COLOURS, colour_model, write_pictures

WORDS = ["red", "green", "blue", "blue", "green", "red", "red", "green", "blue", "red"]
Words = Callable[..., list[object]]

SOMETIMES_DYING = '''
import os, signal
import numpy as np
from delegraph import SimpleDelegateInterface, SimpleDelegateKernelInterface

class Dying(SimpleDelegateInterface):
    """Takes MEAN, gives each class the score of the one before, and kills the process at a run."""

    def name(self):
        return "dying"

    def is_node_supported_by_delegate(self, registration, node, context):
        return registration.name == "MEAN"

    def create_delegate_kernel_interface(self):
        return Kernel()

class Kernel(SimpleDelegateKernelInterface):
    runs = 0

    def init(self, context, params):
        pass

    def prepare(self, context, node):
        pass

    def eval(self, context, node):
        self.runs += 1
        if str(self.runs) == os.environ.get("DIE_AT"):
            os.kill(os.getpid(), signal.SIGKILL)
        x, y = (context.tensors[i] for i in (node.inputs[0], node.outputs[0]))
        y.data[...] = np.roll(x.data.mean((1, 2)), 1, -1)
'''


@pytest.fixture
def classification(tmp_path: Path) -> Words:
    """Words that evaluate a classifier of ten pictures, with others after them."""
    write_pictures(tmp_path / "pictures", WORDS)
    (tmp_path / "truth.txt").write_text("".join(f"{word}\n" for word in WORDS))
    (tmp_path / "labels.txt").write_text("".join(f"{word}\n" for word in COLOURS))
    model = colour_model(tmp_path / "colours.tflite")

    def words(*more: object, **files: object) -> list[object]:
        given: dict[str, object] = {
            "--images": tmp_path / "pictures",
            "--truth": tmp_path / "truth.txt",
            "--labels": tmp_path / "labels.txt",
        }
        given |= {f"--{name}": path for name, path in files.items()}
        flat = [word for pair in given.items() for word in pair]
        return ["evaluate", "classification", model, *flat, *more]

    return words


@pytest.fixture
def dying(tmp_path: Path) -> Path:
    path = tmp_path / "dying.py"
    path.write_text(SOMETIMES_DYING)
    return path


def test_classification_shows_accuracy_and_times(delegraph: Command, classification: Words) -> None:
    ran = delegraph(*classification())
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[0] == "10 samples"
    assert "1 100.00 % 100.00 % 100.00 % 100.00 % 100.00 %" in ran.lines
    assert "Set-up of colours.tflite" in ran.lines
    assert any(re.match(r"1 as by default \d \d+\.\d", line) for line in ran.lines)
    assert not any("Drop" in line for line in ran.lines)


def test_a_wrong_delegate_shows_its_drop_and_what_changed(
    delegraph: Command, classification: Words, dying: Path
) -> None:
    ran = delegraph(*classification("--against", f"--delegate-file {dying}"))
    assert ran.code == 0
    assert "Change of top-1 from set-up 1" in ran.lines
    row = next(line for line in ran.lines if line.startswith("2 100.00 % lower -100.00 % to -"))
    assert row.split()[-3:] == ["10", "0", "10"]
    assert "Changed answers of set-up 2" in ran.lines
    assert "00.png red red green" in ran.lines
    shown = delegraph(*classification("--against", f"--delegate-file {dying}", "--json")).json
    drop = shown["setups"][1]["drop"]["top-1"]
    assert (drop["lost"], drop["gained"], drop["drop"]) == (10, 0, 1)
    assert drop["interval"]["low"] > 0
    assert [changed["key"] for changed in shown["setups"][1]["changed"]] == [
        f"{number:02}.png" for number in range(10)
    ]
    assert shown["setups"][1]["delegate_files"] == [str(dying)]


def test_names_of_models_are_whole_in_a_narrow_terminal(
    fresh_delegraph: Command, classification: Words, tmp_path: Path
) -> None:
    names = [f"mobilenet_v2_1.0_224_{kind}_of_some_data_set_quant.tflite" for kind in ("a", "b")]
    for name in names:
        shutil.copy(tmp_path / "colours.tflite", tmp_path / name)
    _, task, _, *words = classification("--against", tmp_path / names[1])
    ran = fresh_delegraph("evaluate", task, tmp_path / names[0], *words, COLUMNS="80")
    assert [name for line in ran.lines for name in line.split() if name in names] == names


def test_other_steps_are_named_where_none_are_chosen(
    delegraph: Command, classification: Words
) -> None:
    assert (
        "--preset has the steps of other frameworks: slim, keras"
        in delegraph(*classification()).out
    )
    assert "other frameworks" not in delegraph(*classification("--preset", "tflite")).out


def test_own_steps_are_named_with_their_values(delegraph: Command, classification: Words) -> None:
    own = ("--crop", "none", "--resize", "bilinear", "--upright", "--std", "64")
    steps = (
        "Preprocessing: tflite with --crop, --resize, --std, --upright (whole picture, upright, "
        "resized (bilinear), floats: (byte - 127.5) / 64, integers: bytes)"
    )
    assert steps in " ".join(delegraph(*classification(*own)).lines)


def test_each_set_up_shows_its_threads(delegraph: Command, classification: Words) -> None:
    two = "--threads 2 --delegate none"
    ran = delegraph(*classification("--delegate", "none", "--against", two))
    assert "set-up threads mean std median p95" in ran.lines
    assert any(line.startswith("2 no delegates, 2 threads 2 ") for line in ran.lines)
    shown = delegraph(*classification("--delegate", "none", "--against", two, "--json")).json
    assert [setup["threads"] for setup in shown["setups"]] == [1, 2]


def test_files_that_are_no_pictures_are_told_of_once(
    delegraph: Command, classification: Words, tmp_path: Path
) -> None:
    (tmp_path / "pictures" / ".DS_Store").touch()
    ran = delegraph(*classification())
    assert (ran.code, ran.lines[0]) == (0, "10 samples")
    assert ran.err.count("1 file left out, hidden or no picture by name: '.DS_Store'") == 1


def untimed(result: Any) -> Any:
    """Return a result without times and without what an earlier run had done."""
    if isinstance(result, dict):
        times = ("prepare", "invoke", "resumed")
        return {name: untimed(value) for name, value in result.items() if name not in times}
    return [untimed(value) for value in result] if isinstance(result, list) else result


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no process can be killed so")
def test_a_killed_process_goes_on_and_the_result_is_that_of_an_uninterrupted_one(
    fresh_delegraph: Command, classification: Words, dying: Path, tmp_path: Path
) -> None:
    (tmp_path / "pictures" / "03.png").write_bytes(b"no picture")
    against = ("--against", f"--delegate-file {dying}")
    whole, resumed = tmp_path / "whole.json", tmp_path / "resumed.json"
    assert fresh_delegraph(*classification(*against, "-o", whole)).code == 0

    killed = fresh_delegraph(*classification(*against, "-o", resumed), DIE_AT="7")
    assert killed.code == -signal.SIGKILL
    assert not resumed.exists()
    journal = Path(f"{resumed}.journal")
    done = journal.read_bytes().splitlines()
    assert len(done) == 1 + 6  # five good ones after a warm-up run, and the one that is bad
    journal.write_bytes(journal.read_bytes() + b'{"key": "06.p')  # as killed while writing

    again = fresh_delegraph(*classification(*against, "-o", resumed))
    assert again.code == 0
    assert again.lines[0] == "9 samples, 6 of 10 done in an earlier run"
    assert not journal.exists()
    first, second = (json.loads(path.read_text()) for path in (whole, resumed))
    assert untimed(first) == untimed(second)
    assert [bad["key"] for bad in second["bad"]] == ["03.png"]
    assert second["setups"][1]["invoke"]["count"] == 9


def test_a_journal_of_another_preset_is_refused_and_restart_begins_anew(
    delegraph: Command, refused: Refused, classification: Words, tmp_path: Path
) -> None:
    assert "--restart needs --output" in refused(*classification("--restart"))
    output = tmp_path / "result.json"
    words = ("-o", output)
    (tmp_path / "result.json.journal").write_text('{"format": 2, "task": "t"}\n')
    err = refused(*classification(*words, "--preset", "slim"))
    assert "result.json.journal' is of another evaluation: not the same samples, set-up" in err
    (tmp_path / "result.json.journal").unlink()
    delegraph(*classification(*words, "--labels", tmp_path / "truth.txt"))  # the journal stays
    ran = delegraph(*classification(*words, "--preset", "slim"))
    assert "preprocessing: crop: 'square', now 'rectangle'; name: 'tflite', now 'slim';" in ran.err
    ran = delegraph(*classification(*words, "--preset", "slim", "--restart"))
    assert (ran.code, ran.lines[0]) == (0, "10 samples")
    shown = json.loads(output.read_text())
    assert (shown["preprocessing"]["name"], shown["resumed"]) == ("slim", 0)


def test_an_interrupted_evaluation_says_how_to_go_on(
    delegraph: Command, classification: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def begun(*_: object, **__: object) -> None:
        (tmp_path / "result.json.journal").touch()
        raise KeyboardInterrupt

    run_task = "delegraph.tools.evaluation.classification.run_task"
    monkeypatch.setattr(run_task, begun)
    done = delegraph(*classification("-o", tmp_path / "result.json"))
    assert (done.code, "kept: the same command goes on\n" in done.err) == (130, True)
    done = delegraph(*classification("-o", tmp_path / "result.json", "--restart"))
    assert "kept: the same command without --restart goes on\n" in done.err
    monkeypatch.setattr(run_task, interrupted)
    assert "kept" not in delegraph(*classification("-o", tmp_path / "other.json")).err
    assert "kept" not in delegraph(*classification()).err


def test_bad_pictures_are_listed_and_not_fatal(
    delegraph: Command, classification: Words, tmp_path: Path
) -> None:
    (tmp_path / "pictures" / "03.png").write_bytes(b"no picture")
    ran = delegraph(*classification())
    assert ran.code == 0
    assert "1 sample could not be used" in ran.lines
    assert any(line.startswith("03.png: picture ") for line in ran.lines)


def test_options_change_steps_of_a_preset(
    delegraph: Command, refused: Refused, classification: Words
) -> None:
    changes = ("--preset", "torchvision", "--resize", "lanczos", "--mean", "1,2,3", "--upright")
    shown = delegraph(*classification(*changes, "--json")).json["preprocessing"]
    assert shown["name"] == "torchvision with --resize, --mean, --upright"
    assert (shown["resize"], shown["mean"], shown["upright"]) == ("lanczos", [1, 2, 3], True)
    assert (shown["crop"], shown["std"]) == ("after", [58.395, 57.12, 57.375])
    err = refused(*classification("--std", "1,x"))
    assert "'1,x': expected a number, or three with commas between" in err


def test_help_names_the_presets_and_filters_that_there_are() -> None:
    assert tuple(presets.PRESETS) == PRESETS
    assert get_args(picture_resizing.Filter) == FILTERS


def test_the_table_of_all_answers_is_written(
    delegraph: Command, refused: Refused, classification: Words, tmp_path: Path
) -> None:
    err = refused(*classification("--csv", tmp_path / "absent" / "answers.csv"))
    assert "there is no folder" in err
    path = tmp_path / "answers.csv"
    assert delegraph(*classification("--num-images", 4, "--csv", path)).code == 0
    assert path.read_text().splitlines()[1].startswith("00.png,red,colours.tflite,red,")
    assert len(path.read_text().splitlines()) == 5


# -- mistakes ----------------------------------------------------------------------------------


def test_another_count_of_lines(refused: Refused, classification: Words, tmp_path: Path) -> None:
    err = refused(*classification(truth=tmp_path / "labels.txt"))
    assert "labels.txt' has 3 lines, and" in err
    assert "10 pictures (the first is '00.png', the last '09.png'); expected one line for" in err


def test_a_result_file_of_another_kind(
    refused: Refused, classification: Words, tmp_path: Path
) -> None:
    err = refused(*classification("-o", tmp_path / "result.csv"))
    assert "result.csv': expected a file ending in .json; --csv FILE.csv writes a table" in err
    err = refused(*classification("--csv", tmp_path / "answers.json"))
    assert "answers.json': expected a file ending in .csv" in err


def test_missing_labels_name_their_option(refused: Refused, classification: Words) -> None:
    words = classification()
    place = words.index("--labels")
    err = refused(*words[:place], *words[place + 2 :])
    assert "has no labels in its metadata: --labels FILE names the classes" in err


def test_a_wrong_file_of_labels(refused: Refused, classification: Words, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("ant\nbee\ncat\n")
    err = refused(*classification(labels=tmp_path / "other.txt"))
    assert "words that are none of the 3 labels: 'blue', 'green', 'red'. Is it" in err


def test_a_model_of_another_input(refused: Refused, classification: Words, sines: Path) -> None:
    err = refused(*classification("--against", sines))
    assert "sines.tflite: input 'x' (float32 [1]) takes no picture: expected [1, H, W, 3]" in err


def test_errors_name_options_of_the_task(refused: Refused, classification: Words) -> None:
    err = refused(*classification("--memory-limit", "4"), code=1)
    assert "more than the limit of 4 bytes; --memory-limit sets another" in err


# -- metrics -----------------------------------------------------------------------------------

METRIC = """
def exact(outputs, labels):
    return abs(outputs["scores"] - labels["truth"]).max() == 0

def unknown(outputs, labels):
    return float("nan") if labels["truth"].max() == 2 else 1
"""


@pytest.mark.parametrize("task", [(), ("custom",)])
def test_a_metric_of_a_package_judges_rows(
    delegraph: Command,
    refused: Refused,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: tuple[str, ...],
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_metrics", raising=False)
    (tmp_path / "my_metrics.py").write_text(METRIC)
    model = colour_model(tmp_path / "colours.tflite")
    truth = np.ones((5, 3))
    truth[4] = 2
    pictures = np.ones((5, 4, 6, 3), np.float32)
    np.savez(tmp_path / "rows.npz", picture=pictures, truth=truth)
    words = ("--metric", "my_metrics:exact", model, tmp_path / "rows.npz")
    ran = delegraph("evaluate", *task, *words, "--against", "--threads 1")
    assert (ran.code, ran.err) == (0, "")
    first = ran.lines.index("Figures of my_metrics:exact") + 1
    assert ran.lines[first : first + 2] == ["figure set-up 1 set-up 2", "exact 0.8 0.8"]
    assert "2 exact none 0 to 0" in ran.lines
    ran = delegraph(
        "evaluate", *task, "--metric", "my_metrics:unknown", *words[2:], "--against", "--threads 1"
    )
    assert f"unknown of set-up 2 is NaN in 1 row, the first is {words[3]}[4]" in " ".join(ran.lines)
    assert "2 unknown no number -" in ran.lines
    err = refused("evaluate", *task, *words[:1], "my_metrics:inexact", *words[2:])
    assert "metric 'my_metrics:inexact' cannot be imported: AttributeError" in err


def test_python_s_own_path_is_not_needed_for_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text("def one(outputs, labels):\n    return 1\n")
    colour_model(tmp_path / "colours.tflite")
    np.savez(tmp_path / "rows.npz", picture=np.ones((2, 4, 6, 3), np.float32))
    code = "import sys; sys.path.pop(0); from delegraph.cli import main; sys.exit(main())"
    words = ("evaluate", "--metric=here:one", "colours.tflite", "rows.npz", "--json")
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout)["setups"][0]["figures"] == {"one": 1}, done.stderr
