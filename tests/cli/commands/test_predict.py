"""``delegraph predict``: what it prints, and how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from delegraph.schema.options import GatherOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from support.command import Command, Refused
from support.described_models import of_tensor, with_metadata
from support.moody_delegate import moody_setup
from support.signatures import two_signatures

MODELS = Path(__file__).parents[3] / "docs" / "demo" / "models"


@pytest.fixture
def lookup(tmp_path: Path) -> Path:
    """Rows of a table of 10; other positions are an error."""
    table = constant(np.arange(20, dtype=np.float32).reshape(10, 2))
    tensors = {"x": tensor((1,), "INT32"), "table": table, "y": tensor((1, 2))}
    node = ("GATHER", "table x", "y", GatherOptions())
    path = tmp_path / "lookup.tflite"
    path.write_bytes(graph_model([node], inputs="x", outputs="y", tensors=tensors))
    return path


def data(folder: Path, *places: int) -> Path:
    path = folder / "places.jsonl"
    path.write_text("".join(json.dumps({"place": place}) + "\n" for place in places))
    return path


def test_a_summary_tells_of_bad_rows(delegraph: Command, lookup: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    words = ["predict", lookup, data(tmp_path, 1, 99, 3), "-o", output, "--processes", 1]
    ran = delegraph(*words, "--input-column", "x=place", "--output-column", "y=pair")
    assert ran.code == 0
    assert f"3 rows: 2 good, 1 bad; 3 written to {output}\n" in ran.out
    assert re.search(
        r"\n  [\d.]+ s, of them [\d.]+ s to start; [\d,.]+ rows a second then, 1 p", ran.out
    )
    assert "1 process, rows together\n  1 node: " in ran.out
    assert "\n\n1 bad row, reasons in the column 'error'\n  row 1: " in ran.out
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["pair"] for row in rows] == [[2, 3], None, [6, 7]]
    ran = delegraph(*words, "--input-column", "x=place", "--on-error", "raise")
    assert ran.code == 1
    assert "\nerror: row 1: " in ran.err


def test_a_warning_is_printed_once_for_all_processes(
    delegraph: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    warning = "import logging\nlogging.getLogger('delegraph.moody').warning('slow')\n"
    setup = moody_setup(tmp_path)
    path = Path(setup.delegate_files[0])
    path.write_text(warning + path.read_text())
    np.savez(tmp_path / "data.npz", x=np.ones((80, 2), np.float32))
    words = ["predict", setup.model, tmp_path / "data.npz", "-o", tmp_path / "out.csv"]
    ran = delegraph(*words, "--delegate-file", path, "--processes", 2, "--isolate-rows")
    assert ran.code == 0, ran.err
    assert ran.err.count("warning: slow\n") == 1
    assert "slow" not in capfd.readouterr().err


def test_json_and_no_good_row(delegraph: Command, lookup: Path, tmp_path: Path) -> None:
    words = ["predict", lookup, data(tmp_path, 99), "-o", tmp_path / "out.npz", "--json"]
    ran = delegraph(*words, "--input-column", "x=place", "--processes", 1)
    answer = json.loads(ran.out)
    assert (answer["rows"], answer["written"], answer["bad"][0]["row"]) == (1, 1, 0)
    assert ran.code == answer["error"]["exit_code"] == 1
    assert "none of 1 row is good; row 0: " in answer["error"]["message"]


def test_skipped_files_and_a_replaced_output_are_told(delegraph: Command, tmp_path: Path) -> None:
    model, folder, output = tmp_path / "m.tflite", tmp_path / "rows", tmp_path / "out.csv"
    model.write_bytes(one_op_model("NEG", [tensor((1, 2))], [tensor((1, 2))]))
    folder.mkdir()
    np.save(folder / "a.npy", np.ones((1, 2), np.float32))
    for name in ("a.TXT", "b.txt", "c.md", "Makefile"):
        (folder / name).touch()
    output.write_text("earlier")
    words = ["predict", model, folder, "-o", output, "--processes", 1]
    ran = delegraph(*words)
    assert f"note: {output} exists; it is replaced at the end" in ran.err
    assert "  4 files skipped: .md, .txt, without an ending" in ran.out
    output.unlink()
    ran = delegraph(*words, "--json")
    assert (ran.json["skipped"], ran.err) == ({"": 1, ".md": 1, ".txt": 2}, "")
    assert (ran.json["setup"]["model"], ran.json["good"]) == (str(model), 1)
    assert ran.json["placement"].startswith("1 node: ")
    output.write_text("earlier")
    (folder / "a.npy").write_bytes(b"no array")
    ran = delegraph(*words)
    assert (ran.code, output.read_text()) == (1, "earlier")
    assert f"1 row: 0 good, 1 bad; {output} stays as it was\n" in ran.out
    assert "\n1 bad row\n" in ran.out


def test_classes_are_named_by_metadata_or_labels(delegraph: Command, tmp_path: Path) -> None:
    scores = constant(np.eye(10, dtype=np.float32))
    tensors = {"x": tensor((1,), "INT32"), "table": scores, "y": tensor((1, 10))}
    node = ("GATHER", "table x", "y", GatherOptions())
    model = tmp_path / "classes.tflite"
    content = graph_model([node], inputs="x", outputs="y", tensors=tensors)
    model.write_bytes(content)
    words = tmp_path / "words.txt"
    words.write_text("\n".join(f"word {number}" for number in range(10)))
    output = tmp_path / "out.csv"
    base = ["-o", output, "--processes", 1, "--input-column", "x=place"]
    place = data(tmp_path, 3, 99)
    plain = delegraph("predict", model, place, *base)
    assert (plain.code, output.read_text().split("\n")[0]) == (0, "row,y,error")
    assert "  y: seems to be scores of 10 classes; --top N or --labels FILE writes" in plain.out
    assert delegraph("predict", model, place, *base, "--json").json["scores"] == {"y": 10}
    ran = delegraph("predict", model, place, *base, "--output-column", "y=y", "--json")
    assert ran.json["scores"] == {}
    ran = delegraph("predict", model, place, *base, "--labels", words)
    assert (ran.code, "seems to be" in ran.out) == (0, False)
    assert output.read_text().startswith("row,class,score,error\n0,word 3,1.0,\n1,,,")
    ran = delegraph("predict", model, place, *base, "--top", 11)
    assert (ran.code, "error: --top 11: the model has 10 classes" in ran.err) == (2, True)
    ran = delegraph("predict", model, place, *base, "--top", 2)
    assert output.read_text().startswith("row,class_1,score_1,class_2,score_2,error\n0,3,1.0,0,")
    described = tmp_path / "described.tflite"
    outputs = (of_tensor(axis_labels="words.txt"),)
    files = {"words.txt": words.read_bytes()}
    described.write_bytes(with_metadata(content, (of_tensor(),), outputs, files))
    ran = delegraph("predict", described, place, *base)
    assert output.read_text().startswith("row,class,score,error\n0,word 3,1.0,\n1,,,")


def test_the_meaning_of_stored_integers_is_told(delegraph: Command, tmp_path: Path) -> None:
    data, output = tmp_path / "rows.npz", tmp_path / "out.csv"
    np.savez(data, image=np.zeros((2, 8, 8, 1), np.int8))
    words = ["predict", MODELS / "digits_int8.tflite", data, "-o", output, "--processes", 1]
    ran = delegraph(*words)
    assert "  image: whole numbers, read as stored integers; real value = " in ran.out
    assert (
        "  digit: stored integers; real value = 0.00390625 x (stored + 128); --real writes real "
        in ran.out
    )
    ran = delegraph(*words, "--json")
    assert ran.json["stored_integers"] == {"digit": {"scale": 1 / 256, "zero_point": -128}}
    assert ran.json["read_as"].keys() == {"image"}
    assert delegraph(*words, "--top", 1, "--json").json["stored_integers"] == {}
    with_integers = output.with_suffix(".npz")
    delegraph(*words[:3], "-o", with_integers, "--processes", 1)
    with_reals = output.with_name("real.npz")
    ran = delegraph(*words[:3], "-o", with_reals, "--processes", 1, "--real", "--json")
    assert ran.json["stored_integers"] == {}
    with np.load(with_integers) as stored, np.load(with_reals) as real:
        np.testing.assert_array_equal(real["digit"], (stored["digit"] + 128.0) / 256)


def test_pictures_are_prepared_by_options_that_are_told(delegraph: Command, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    model, folder, output = tmp_path / "neg.tflite", tmp_path / "pictures", tmp_path / "out.npz"
    model.write_bytes(one_op_model("NEG", [tensor((1, 1, 1, 1))], [tensor((1, 1, 1, 1))]))
    folder.mkdir()
    image.fromarray(np.full((4, 4), 200, np.uint8)).save(folder / "a.png")
    (folder / "b.npy").touch()
    words = ["predict", model, folder, "-o", output, "--processes", 1]
    ran = delegraph(*words, "--mean", "100", "--std", "50")
    assert (
        "  Preprocessing: whole picture, upright, resized (bilinear), (byte - 100) / 50, "
        in ran.out
    )
    with np.load(output) as written:
        assert written["row"].tolist() == [0, 1]
        assert written[written.files[2]][0].ravel().tolist() == [-2.0]
    words += ["--on-error", "raise", "--max-batch", 1]
    assert delegraph(*words).code == 1
    ran = delegraph(*words, "--resume", "--mean", "100")
    assert "is of another job: not the same preprocessing ('whole" in ran.err
    ran = delegraph(*words, "--resume", "--real")
    assert "is of another job: not the same real values (not set, now True)." in ran.err
    table = tmp_path / "table.npz"
    np.savez(table, image=np.zeros((1, 8, 8, 1), np.int8))
    ran = delegraph("predict", MODELS / "digits_int8.tflite", table, *words[3:], "--crop", "square")
    assert "--crop needs a folder of pictures" in ran.err


def test_signatures_of_which_none_is_chosen_are_listed(delegraph: Command, tmp_path: Path) -> None:
    model = tmp_path / "two.tflite"
    model.write_bytes(two_signatures())
    ran = delegraph("predict", model, data(tmp_path, 1), "-o", tmp_path / "out.csv")
    assert "signatures, negate, wave: --signature negate calls the first" in ran.err


def test_resume_tells_what_it_found(delegraph: Command, lookup: Path, tmp_path: Path) -> None:
    words = ["predict", lookup, data(tmp_path, 1, 3, 99), "-o", tmp_path / "out.jsonl"]
    words += ["--processes", 1, "--input-column", "x=place", "--max-batch", 1]
    assert delegraph(*words, "--on-error", "raise").code == 1
    assert "2 rows done: --resume goes on with it" in delegraph(*words).err
    ran = delegraph(*words, "--on-error", "raise", "--resume")
    assert "resuming: 2 of 3 rows done (0 bad), 1 to go\n" in ran.err
    (tmp_path / "out.jsonl.job").rename(tmp_path / "away")
    ran = delegraph(*words, "--resume")
    assert ran.err == "nothing to resume: a new job\n"
    ran = delegraph(*words, "--resume")
    assert ran.err == "resuming: 3 of 3 rows done (1 bad), nothing to compute\n"
    assert (ran.code, "rows a second" in ran.out) == (0, False)


def test_an_interrupted_job_says_how_to_go_on(
    delegraph: Command, lookup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("delegraph.scale.job.predict", interrupted)
    words = ["predict", lookup, data(tmp_path, 1, 3), "-o", tmp_path / "out.csv"]
    done = delegraph(*words, "--input-column", "x=place")
    assert (done.code, "--resume" in done.err) == (130, False)
    (tmp_path / "out.csv.job").mkdir()
    done = delegraph(*words, "--input-column", "x=place")
    assert done.code == 130
    assert "finished rows are kept: --resume continues the job" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "out.txt"], "expected a file ending in .jsonl, .csv, .npz, .parquet"),
        (["-o", "nowhere/out.npz"], "there is no folder 'nowhere'"),
        (["-o", "out.npz", "--row-timeout", "3"], "--row-timeout needs --isolate-rows"),
        (["-o", "out.npz", "--input-column", "x"], "'x': expected NAME=COLUMN"),
        (["-o", "out.npz", "--input-column=x=a", "--input-column=x=b"], "'x' is given twice"),
        (["-o", "out.npz", "--output-column", "z=a"], "no output 'z'"),
        (["-o", "out.npz", "--input-column", "x=place", "--top", "3"], "the model has 2 classes"),
        (
            ["-o", "out.npz", "--input-column", "x=plac"],
            "'plac' (did you mean 'place'?); it has 1 column: place; --input-column x=COLUMN names",
        ),
    ],
)
def test_mistakes(
    refused: Refused,
    lookup: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    path = data(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    assert message in refused("predict", lookup, path, *words)
