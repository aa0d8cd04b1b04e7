"""Requests that are computed together get the answers that they would get alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Predictor
from delegraph.scale.batching import SIZES_KEPT
from delegraph.scale.serving.batches import ServedBatches, batch_sizes
from delegraph.schema.options import GatherOptions
from delegraph.testing import constant, graph_model, tensor
from support.digits import answers_one_by_one

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


@pytest.mark.parametrize("batching", ["auto", "resize", "rows"])
def test_answers_are_those_of_an_interpreter(batching: Any) -> None:
    pictures = np.random.default_rng(0).integers(-128, 128, (16, 8, 8, 1)).astype(np.int8)
    expected = answers_one_by_one(pictures)
    batches = ServedBatches(Predictor(DIGITS, batching=batching, max_batch=12), has_rows=True)
    batches.warm_up()
    for ends in ([1], [2, 3], [1, 4, 9, 11], [12]):
        starts = [0, *ends[:-1]]
        requests = [{"image": pictures[a:b]} for a, b in zip(starts, ends, strict=True)]
        answers = batches(requests)
        found = np.concatenate([answer.rows["digit"] for answer in answers])
        np.testing.assert_array_equal(found, expected[: ends[-1]])
        assert [answer.batch is None for answer in answers] == [False] + [True] * (len(ends) - 1)
        assert answers[0].batch is not None
        assert answers[0].batch.rows == ends[-1]


def test_no_interpreter_is_made_after_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = ServedBatches(Predictor(DIGITS, max_batch=24), has_rows=True)
    batches.warm_up()
    monkeypatch.setattr("delegraph.tools.setup.Setup.interpreter", None)
    for rows in range(1, 25):
        batches([{"image": np.zeros((rows, 8, 8, 1), np.int8)}])


def test_there_are_no_more_sizes_than_interpreters_are_kept() -> None:
    assert batch_sizes(1) == [1]
    assert batch_sizes(32) == [1, 2, 4, 8, 16, 32]
    assert len(batch_sizes(1000)) == SIZES_KEPT
    assert batch_sizes(1000)[-2:] == [512, 1000]


def test_a_bad_request_spoils_no_other(tmp_path: Path) -> None:
    table = constant(np.arange(20, dtype=np.float32).reshape(10, 2))
    tensors = {"x": tensor((1,), "INT32"), "table": table, "y": tensor((1, 2))}
    node = ("GATHER", "table x", "y", GatherOptions())
    path = tmp_path / "lookup.tflite"
    path.write_bytes(graph_model([node], inputs="x", outputs="y", tensors=tensors))
    batches = ServedBatches(Predictor(path, max_batch=8), has_rows=True)
    batches.warm_up()
    good, bad, other = batches([{"x": np.array(x, np.int32)} for x in ([1, 2], [3, 99], [4])])
    np.testing.assert_array_equal(good.rows["y"], [[2, 3], [4, 5]])
    np.testing.assert_array_equal(other.rows["y"], [[8, 9]])
    assert bad.rows == {}
    assert bad.error.startswith("row 1: ")


def test_requests_may_differ_in_the_shape_of_their_rows(tmp_path: Path) -> None:
    tensors = {"x": tensor((1, 1), shape_signature=(-1, -1)), "y": tensor((1, 1))}
    path = tmp_path / "neg.tflite"
    path.write_bytes(graph_model([("NEG", "x", "y")], inputs="x", outputs="y", tensors=tensors))
    batches = ServedBatches(Predictor(path, max_batch=8), has_rows=True)
    batches.warm_up()
    requests = [{"x": np.full(shape, 3, np.float32)} for shape in ((1, 2), (2, 3), (1, 2))]
    for request, answer in zip(requests, batches(requests), strict=True):
        np.testing.assert_array_equal(answer.rows["y"], -request["x"])


def test_requests_without_rows_are_one_each(tmp_path: Path) -> None:
    tensors = {"x": tensor((3,)), "y": tensor((3,))}
    path = tmp_path / "neg.tflite"
    path.write_bytes(graph_model([("NEG", "x", "y")], inputs="x", outputs="y", tensors=tensors))
    batches = ServedBatches(Predictor(path, max_batch=8), has_rows=False)
    batches.warm_up()
    x = np.arange(3, dtype=np.float32)[np.newaxis]
    first, second = batches([{"x": x}, {"x": 2 * x}])
    np.testing.assert_array_equal(first.rows["y"], -x)
    np.testing.assert_array_equal(second.rows["y"], -2 * x)
