"""A job writes all rows in their order, however often it is interrupted."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Predictor
from delegraph.errors import ArgumentError, PredictionError
from delegraph.scale.job import PIECES, predict
from delegraph.scale.opening import open_source
from delegraph.tools.setup import Setup
from support.digits import answers_one_by_one
from support.moody_delegate import moody_setup

MODELS = Path(__file__).parents[2] / "docs" / "demo" / "models"
DIGITS = MODELS / "digits_int8.tflite"

posix = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")


@pytest.fixture
def moody(tmp_path: Path) -> Setup:
    return moody_setup(tmp_path)


def data(folder: Path, x: NDArray[Any]) -> str:
    path = folder / "data.npz"
    x = np.stack([x, np.ones_like(x)], axis=1).astype(np.float32)
    np.savez(path, x=x, id=np.arange(len(x)) * 10)
    return str(path)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_two_processes_give_what_an_interpreter_gives(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(-128, 128, (70, 8, 8, 1)).astype(np.int8)
    np.savez(tmp_path / "images.npz", image=images, label=np.arange(70) % 10)
    expected = answers_one_by_one(images)
    told: list[tuple[str, float, float | None]] = []
    with Predictor(DIGITS, max_batch=16, on_error="column") as predictor:
        source = open_source(str(tmp_path / "images.npz"), predictor.input_columns())
        result = predict(
            predictor,
            source,
            tmp_path / "out.npz",
            processes=2,
            progress=lambda *how: told.append(how),
        )
        assert result.fingerprint == predictor.fingerprint()
    with np.load(tmp_path / "out.npz") as written:
        assert written.files == ["row", "label", "digit", "error"]
        np.testing.assert_array_equal(written["digit"], expected)
        np.testing.assert_array_equal(written["row"], np.arange(70))
        np.testing.assert_array_equal(written["label"], np.arange(70) % 10)
    assert (result.rows, result.written, result.resumed, result.bad) == (70, 70, 0, {})
    assert result.batching == "resize"
    assert 0 < result.start_seconds < result.seconds
    assert told[:2] == [("predicting", 0, 70)] * 2  # the second one when the model is loaded
    assert told[-1][0].startswith("70 of 70 rows, ")
    assert [done for _, done, _ in told][-1] == 70
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images.npz", "out.npz"]


def test_the_rate_leaves_out_the_start(tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", image=np.zeros((2, 8, 8, 1), np.int8))
    with Predictor(DIGITS) as predictor:
        source = open_source(str(tmp_path / "images.npz"), predictor.input_columns())
        words = predictor, source, tmp_path / "out.npz"
        first = predict(*words, processes=1)
    assert replace(first, rows=60, seconds=4.0, start_seconds=1.0).rate == 20


def test_the_model_is_read_once_for_each_interpreter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    np.savez(tmp_path / "images.npz", image=np.random.default_rng(0).random((9, 8, 8, 1)))
    caplog.set_level("INFO", "delegraph.graph.loader")
    with Predictor(DIGITS, max_batch=9, on_error="column") as predictor:
        source = open_source(str(tmp_path / "images.npz"), predictor.input_columns())
        predict(predictor, source, tmp_path / "out.csv", processes=1, top=1)
    assert len(caplog.records) == 2  # for one row, and for the rows that are tried together


@posix
def test_a_job_that_is_killed_and_resumed_gives_the_same_file(moody: Setup, tmp_path: Path) -> None:
    x = np.arange(1000, 1300)
    x[np.random.default_rng(3).choice(300, 2, replace=False)] = 55
    path, output = data(tmp_path, x), tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "delegraph", "predict", moody.model, path, "--resume"]
    command += ["--delegate-file", *moody.delegate_files, "--max-batch=4", "--processes=2"]
    command += ["-o", str(output), "--json"]
    for _ in range(2):
        # Standard error ends when the processes of the job have ended, too.
        done = subprocess.run(command, capture_output=True, timeout=200, check=False)
        assert done.returncode == -signal.SIGKILL
        assert not output.exists()
        Path(tmp_path, "seen").rename(tmp_path / "killed once")
    Path(tmp_path, "seen").touch()
    done = subprocess.run(command, capture_output=True, check=True)
    assert lines(output) == [
        {"row": row, "id": 10 * row, "y": [-value, -1], "error": ""} for row, value in enumerate(x)
    ]
    assert json.loads(done.stdout)["resumed"] > 0
    assert not (tmp_path / "out.jsonl.job").exists()


def test_what_is_done_is_not_done_again(moody: Setup, tmp_path: Path) -> None:
    path = data(tmp_path, np.array([1, 2, 3, 88, 5]))
    output = tmp_path / "out.jsonl"
    with Predictor(moody, max_batch=1, on_error="raise") as predictor:
        source = open_source(path, predictor.input_columns())
        with pytest.raises(PredictionError, match=r"row 3: .*88 is too much") as caught:
            predict(predictor, source, output, processes=1)
        assert caught.value.row == 3
        with pytest.raises(ArgumentError, match=r"has not ended, with [23] rows done: resume=True"):
            predict(predictor, source, output)
        other = Predictor(moody, max_batch=2)
        with pytest.raises(ArgumentError, match=r"same arguments \(max_batch: 1, now 2\)\. "):
            predict(other, source, output, resume=True)
        found: list[tuple[int, int]] = []

        def resume() -> None:
            predict(
                predictor,
                source,
                output,
                processes=1,
                resume=True,
                resumed_from=lambda *counts: found.append(counts),
            )

        with pytest.raises(PredictionError, match="row 3"):
            resume()
        (tmp_path / "out.jsonl.job" / "00000001.done").write_text("{")
        with pytest.raises(PredictionError, match="row 3"):
            resume()
        # The process may end before the row before the bad one is noted.
        assert found in ([(3, 0), (2, 0)], [(2, 0), (2, 0)], [(2, 0), (1, 0)], [(3, 0), (1, 0)])
        data(tmp_path, np.array([1, 2, 3, 8, 5]))
        changed = open_source(path, predictor.input_columns())
        with pytest.raises(ArgumentError, match=r"not the same size or time of the data\. "):
            predict(predictor, changed, output, resume=True)
        (tmp_path / "out.jsonl.job" / "job.json").write_text("{")
        with pytest.raises(ArgumentError, match=r"job.json' is damaged: delete "):
            predict(predictor, changed, output, resume=True)


def test_a_finished_job_computes_nothing_again(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones((3, 1), np.float32))
    output = tmp_path / "y.csv"
    with Predictor(MODELS / "sines.tflite", on_error="column") as predictor:
        source = open_source(str(tmp_path / "x.npz"), predictor.input_columns())

        def resumed() -> int:
            return predict(predictor, source, output, processes=1, resume=True).resumed

        assert predict(predictor, source, output, processes=2).processes == 1  # for one piece
        written = output.stat().st_mtime_ns
        assert resumed() == 3
        assert output.stat().st_mtime_ns == written
        output.write_text("another file")
        assert resumed() == 0
        assert output.read_text().startswith("row,y,error")


def test_a_finished_job_of_bad_rows_alone_is_told_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"x": "one"}\n')
    with Predictor(MODELS / "sines.tflite", on_error="column") as predictor:
        source = open_source(str(tmp_path / "x.jsonl"), predictor.input_columns())
        first, again = (
            predict(predictor, source, tmp_path / "y.jsonl", processes=1, resume=resume)
            for resume in (False, True)
        )
    assert (first.written, again.written, again.resumed) == (1, 1, 1)


@posix
def test_rows_that_end_their_process_are_marked_and_told(moody: Setup, tmp_path: Path) -> None:
    path = data(tmp_path, np.array([1, 66, 3, 88]))
    with Predictor(
        moody, batching="rows", max_batch=4, on_error="column", isolation="process"
    ) as predictor:
        source = open_source(path, predictor.input_columns())
        result = predict(predictor, source, tmp_path / "out.jsonl", processes=1)
    first, second, third, fourth = lines(tmp_path / "out.jsonl")
    assert first == {"row": 0, "id": 0, "y": [-1, -1], "error": ""}
    assert third == {"row": 2, "id": 20, "y": [-3, -1], "error": ""}
    assert second["y"] is None
    assert "SIGSEGV" in second["error"]
    assert "88 is too much" in fourth["error"]
    assert result.bad == {1: second["error"], 3: fourth["error"]}
    assert (result.written, result.lost_processes) == (4, 2)


def test_bad_rows_are_left_out(moody: Setup, tmp_path: Path) -> None:
    path = data(tmp_path, np.array([1, 88, 3]))
    with Predictor(moody, on_error="drop") as predictor:
        source = open_source(path, predictor.input_columns())
        result = predict(predictor, source, tmp_path / "out.jsonl", processes=1)
    assert [row["id"] for row in lines(tmp_path / "out.jsonl")] == [0, 20]
    assert (result.written, list(result.bad)) == (2, [1])


def test_columns_of_the_data_hide_neither_row_numbers_nor_reasons(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("row,x,error\n7,0,old\n8,?,old\n")
    with Predictor(MODELS / "sines.tflite", on_error="column") as predictor:
        source = open_source(str(tmp_path / "data.csv"), predictor.input_columns())
        predict(predictor, source, tmp_path / "out.jsonl", processes=1)
    good, bad = lines(tmp_path / "out.jsonl")
    assert (good["row"], good["data_row"], good["data_error"], good["error"]) == (0, 7, "old", "")
    assert "expected a number" in bad["error"]
    for name in ("row", "error"):
        with pytest.raises(ArgumentError, match=f"column '{name}' is there already"):
            predict(Predictor(DIGITS, outputs={"digit": name}), source, tmp_path / "out.csv")


def test_csv_has_plain_numbers_empty_cells_and_the_texts_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("id,x,price\n12345678901234567891,1,1.10\n1e3,?,4\n")
    with Predictor(MODELS / "sines.tflite", on_error="column") as predictor:
        source = open_source(str(tmp_path / "data.csv"), predictor.input_columns())
        predict(predictor, source, tmp_path / "out.csv", processes=1)
    good, bad = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert re.fullmatch(r"0,12345678901234567891,1\.10,\d\.\d{1,8},", good)
    assert bad.startswith('1,1e3,4,,"line 3: ')


def test_files_that_cannot_be_read_are_bad_rows(tmp_path: Path) -> None:
    folder = tmp_path / "arrays"
    folder.mkdir()
    for name in ("a", "c"):
        np.save(folder / f"{name}.npy", np.zeros((8, 8, 1), np.int8))
    (folder / "b.npy").write_bytes(b"no array")
    for on_error, files in (("column", ["a.npy", "b.npy", "c.npy"]), ("drop", ["a.npy", "c.npy"])):
        with Predictor(DIGITS, on_error=on_error) as predictor:  # type: ignore[arg-type]
            source = open_source(str(folder), predictor.input_columns())
            result = predict(predictor, source, tmp_path / "out.jsonl", processes=1)
        assert [row["file"] for row in lines(tmp_path / "out.jsonl")] == files
        assert "b.npy' cannot be read" in result.bad[1]
    (folder / "a.npy").unlink()
    (folder / "c.npy").unlink()
    with Predictor(DIGITS, on_error="column") as predictor:
        source = open_source(str(folder), predictor.input_columns())
        predict(predictor, source, tmp_path / "bad.jsonl", processes=1)
    [row] = lines(tmp_path / "bad.jsonl")
    assert row["digit"] is None


@pytest.mark.parametrize("rows", [1, 4], ids=["pieces", "one piece"])
def test_integers_of_a_bad_row_are_missing_where_the_format_can_say_so(
    tmp_path: Path, rows: int
) -> None:
    folder = tmp_path / "arrays"
    folder.mkdir()
    np.save(folder / "a.npy", np.zeros((8, 8, 1), np.int8))
    (folder / "b.npy").write_bytes(b"no array")
    endings = ["jsonl", "npz", *(["parquet"] if find_spec("pyarrow") else [])]
    for ending in endings:
        with Predictor(DIGITS, max_batch=rows, on_error="column") as predictor:
            source = open_source(str(folder), predictor.input_columns())
            predict(predictor, source, tmp_path / f"out.{ending}", processes=1)
    good, bad = lines(tmp_path / "out.jsonl")
    assert (len(good["digit"]), bad["digit"]) == (10, None)
    with np.load(tmp_path / "out.npz") as found:
        assert (found["digit"].dtype, found["digit"].shape) == (np.int8, (2, 10))
        assert [bool(error) for error in found["error"]] == [False, True]
    if "parquet" in endings:
        from pyarrow import int8, list_
        from pyarrow.parquet import read_table

        digits = read_table(tmp_path / "out.parquet").column("digit")
        assert (digits.type, digits.null_count) == (list_(int8()), 1)


@posix
def test_a_file_whose_name_is_no_text_is_a_row(tmp_path: Path) -> None:
    folder = tmp_path / "arrays"
    folder.mkdir()
    np.save(os.fsdecode(bytes(folder) + b"/\xff.npy"), np.zeros((8, 8, 1), np.int8))
    with Predictor(DIGITS, on_error="column") as predictor:
        source = open_source(str(folder), predictor.input_columns())
        predict(predictor, source, tmp_path / "out.jsonl", processes=1)
    assert [row["file"] for row in lines(tmp_path / "out.jsonl")] == ["\\xff.npy"]


def test_csv_has_one_line_of_names_and_arrays_as_json(moody: Setup, tmp_path: Path) -> None:
    path = data(tmp_path, np.array([1, 88, 3]))
    with Predictor(moody, max_batch=1, on_error="column", outputs={"y": "a\nb"}) as predictor:
        source = open_source(path, predictor.input_columns())
        predict(predictor, source, tmp_path / "out.csv", processes=1)
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["row", "id", "a\nb", "error"]
    assert [row[:3] for row in rows[1:]] == [
        ["0", "0", "[-1.0, -1.0]"],
        ["1", "10", ""],
        ["2", "20", "[-3.0, -1.0]"],
    ]


def test_a_file_is_not_replaced_by_bad_rows_alone(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x\na\nb\n")
    output = tmp_path / "out.csv"
    predictor = Predictor(MODELS / "sines.tflite", on_error="column")
    source = open_source(str(tmp_path / "data.csv"), predictor.input_columns())
    assert predict(predictor, source, output, processes=1).written == 2
    output.write_text("good")
    result = predict(predictor, source, output, processes=1)
    assert (result.written, len(result.bad), output.read_text()) == (0, 2, "good")
    assert not (tmp_path / "out.csv.job").exists()


def test_bad_rows_are_counted_by_cause(moody: Setup, tmp_path: Path) -> None:
    path = data(tmp_path, np.array([88, 1, 88, 3]))
    with Predictor(moody, max_batch=2, on_error="drop") as predictor:
        source = open_source(path, predictor.input_columns())
        result = predict(predictor, source, tmp_path / "out.jsonl", processes=1)
    told = replace(result, bad={**result.bad, 7: "line 8: is a list", 9: "line 10: is a list"})
    told = replace(told, bad={**told.bad, 11: "picture 'a.png' cannot be read"})
    assert [(cause.rows, cause.first) for cause in told.causes] == [(2, 0), (2, 7), (1, 11)]
    assert told.causes[0].reason == result.bad[0]
    assert told.to_json()["causes"][1] == {"rows": 2, "first": 7, "reason": "line 8: is a list"}


@posix
def test_a_process_that_is_lost_is_an_error_with_a_way_on(moody: Setup, tmp_path: Path) -> None:
    rows = np.arange(100, 100 + 2 * PIECES)
    rows[-1] = 66
    path = data(tmp_path, rows)
    with Predictor(moody, max_batch=2, on_error="column") as predictor:
        source = open_source(path, predictor.input_columns())
        with pytest.raises(PredictionError, match=r"lost \(SIGSEGV\); it had rows from 126 on"):
            predict(predictor, source, tmp_path / "out.jsonl", processes=1)


def test_labels_that_are_called_as_an_output_are_refused(moody: Setup, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, x=np.ones((2, 2), np.float32), y=np.arange(2))
    with Predictor(moody, on_error="column") as predictor:
        source = open_source(str(path), predictor.input_columns())
        with pytest.raises(ArgumentError, match=r"'y' is there already.*outputs=\{'y': \.\.\.\}"):
            predict(predictor, source, tmp_path / "out.npz", processes=1)
    assert not (tmp_path / "out.npz.job").exists()
    with Predictor(moody, on_error="column", outputs={"y": "negative"}) as predictor:
        predict(predictor, source, tmp_path / "out.npz", processes=1)
    with np.load(tmp_path / "out.npz") as written:
        assert written["negative"].tolist() == [[-1, -1], [-1, -1]]
        assert written["y"].tolist() == [0, 1]
