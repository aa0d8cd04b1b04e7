from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.testing import one_op_model, tensor
from delegraph.tools import PictureFile, Setup, evaluate_classification, preset
from delegraph.tools.evaluation.classification import (
    ClassificationTask,
    best_classes,
    metadata_labels,
)
from support.corpus import CORPUS, corpus_file, needs_corpus
from support.described_models import of_tensor, with_metadata
from support.faulty_delegate import Faulty, first_output
from support.pictured import COLOURS, colour_model, coloured

WORDS = ["red", "green", "blue", "blue", "green", "red", "red", "green"]


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(colour_model(tmp_path / "colours.tflite"))


@pytest.fixture
def pictures(tmp_path: Path) -> list[PictureFile]:
    return coloured(tmp_path / "pictures", WORDS)


def turned(tensor: Any) -> None:
    """Give each class the score of the one before it."""
    tensor.data[...] = np.roll(tensor.data, 1, -1)


def test_scores_are_in_stable_order_highest_first() -> None:
    assert best_classes(np.array([1, 5, 3, 5, 1, 9]), 5) == [5, 1, 3, 2, 0]
    assert best_classes(np.uint8([0, 255, 128]), 10) == [1, 2, 0]
    assert best_classes(np.int8([-128, 127, 0]), 2) == [1, 2]
    assert best_classes(np.tile([0.1, 0.2], 500), 10) == list(range(1, 20, 2))


def test_a_score_that_is_no_number_is_no_answer() -> None:
    scores = np.float32([np.nan, 1, np.nan, -np.inf, np.inf])
    assert best_classes(scores, 10) == [4, 1, 3]
    assert best_classes(np.float32([np.nan] * 3), 10) == []


def judged(scores: Any, truth: str, labels: tuple[str, ...], scale: float = 0.0) -> Any:
    task = ClassificationTask(labels, preset("tflite"))
    details = {"quantization": (scale, 0)}
    return task.judge(PictureFile("x", truth), [(details, np.asarray(scores)[None])])


def test_rank_is_the_place_of_the_truth_and_words_may_repeat() -> None:
    labels = ("crane", "bird", "crane", "dog")
    assert judged([0.1, 0.2, 0.4, 0.3], "crane", labels)["rank"] == 1
    assert judged([0.3, 0.4, 0.1, 0.2], "crane", labels)["rank"] == 2
    assert judged([0.3, 0.4, 0.1, 0.2], "bird", labels)["rank"] == 1
    assert judged([0.1, 0.2, 0.3, 0.4], "bird", labels)["rank"] == 3


def test_the_eleventh_place_is_none() -> None:
    labels = tuple(map(str, range(12)))
    scores = np.arange(12.0)[::-1]
    assert [judged(scores, word, labels)["rank"] for word in ("9", "10")] == [10, None]


def test_scores_are_read_as_what_the_output_is_not_the_input() -> None:
    """The official tool takes bytes for floats, or floats for bytes, where the types differ."""
    row = judged(np.uint8([3, 250, 7]), "b", ("a", "b", "c"))
    assert (row["best"], row["scores"], row["rank"]) == ([1, 2, 0], [250, 7, 3], 1)


def test_scores_stored_as_integers_are_real_numbers() -> None:
    row = judged(np.uint8([3, 250, 7]), "b", ("a", "b", "c"), float(np.float32(0.1)))
    assert row["scores"] == [25.0, 0.7, 0.3]


def test_accuracy_is_the_share_of_pictures_up_to_a_rank(
    setup: Setup, pictures: list[PictureFile]
) -> None:
    wrong = [replace(pictures[0], truth="blue"), *pictures[1:]]
    result = evaluate_classification(setup, wrong, COLOURS)
    assert result.accuracy(0) == 7 / 8
    assert result.accuracy(0, 3) == 1
    shown = result.to_json()["setups"][0]["accuracy"]
    assert list(shown) == [f"top-{k}" for k in range(1, 11)]
    assert sorted(shown.values()) == list(shown.values())


def test_a_wrong_delegate_shows_its_drop(setup: Setup, pictures: list[PictureFile]) -> None:
    wrong = replace(setup, delegates=(Faulty("MEAN", fault=first_output(turned)),))
    result = evaluate_classification([setup, wrong], pictures, COLOURS)
    drop = result.drop(1)
    assert (drop.lost, drop.gained, drop.drop) == (8, 0, 1.0)
    assert drop.p_value == 2 * 0.5**8
    assert drop.interval.excludes(0)
    assert result.drop(1, top=3).drop == 0
    assert '<td style="text-align:right">1</td>' in result._repr_html_()
    assert f">{drop.interval}</td>" in result._repr_html_()
    changed = result.changed(1)
    assert [c.key for c in changed] == [p.key for p in pictures]
    assert (changed[0].truth, changed[0].first.word, changed[0].other.word) == (
        "red",
        "red",
        "green",
    )


def test_a_set_up_that_answers_nothing_is_always_wrong(
    setup: Setup, pictures: list[PictureFile]
) -> None:
    broken = Faulty("MEAN", fault=first_output(lambda tensor: tensor.data.fill(np.nan)))
    result = evaluate_classification(
        [setup, replace(setup, delegates=(broken,))], pictures, COLOURS
    )
    assert [result.accuracy(1, top) for top in (1, 10)] == [0, 0]
    assert result.changed(1)[0].other.word is None
    json.dumps(result.to_json(), allow_nan=False)


@pytest.mark.parametrize("type", ["UINT8", "INT8"])
def test_quantized_classifiers_answer_the_same(
    setup: Setup, pictures: list[PictureFile], tmp_path: Path, type: str
) -> None:
    other = Setup(colour_model(tmp_path / "q.tflite", type=type))
    result = evaluate_classification([setup, other], pictures, COLOURS)
    assert (result.accuracy(0), result.accuracy(1), result.changed(1)) == (1, 1, [])


def test_the_table_has_what_every_set_up_answers(
    setup: Setup, pictures: list[PictureFile], tmp_path: Path
) -> None:
    wrong = replace(setup, delegates=(Faulty("MEAN", fault=first_output(turned)),))
    path = tmp_path / "answers.csv"
    evaluate_classification([setup, wrong], pictures, COLOURS).save_csv(str(path))
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        *("picture", "truth", "set-up 1", "word 1", "score 1", "rank 1"),
        *("set-up 2", "word 2", "score 2", "rank 2"),
    ]
    assert {(row["set-up 1"], row["set-up 2"]) for row in rows} == {(str(setup), str(wrong))}
    assert [row["truth"] for row in rows] == [row["word 1"] for row in rows] == WORDS
    assert {row["rank 1"] for row in rows} == {"1"}
    assert (rows[0]["picture"], rows[0]["word 2"]) == ("00.png", "green")
    with pytest.raises(ArgumentError, match=r"cannot be written: .*irectory"):
        evaluate_classification(setup, pictures, COLOURS).save_csv(str(tmp_path))


def test_labels_of_the_metadata_are_taken_where_none_are_given(
    setup: Setup, pictures: list[PictureFile], tmp_path: Path
) -> None:
    scores = of_tensor(axis_labels="labels.txt")
    files = {"labels.txt": "\n".join(COLOURS).encode()}
    path = tmp_path / "described.tflite"
    path.write_bytes(with_metadata(Path(setup.model).read_bytes(), (), (scores,), files))
    assert evaluate_classification(Setup(str(path)), pictures).accuracy(0) == 1
    with pytest.raises(ArgumentError, match=r"no labels in its metadata: labels=\[\.\.\.\] names"):
        metadata_labels(setup.model)


def test_a_truth_that_is_no_label_is_a_wrong_file(
    setup: Setup, pictures: list[PictureFile]
) -> None:
    message = (
        r"the truth has words that are none of the 3 labels: 'blue' \(did you mean 'blau'\?\), "
        r"'green' \(did you mean 'gruen'\?\)\. Is it the right file of labels\?"
    )
    with pytest.raises(ArgumentError, match=message):
        evaluate_classification(setup, pictures, ["red", "gruen", "blau"])


def test_a_truth_of_class_numbers_needs_words(setup: Setup, pictures: list[PictureFile]) -> None:
    numbered = [replace(each, truth=str(i)) for i, each in enumerate(pictures)]
    message = "the truth has numbers, such as '0'; expected the label of each picture's class, such"
    with pytest.raises(ArgumentError, match=message):
        evaluate_classification(setup, numbered, ["red", "green", "blue"])


def test_a_truth_that_is_a_synonym_has_its_label_suggested(
    setup: Setup, pictures: list[PictureFile]
) -> None:
    message = r"'blue' \(did you mean 'azure, Blue, sky'\?\)\. Is it"
    with pytest.raises(ArgumentError, match=message):
        evaluate_classification(setup, pictures, ["red", "green", "azure, Blue, sky"])


def test_another_count_of_labels_is_refused(setup: Setup, pictures: list[PictureFile]) -> None:
    with pytest.raises(ArgumentError, match="has 3 classes, and there are 4 labels: labels="):
        evaluate_classification(setup, pictures, [*COLOURS, "background"])


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([(1, 4, 6, 3)] * 2, [(1, 4, 6, 3)], "the model has 2 inputs and 1 outputs"),
        ([(1, 4, 6, 2)], [(1, 4, 6, 2)], r"input 't0' \(float32 \[1, 4, 6, 2\]\) takes no picture"),
        ([(1, 4, 6, 3)], [(1, 4, 6, 3)], "output .* has shape .*; a classifier's is .1, classes."),
    ],
)
def test_models_that_are_no_classifiers_are_refused(
    tmp_path: Path, pictures: list[PictureFile], inputs: list[Any], outputs: list[Any], message: str
) -> None:
    path = tmp_path / "other.tflite"
    kinds = [tensor(shape) for shape in inputs]
    op = "NEG" if len(inputs) == 1 else "SUB"
    path.write_bytes(one_op_model(op, kinds, [tensor(shape) for shape in outputs]))
    with pytest.raises(ArgumentError, match=message):
        evaluate_classification(Setup(str(path)), pictures, COLOURS)


def test_without_pillow_nothing_is_listed_as_bad(
    setup: Setup, pictures: list[PictureFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ArgumentError, match=r"reading pictures needs Pillow; install it with: pip"):
        evaluate_classification(setup, pictures, COLOURS)


def test_a_picture_that_cannot_be_decoded_is_listed(
    setup: Setup, pictures: list[PictureFile]
) -> None:
    Path(pictures[2].path).write_bytes(Path(pictures[2].path).read_bytes()[:60])
    result = evaluate_classification(setup, pictures, COLOURS)
    assert [bad.key for bad in result.answers.bad] == ["02.png"]
    assert "cannot be read" in result.answers.bad[0].reason
    assert result.accuracy(0) == 1
    assert len(result.answers.keys) == 7


# -- real models and pictures ------------------------------------------------------------------

REAL = ["test_data__mobilenet_v1_0.25_128_quant", "support__mobilenet_v1_0.25_224_1_default_1"]


def corpus_pictures(setup: Setup, labels: list[str]) -> list[PictureFile]:
    """Return the corpus's pictures, with what the official interpreter answers as their truth."""
    names = sorted((CORPUS / "images").glob("*.jpg")) + sorted((CORPUS / "images").glob("*.bmp"))
    unknown = [PictureFile(str(name), labels[0]) for name in names]
    official = replace(setup, runtime="litert", use_default_delegates=False)
    result = evaluate_classification(official, unknown, labels, warmup_runs=0)
    words = [labels[row["best"][0]] for row in result.answers.rows[0]]
    return [replace(one, truth=word) for one, word in zip(unknown, words, strict=True)]


@needs_corpus
@pytest.mark.parametrize("name", REAL)
def test_delegraph_and_litert_have_the_same_top_1(name: str) -> None:
    """Without XNNPACK, which rounds in its own way and answers one of the pictures otherwise."""
    pytest.importorskip("ai_edge_litert")
    setup = Setup(str(corpus_file(name)))
    with setup.interpreter() as interpreter:
        classes = interpreter.get_output_details()[0]["shape"][-1]
    words = (CORPUS / "labels" / "imagenet_labels.txt").read_text().splitlines()
    labels = [*words, *map(str, range(len(words), classes))][:classes]
    pictures = corpus_pictures(setup, labels)
    litert = replace(setup, runtime="litert", use_default_delegates=False)
    wrong = Faulty("SOFTMAX", "CONV_2D", fault=first_output(turned))
    wrong_setup = replace(setup, delegates=(wrong,), use_default_delegates=False)
    result = evaluate_classification([setup, litert, wrong_setup], pictures, labels)
    assert len(result.answers.keys) == 11
    assert [result.accuracy(position) for position in (0, 1)] == [1, 1]
    assert result.drop(1).drop == 0
    assert result.drop(2).drop > 0.5
    assert result.drop(2).interval.excludes(0)
