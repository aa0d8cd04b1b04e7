"""Tests of delegraph.scale.classes: the best classes of each row, in place of scores."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, Predictor
from delegraph.errors import ArgumentError
from delegraph.scale.classes import classes_of, score_sizes
from delegraph.scale.job import predict
from delegraph.scale.opening import open_source
from delegraph.testing import constant, graph_model, tensor
from support.described_models import of_tensor, with_metadata

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"
WORDS = [f"digit {number}" for number in range(10)]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    folder = tmp_path / "rows"
    folder.mkdir()
    images = np.random.default_rng(0).integers(-128, 128, (4, 8, 8, 1)).astype(np.int8)
    for number, image in enumerate(images):
        np.save(folder / f"{number}.npy", image)
    (folder / "1.npy").write_bytes(b"no array")
    return folder


def written(rows: Path, output: Path, *, outputs: Any = None, **how: Any) -> list[dict[str, Any]]:
    with Predictor(DIGITS, on_error="column", outputs=outputs) as predictor:
        source = open_source(str(rows), predictor.input_columns())
        predict(predictor, source, output, processes=1, **how)
    text = output.read_text()
    if output.suffix == ".csv":
        return list(csv.DictReader(text.splitlines()))
    return [json.loads(line) for line in text.splitlines()]


def test_the_best_classes_are_those_of_an_interpreter(rows: Path, tmp_path: Path) -> None:
    found = written(rows, tmp_path / "out.jsonl", top=2, labels=WORDS)
    assert list(found[0]) == ["row", "file", "class_1", "score_1", "class_2", "score_2", "error"]
    with Interpreter(DIGITS) as interpreter:
        runner = interpreter.get_signature_runner()
        scale, zero = interpreter.get_output_details()[0]["quantization"]
        for row in (0, 2, 3):
            scores = runner(image=np.load(rows / f"{row}.npy")[np.newaxis])["digit"][0]
            best = np.argsort(-scores.astype(int), kind="stable")[:2]
            assert [found[row]["class_1"], found[row]["class_2"]] == [WORDS[each] for each in best]
            real = scale * (scores[best].astype(float) - zero)
            assert [
                found[row]["score_1"],
                found[row]["score_2"],
            ] == real.tolist()  # multiples of 2^-8


def test_a_bad_row_has_no_class(rows: Path, tmp_path: Path) -> None:
    bad = written(rows, tmp_path / "out.csv", top=1, labels=WORDS)[1]
    assert (bad["class"], bad["score"]) == ("", "")
    assert "cannot be read" in bad["error"]


def test_without_labels_classes_are_numbers(rows: Path, tmp_path: Path) -> None:
    found = written(rows, tmp_path / "out.jsonl", top=1)
    assert [type(row["class"]) for row in found] == [int, type(None), int, int]


def test_npz_has_scores_of_the_outputs_type(rows: Path, tmp_path: Path) -> None:
    with Predictor(DIGITS, on_error="column") as predictor:
        source = open_source(str(rows), predictor.input_columns())
        predict(predictor, source, tmp_path / "out.npz", processes=1, top=1)
    with np.load(tmp_path / "out.npz") as found:
        assert found["score"].dtype == np.float32


def test_scores_that_are_asked_for_stay(rows: Path, tmp_path: Path) -> None:
    found = written(rows, tmp_path / "out.jsonl", top=1, outputs={"digit": "scores"})
    assert list(found[0]) == ["row", "file", "class", "score", "scores", "error"]


def test_a_class_of_the_data_keeps_its_name(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **{"image": np.zeros((2, 8, 8, 1), np.int8), "class": np.arange(2)})  # type: ignore[arg-type]
    found = written(path, tmp_path / "out.jsonl", top=1)
    assert list(found[0]) == ["row", "class", "predicted_class", "predicted_score", "error"]


def test_beside_labels_other_vectors_stay(tmp_path: Path) -> None:
    tensors = {"x": tensor((1, 12)), "y": tensor((1, 12)), "z": tensor((1, 12))}
    nodes = [("ABS", "x", "y", None), ("NEG", "x", "z", None)]
    content = graph_model(nodes, inputs="x", outputs="y z", tensors=tensors)
    described = (of_tensor(axis_labels="words.txt"), of_tensor())
    words = "\n".join(f"word {number}" for number in range(12)).encode()
    model = tmp_path / "model.tflite"
    model.write_bytes(with_metadata(content, (of_tensor(),), described, {"words.txt": words}))
    np.savez(tmp_path / "data.npz", x=np.arange(-6, 6, dtype=np.float32)[np.newaxis])
    with Predictor(model, on_error="drop") as predictor:
        source = open_source(str(tmp_path / "data.npz"), predictor.input_columns())
        predict(predictor, source, tmp_path / "out.jsonl", processes=1, top=1)
    [row] = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (row["class"], row["score"], row["z"][:2]) == ("word 0", 6.0, [6.0, 5.0])


def test_labels_of_other_classes_are_refused(rows: Path, tmp_path: Path) -> None:
    message = r"no output holds scores of 3 classes, as there are labels; .* 'digit' \[-?1, 10\]"
    with pytest.raises(ArgumentError, match=message):
        written(rows, tmp_path / "out.jsonl", top=1, labels=["a", "b", "c"])


def one_layer(folder: Path, outputs: int) -> Predictor:
    """Predictor of a model that computes the absolute values of 12 inputs, or of the first few."""
    ends = constant(np.array([1, outputs], np.int32))
    tensors = {"x": tensor((1, 12)), "size": ends, "zero": constant(np.zeros(2, np.int32))}
    tensors["y"] = tensor((1, outputs))
    model = folder / f"{outputs}.tflite"
    node = ("SLICE", "x zero size", "y", None)
    model.write_bytes(graph_model([node], inputs="x", outputs="y", tensors=tensors))
    return Predictor(model)


def test_an_output_of_an_inputs_shape_needs_labels(tmp_path: Path) -> None:
    with one_layer(tmp_path, 12) as predictor:
        assert score_sizes(predictor) == {}
        message = r"'y' \[1, 12\]; without labels, no output of an input's shape counts"
        with pytest.raises(ArgumentError, match=message):
            classes_of(predictor, (), 1, ())
        assert list(classes_of(predictor, list("abcdefghijkl"), 1, ()).outputs) == ["y"]


@pytest.mark.parametrize(("outputs", "is_noted"), [(11, True), (9, False), (2, False)])
def test_two_scores_are_enough_if_the_user_asks(
    tmp_path: Path, outputs: int, is_noted: bool
) -> None:
    with one_layer(tmp_path, outputs) as predictor:
        assert score_sizes(predictor) == ({"y": outputs} if is_noted else {})
        assert list(classes_of(predictor, (), 2, ()).outputs) == ["y"]


def test_a_single_value_is_no_class(tmp_path: Path) -> None:
    with (
        one_layer(tmp_path, 1) as predictor,
        pytest.raises(ArgumentError, match=r"no output holds scores of classes; .*\[1, 1\]$"),
    ):
        classes_of(predictor, (), 1, ())
