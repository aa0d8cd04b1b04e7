from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.graph.loader import load_model
from delegraph.tools import Detections, Setup
from delegraph.tools.evaluation.detections import PARTS, detections, made_by_postprocess, order_of
from support.corpus import corpus_file, needs_corpus
from support.tensor_details import details

SHAPES = {"boxes": [1, 10, 4], "classes": [1, 10], "scores": [1, 10], "count": [1]}


def order(names: Sequence[str], parts: Sequence[str] = PARTS) -> tuple[int, ...]:
    """Return the order of outputs with these names and the shapes of these parts."""
    entries = [
        details(np.float32, *SHAPES[p], name=n, index=i)
        for i, (n, p) in enumerate(zip(names, parts, strict=True))
    ]
    return order_of(entries)


# -- which output is which ---------------------------------------------------------------------


def test_without_names_the_official_order_counts() -> None:
    assert order(["a", "b", "c", "d"]) == (0, 1, 2, 3)


def test_names_tell_classes_from_scores() -> None:
    names = ["detection_boxes", "detection_scores", "detection_classes", "num_detections"]
    assert order(names, ["boxes", "scores", "classes", "count"]) == (0, 2, 1, 3)


def test_names_and_shapes_together_tell_any_order() -> None:
    parts = ["scores", "boxes", "count", "classes"]
    assert order(["x/scores", "b", "c", "d"], parts) == (1, 3, 0, 2)


def test_two_outputs_that_may_be_either_are_refused() -> None:
    parts = ["scores", "boxes", "count", "classes"]
    names = [f"StatefulPartitionedCall:{i}" for i in range(4)]
    with pytest.raises(ArgumentError, match=r"is not clear: 'StatefulPartitionedCall:0' \[1, 10\]"):
        order(names, parts)


def test_the_user_says_which_is_which() -> None:
    named = ["scores", "boxes", "count", "classes"]
    for shapes in ([SHAPES[part] for part in named], [[]] * 4, [[1, -1], [1, -1, 4], [1], [-1, 9]]):
        entries = [details(np.float32, *shape) for shape in shapes]
        assert order_of(entries, named=named) == (1, 3, 0, 2)


def test_what_shapes_contradict_is_refused() -> None:
    entries = [details(np.float32, *SHAPES[part], name=part) for part in PARTS]
    with pytest.raises(ArgumentError, match=r"'classes' \[1, 10\] cannot be 'count': boxes are"):
        order_of(entries, named=["boxes", "count", "scores", "classes"])
    with pytest.raises(ArgumentError, match=r"'boxes' \[1, 10, 4\] cannot be 'scores'"):
        order_of(entries, named=["scores", "boxes", "classes", "count"])


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (["boxes", "class", "scores", "count"], r"cannot be 'class' \(did you mean 'classes'\?\)"),
        (["boxes", "boxes", "scores", "count"], "each of boxes, classes, scores, count once"),
        (["boxes", "scores"], "each of boxes, classes, scores, count once"),
    ],
)
def test_wrong_names_for_outputs_are_refused(named: list[str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        order_of([details(np.float32, 1)] * 4, named=named)


def test_a_model_without_four_outputs_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"expected 4 outputs of a detector: .* has 1"):
        order_of([details(np.float32, 1, 1001)])


def test_shapes_that_no_order_fits_are_refused() -> None:
    entries = [details(np.float32, 1, 10, 4, name=name) for name in "abcd"]
    with pytest.raises(ArgumentError, match="is not clear"):
        order_of(entries)


@needs_corpus
def test_the_operator_that_ends_detectors_tells_its_outputs() -> None:
    path = corpus_file("support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29")
    graph = load_model(str(path)).subgraphs[0]
    with Setup(str(path)).interpreter() as interpreter:
        entries = interpreter.get_output_details()
    made = made_by_postprocess(graph)
    assert order_of(entries, made) == (0, 1, 2, 3)
    assert order_of(entries, made, PARTS) == (0, 1, 2, 3)
    with pytest.raises(ArgumentError, match="PostProcess computes boxes,classes,scores,count"):
        order_of(entries, made, ["boxes", "scores", "classes", "count"])
    turned = [entries[i] for i in (2, 0, 3, 1)]
    assert order_of(turned, made) == (1, 3, 0, 2)


# -- their values ------------------------------------------------------------------------------


def outputs(boxes: Any, classes: Any, scores: Any, count: Any) -> list[Any]:
    values = [np.array([v], np.float32) for v in (boxes, classes, scores)]
    arrays = [*values, np.array([count], np.float32)]
    return [
        (details(np.float32, *a.shape, name=name), a) for name, a in zip(PARTS, arrays, strict=True)
    ]


BOXES = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0, 0, 1, 1]]


def test_as_many_count_as_the_count_says() -> None:
    made = detections(outputs(BOXES, [0, 1, 2], [0.9, 0.8, 0.7], 2), range(4), 1)
    assert made.boxes.tolist() == np.array(BOXES[:2], np.float32).tolist()
    assert made.classes.tolist() == [1, 2]
    assert made.scores.tolist() == np.array([0.9, 0.8], np.float32).tolist()


@pytest.mark.parametrize(("count", "expected"), [(99, 3), (0, 0), (-1, 0), (np.nan, 0)])
def test_a_senseless_count_reads_nothing_beyond(count: float, expected: int) -> None:
    made = detections(outputs(BOXES, [0, 1, 2], [0.9, 0.8, 0.7], count), range(4), 1)
    assert len(made.scores) == expected


def test_fractions_of_classes_are_cut_off() -> None:
    made = detections(outputs(BOXES, [1.9, 0.5, -0.5], [1, 1, 1], 3), range(4), 1)
    assert made.classes.tolist() == [2, 1, 1]


def test_outputs_are_taken_in_their_order() -> None:
    given = outputs(BOXES, [0, 1, 2], [0.9, 0.8, 0.7], 3)
    turned = [given[i] for i in (2, 0, 3, 1)]
    assert detections(turned, (1, 3, 0, 2), 0).classes.tolist() == [0, 1, 2]


def test_quantized_outputs_are_real_numbers() -> None:
    given = outputs(BOXES, [0, 1, 2], [0.9, 0.8, 0.7], 3)
    entry, _ = given[2]
    quantized = np.array([[255, 128, 0]], np.uint8)
    given[2] = ({**entry, "dtype": np.uint8, "quantization": (1 / 256, 0)}, quantized)
    assert detections(given, range(4), 1).scores.tolist() == [255 / 256, 0.5, 0.0]


def test_what_is_no_number_is_left_out_and_counted() -> None:
    broken = [[np.nan, 0, 1, 1], *BOXES[1:]]
    made = detections(outputs(broken, [0, 1, np.inf], [0.9, 0.8, 0.7], 3), range(4), 1)
    assert made.classes.tolist() == [2]
    assert made.no_numbers == 2


def test_rows_of_a_journal_give_the_same_numbers() -> None:
    made = detections(outputs(BOXES, [0, 1, 2], [0.1, 1 / 3, 0.7], 3), range(4), 1)
    again = Detections.from_json(json.loads(json.dumps(made.to_json())))
    for name in ("boxes", "classes", "scores"):
        before, after = getattr(made, name), getattr(again, name)
        assert before.dtype == after.dtype
        assert np.array_equal(before, after)
    none = Detections.from_json(
        detections(outputs(BOXES, [0] * 3, [0] * 3, 0), range(4), 1).to_json()
    )
    assert none.boxes.shape == (0, 4)


def test_values_of_another_shape_are_no_boxes_and_no_count() -> None:
    given = outputs([[0, 0, 1, 1]], [3], [0.5], 1)
    with pytest.raises(ArgumentError, match=r"cannot be the boxes: it has the shape \[1, 1\]"):
        detections(given, (1, 0, 2, 3), 1)
    with pytest.raises(ArgumentError, match=r"cannot be the count: it has the shape \[1, 1, 4\]"):
        detections([*given[:3], given[0]], (0, 1, 2, 3), 1)
