from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.schema import read_model, tables, write_model
from delegraph.testing import graph_model, one_op_model, tensor
from delegraph.testing.subgraphs import Graph, Op, records_of
from delegraph.tools import Setup, evaluate_metric
from support.described_models import of_tensor, with_metadata
from support.faulty_delegate import Faulty, off_by
from support.signatures import two_signatures

COUNT = 40


def error(outputs: Any, labels: Any) -> dict[str, float]:
    difference = outputs["y"] - labels["truth"]
    return {"bias": difference.mean(), "exact": float(not difference.any())}


class Hits:
    """The share of exact rows, as a figure of all rows."""

    def row(self, outputs: Any, labels: Any) -> bool:
        return bool(np.array_equal(outputs["y"].reshape(-1), labels["truth"]))

    def total(self, rows: list[bool]) -> dict[str, float]:
        return {"hits": float(np.mean(rows))}


@pytest.fixture
def negative(tmp_path: Path) -> Setup:
    path = tmp_path / "neg.tflite"
    nodes = [("NEG", "x", "y")]
    kinds = {"x": tensor((1, 2), name="x"), "y": tensor((1, 2), name="y")}
    path.write_bytes(graph_model(nodes, inputs="x", outputs="y", tensors=kinds))
    return Setup(str(path))


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Rows whose first is wrong by 1."""
    x = np.random.default_rng(0).integers(-5, 5, (COUNT, 2)).astype(np.float32)
    truth = -x
    truth[0] += 1
    np.savez(tmp_path / "rows.npz", x=x, truth=truth)
    return str(tmp_path / "rows.npz")


def test_figures_are_means_over_the_rows(negative: Setup, data: str) -> None:
    result = evaluate_metric(negative, error, [data])
    assert result.figures == ({"bias": -1 / COUNT, "exact": 1 - 1 / COUNT},)
    assert result.drops == ()
    assert len(result.answers.keys) == COUNT


@pytest.mark.parametrize("metric", [error, Hits])
def test_the_drop_has_an_interval_over_rows(negative: Setup, data: str, metric: Any) -> None:
    wrong = replace(negative, delegates=(Faulty("NEG", fault=off_by(1, from_run=12)),))
    result = evaluate_metric([negative, wrong], metric, [data])
    name = "exact" if metric is error else "hits"
    drop = result.drops[0][name]
    # The first run warms up: rows from 10 on are wrong.
    assert result.figures[1][name] == pytest.approx(9 / COUNT)
    assert drop.drop == pytest.approx((COUNT - 10) / COUNT)
    assert 0.5 < drop.interval.low < drop.drop < drop.interval.high < 0.95
    assert f">{name}</td>" in result._repr_html_()
    assert f">{drop.interval}</td>" in result._repr_html_()
    shown = result.to_json()["setups"][1]
    assert shown["drop"][name]["interval"]["low"] == drop.interval.low
    assert shown["figures"] == result.figures[1]


def test_set_ups_that_are_the_same_have_no_drop(negative: Setup, data: str) -> None:
    result = evaluate_metric([negative, negative], Hits(), [data])
    drop = result.drops[0]["hits"]
    assert (drop.drop, drop.interval.low, drop.interval.high) == (0, 0, 0)


def test_real_numbers_are_quantized_and_outputs_are_real_again(
    negative: Setup, data: str, tmp_path: Path
) -> None:
    kind = {"type": "INT8", "scale": 0.5, "zero_point": 3}
    relu = one_op_model(
        "RELU", [tensor((1, 2), name="x", **kind)], [tensor((1, 2), name="y", **kind)]
    )
    path = tmp_path / "q.tflite"
    path.write_bytes(relu)
    np.savez(tmp_path / "q.npz", x=np.float32([[1.3, -2], [4, 0]]), truth=[[1.5, 0], [4, 0]])
    assert evaluate_metric(Setup(str(path)), Hits, [str(tmp_path / "q.npz")]).figures[0] == {
        "hits": 1.0
    }
    stored = np.int8([[6, -1], [11, 3]])
    np.savez(tmp_path / "stored.npz", x=stored, truth=[[1.5, 0], [4, 0]])
    result = evaluate_metric(Setup(str(path)), Hits, [str(tmp_path / "stored.npz")])
    assert result.figures[0] == {"hits": 1.0}

    np.savez(tmp_path / "nan.npz", x=np.float32([[1.3, np.nan], [4, 0]]), truth=[[1.5, 0], [4, 0]])
    answers = evaluate_metric(Setup(str(path)), Hits, [str(tmp_path / "nan.npz")]).answers
    assert [bad.key for bad in answers.bad] == [f"{tmp_path / 'nan.npz'}[0]"]
    assert "holds float32 from nan to nan, expected int8" in answers.bad[0].reason


def test_inputs_and_outputs_go_by_the_names_of_a_signature_or_by_position(tmp_path: Path) -> None:
    path = tmp_path / "named.tflite"
    path.write_bytes(two_signatures())
    model = Setup(str(path))
    seen: list[Any] = []
    with model.interpreter() as interpreter:
        signatures = interpreter.get_signature_list()
        shape = interpreter.get_input_details()[0]["shape"].tolist()
    key = next(iter(signatures))
    rows = np.ones((2, *shape), np.float32)
    for name in (signatures[key]["inputs"][0], "0"):
        np.savez(tmp_path / "rows.npz", **{name: rows})
        evaluate_metric(
            model, lambda outputs, labels: seen.append(set(outputs)) or 1, [f"{tmp_path}/rows.npz"]
        )
    assert all(found == set(signatures[key]["outputs"]) for found in seen)


def test_names_of_metadata_and_of_tensors_are_taken(tmp_path: Path) -> None:
    content = one_op_model("NEG", [tensor((1, 2), name="x")], [tensor((1, 2), name="y")])
    described = with_metadata(content, (of_tensor("image"),), (of_tensor("score"),), {})
    (tmp_path / "m.tflite").write_bytes(described)
    seen: list[Any] = []

    def metric(outputs: Any, labels: Any) -> float:
        seen.append(list(outputs))
        return float(outputs["score"][0, 0] + outputs["y"][0, 1])

    for name in ("image", "x", "0"):
        np.savez(tmp_path / "rows.npz", **{name: np.float32([[1, 2]])})
        result = evaluate_metric(
            Setup(str(tmp_path / "m.tflite")), metric, [f"{tmp_path}/rows.npz"]
        )
        assert result.figures == ({"metric": -3},)
    assert seen == [["score"]] * 3


def test_outputs_whose_names_repeat_go_by_position(tmp_path: Path) -> None:
    x, y, z = (tensor((1, 2), name=name) for name in ("x", "same", "same"))
    graph = Graph([x], [y, z], [Op("NEG", [x], [y]), Op("ABS", [x], [z])])
    path = tmp_path / "same.tflite"
    path.write_bytes(write_model(records_of(graph)))
    data = str(tmp_path / "rows.npz")
    np.savez(data, x=np.float32([[1, -2]]))
    seen: list[Any] = []
    evaluate_metric(Setup(str(path)), lambda outputs, labels: seen.append(outputs) or 1, [data])
    found = {name: array.reshape(-1).tolist() for name, array in seen[0].items()}
    assert found == {"0": [-1, 2], "1": [1, 2]}


def test_signatures_of_the_first_model_name_the_tensors_of_all(tmp_path: Path) -> None:
    known = read_model(np.frombuffer(two_signatures(), np.uint8))
    assert known.signature_defs is not None
    renamed = known.signature_defs[0].replace(outputs=(tables.TensorMap(name="q", tensor_index=1),))
    paths = [tmp_path / name for name in ("a.tflite", "b.tflite")]
    paths[0].write_bytes(two_signatures())
    paths[1].write_bytes(write_model(known.replace(signature_defs=(renamed,))))
    data = str(tmp_path / "rows.npz")
    np.savez(data, x=np.float32([[1], [2]]))
    seen: list[Any] = []
    setups = [Setup(str(path)) for path in paths]
    evaluate_metric(setups, lambda outputs, labels: seen.append(list(outputs)) or 1, [data])
    assert seen == [["y"]] * 4


def test_rows_that_fit_no_input_say_what_is_there(negative: Setup, tmp_path: Path) -> None:
    path = str(tmp_path / "rows.npz")
    np.savez(path, X=np.zeros((2, 2), np.float32), truth=np.zeros(2))
    message = r"holds no array for input 'x' \(float32 \[1, 2\]\), called 'x' or '0' \(did you mean 'X'\?\); it holds 'X'"
    with pytest.raises(ArgumentError, match=message):
        evaluate_metric(negative, error, [path])
    np.savez(path, x=np.zeros((2, 3), np.float32))
    with pytest.raises(
        ArgumentError, match=r"rows\.npz\[0\]: x' has shape \[3\], expected \[1, 2\]"
    ):
        evaluate_metric(negative, error, [path])


def test_a_metric_whose_source_changed_begins_anew(
    negative: Setup, data: str, tmp_path: Path
) -> None:
    journal = str(tmp_path / "journal")
    evaluate_metric(negative, error, [data], journal=journal)
    assert evaluate_metric(negative, error, [data], journal=journal).answers.resumed == COUNT
    with pytest.raises(ArgumentError, match="not the same task"):
        evaluate_metric(negative, Hits, [data], journal=journal)
