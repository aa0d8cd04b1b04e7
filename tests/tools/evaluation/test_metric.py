from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.metric import load_metric, named_metric

ROW = {"y": np.float64([1, 4])}, {"truth": np.float64([1, 2])}


def error(outputs: Any, labels: Any) -> float:
    return float(np.abs(outputs["y"] - labels["truth"]).mean())


def errors(outputs: Any, labels: Any) -> dict[str, Any]:
    difference = outputs["y"] - labels["truth"]
    return {"mean": difference.mean(), "exact": not difference.any()}


class Ratio:
    """A figure that is no mean of rows."""

    def row(self, outputs: Any, labels: Any) -> list[Any]:
        return [outputs["y"].sum(), labels["truth"].sum()]

    def total(self, rows: list[list[float]]) -> dict[str, float]:
        return {"ratio": sum(row[0] for row in rows) / sum(row[1] for row in rows)}


def test_a_function_of_one_number_is_a_figure_of_its_name() -> None:
    metric = named_metric(error)
    assert metric.row(*ROW, "k") == {"error": 1.0}
    assert metric.total([{"error": 1.0}, {"error": 4.0}]) == {"error": 2.5}


def test_numbers_by_name_are_figures_and_numpy_s_become_json_s() -> None:
    row = named_metric(errors).row(*ROW, "k")
    assert row == {"mean": 1.0, "exact": 0.0}
    assert {type(value) for value in row.values()} == {float}


@pytest.mark.parametrize("metric", [Ratio, Ratio()])
def test_an_object_makes_figures_of_all_rows(metric: Any) -> None:
    made = named_metric(metric)
    assert made.name == "Ratio"
    assert made.row(*ROW, "k") == [5.0, 3.0]
    assert made.total([[5.0, 3.0], [1.0, 3.0]]) == {"ratio": 1.0}


def test_a_metric_is_found_by_name_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metrics_of_this_test.py"
    path.write_text("def one(outputs, labels):\n    return 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    metric = load_metric("metrics_of_this_test:one")
    assert metric.name == "metrics_of_this_test:one"
    assert metric.row({}, {}, "k") == {"one": 1.0}
    assert metric.source


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("accuracy", "metric 'accuracy': expected package:function"),
        (":f", "expected package:function"),
        ("folder/mine.py:f", "names a file: write mine:f in the folder of mine.py"),
        ("no_such_package:f", "cannot be imported: ModuleNotFoundError: No module named 'no_such"),
        ("json:no_such", "cannot be imported: AttributeError: module 'json' has no attribute"),
        ("math:pi", "metric 'math:pi' is float, expected a function of outputs and labels, or"),
    ],
)
def test_what_is_no_metric_is_refused(name: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        load_metric(name)


def test_a_failure_names_the_metric_the_row_and_what_it_got() -> None:
    message = (
        r"metric 'error' failed on 'a.npz\[3\]': KeyError: 'truth', at tests/tools/evaluation/"
        r"test_metric.py:\d+ in error; it got outputs 'y' float64 \[2\] and labels none"
    )
    with pytest.raises(ArgumentError, match=message):
        named_metric(error).row(ROW[0], {}, "a.npz[3]")
    with pytest.raises(ArgumentError, match=r"failed on 'k': ValueError: could not convert"):
        named_metric(lambda outputs, labels: "good").row({}, {}, "k")
    with pytest.raises(ArgumentError, match="it returned None, expected a number"):
        named_metric(lambda outputs, labels: None).row({}, {}, "k")
    with pytest.raises(ArgumentError, match="metric 'Ratio' failed on 1 rows: ZeroDivisionError"):
        named_metric(Ratio).total([[1.0, 0.0]])
