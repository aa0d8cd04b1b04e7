"""User-defined task: judges the rows of ``.npz`` files by a user's metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.html_tables import html_table
from delegraph.errors import ArgumentError, did_you_mean
from delegraph.json_records import JsonRecord
from delegraph.tools.bootstrap import Interval, percentile_interval, resampled
from delegraph.tools.evaluation.answers import Answers
from delegraph.tools.evaluation.metric import (
    Figures,
    MeanOfRows,
    NamedMetric,
    load_metric,
    named_metric,
)
from delegraph.tools.evaluation.npz_rows import NpzRow, npz_rows
from delegraph.tools.evaluation.runner import run_task
from delegraph.tools.evaluation.task import Outputs, Row
from delegraph.tools.model_call import Details, input_name
from delegraph.tools.model_inputs import fitted
from delegraph.tools.progress import Progress, untold
from delegraph.tools.quantizing import real_values
from delegraph.tools.setup import Setup
from delegraph.tools.tensor_names import names_in_calls


@dataclass(frozen=True, slots=True)
class MetricTask:
    """Task that judges a model's outputs by a metric.

    Attributes:
        metric: the metric.
        called: mapping from a tensor's name to the name by which commands call it, for all models.
    """

    metric: NamedMetric
    called: Mapping[str, str]

    def identity(self) -> Mapping[str, Any]:
        """Return the metric's name and a description of its source."""
        return {"name": "custom", "metric": self.metric.name, "source": self.metric.source}

    def require_model(self, inputs: Sequence[Details], outputs: Sequence[Details]) -> None:
        """Accept any model, because each row is checked against the inputs."""

    def inputs(self, sample: NpzRow, details: Sequence[Details]) -> list[NDArray[Any]]:
        """Return the arrays of the row *sample* for the inputs, quantized for quantized inputs.

        Raises:
            ArgumentError: an input has no array in the row, or the array's shape differs.
        """
        arrays = sample.arrays()
        return [
            self._input(entry, self._names(position, entry), arrays, sample)
            for position, entry in enumerate(details)
        ]

    def _input(
        self,
        entry: Details,
        names: Sequence[str],
        arrays: Mapping[str, NDArray[Any]],
        sample: NpzRow,
    ) -> NDArray[Any]:
        name = next((name for name in names if name in arrays), None)
        if name is None:
            raise ArgumentError(
                f"{sample.path!r} holds no array for {input_name(entry)}, called "
                f"{' or '.join(map(repr, names))}{did_you_mean(names[0], sorted(arrays))}; "
                f"it holds {', '.join(map(repr, sorted(arrays)))}"
            )
        return fitted(arrays[name], entry, f"{sample.key}: {name}")

    def judge(self, sample: NpzRow, outputs: Outputs) -> Row:
        """Return the metric's record of *outputs* for the row *sample*.

        Raises:
            ArgumentError: the metric failed.
        """
        each = [self._names(position, entry) for position, (entry, _) in enumerate(outputs)]
        if len({names[0] for names in each}) < len(each):  # so that no name hides another
            each = [[str(position)] for position in range(len(each))]
        real = _Outputs(
            (names[0], real_values(array, entry))
            for names, (entry, array) in zip(each, outputs, strict=True)
        )
        real.others = {other: names[0] for names in each for other in names[1:]}
        return {"row": self.metric.row(real, sample.arrays(), sample.key)}

    def _names(self, position: int, entry: Details) -> list[str]:
        """Return the names of a tensor: the one of commands, the tensor's own, its position."""
        names = [self.called.get(entry["name"]), entry["name"], str(position)]
        return list(dict.fromkeys(name for name in names if name))


class _Outputs(dict[str, NDArray[Any]]):
    """Outputs by name, which further names find as well.

    Attributes:
        others: mapping from a further name to the name.
    """

    others: Mapping[str, str]

    def __missing__(self, name: str) -> NDArray[Any]:
        return self[self.others[name]]


@dataclass(frozen=True, slots=True)
class FigureDrop(JsonRecord):
    """Decrease of one figure from the first set-up to another.

    Attributes:
        drop: the first set-up's figure minus this set-up's.
        interval: confidence interval of the drop, by the bootstrap over rows.
    """

    drop: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class CustomEvaluation:
    """Figures of a metric for every set-up.

    Attributes:
        metric: name of the metric.
        answers: what the metric recorded for each sample of the data, with the time of each run.
        figures: for each set-up, a mapping from a figure's name to its value.
        drops: for each set-up except the first, a mapping from a figure's name to its drop.
    """

    metric: str
    answers: Answers
    figures: tuple[Figures, ...]
    drops: tuple[Mapping[str, FigureDrop], ...]

    def _repr_html_(self) -> str:
        """Return a table of set-ups and figures, which notebooks display."""
        rows = []
        for i, setup in enumerate(self.answers.setups):
            for name, figure in self.figures[i].items():
                drop = self.drops[i - 1].get(name) if i else None
                lost = (None, None) if drop is None else (drop.drop, str(drop.interval))
                rows.append((setup, name, figure, *lost))
        title = f"{self.metric}, {len(self.answers.keys)} rows"
        return html_table(title, ("set-up", "figure", "value", "drop", "interval"), rows)

    def to_json(self) -> dict[str, Any]:
        """Return figures, drops and times of every set-up."""
        shown = self.answers.to_json()
        for position, entry in enumerate(shown["setups"]):
            entry["figures"] = self.figures[position]
            if position:
                drops = self.drops[position - 1]
                entry["drop"] = {name: drop.to_json() for name, drop in drops.items()}
        return {"task": "custom", "metric": self.metric, **shown}


def evaluate_metric(
    setups: Sequence[Setup] | Setup,
    metric: Any,
    data: Sequence[str],
    *,
    journal: str | None = None,
    warmup_runs: int = 1,
    progress: Progress = untold,
) -> CustomEvaluation:
    """Return the figures of a metric over the rows of ``.npz`` files, for every set-up.

    The first axis of a file's arrays counts the rows. An array named like an input has its
    values: stored values, or real numbers, which are then quantized. Its name is the one that all
    commands show, the tensor's own, or its position. The metric gets the other arrays as labels. It
    gets the outputs as real numbers, named in the same ways.

    Args:
        setups: one or several; the others are compared with the first.
        metric: ``"package:function"``, or the function or object itself.
        data: paths of the files.
        journal: path of a file with the finished samples, from which an interrupted evaluation
            continues.
        warmup_runs: number of runs of each set-up before times are measured.
        progress: function that is called with the state of the work.

    Raises:
        ArgumentError: the metric does not exist or failed, a file cannot be read, no row fits the
            model, or the journal belongs to another evaluation.
        DelegraphError: a set-up failed.
    """
    known = [setups] if isinstance(setups, Setup) else list(setups)
    judge = load_metric(metric) if isinstance(metric, str) else named_metric(metric)
    task = MetricTask(judge, _called_names(known))
    answers = run_task(
        known, npz_rows(data), task, journal=journal, warmup_runs=warmup_runs, progress=progress
    )
    rows = [[row["row"] for row in kept] for kept in answers.rows]
    figures = tuple(judge.total(kept) for kept in rows)
    drops = tuple(_drops(judge, rows[0], other, progress) for other in rows[1:])
    return CustomEvaluation(judge.name, answers, figures, drops)


def _drops(
    metric: NamedMetric, first: Sequence[Any], other: Sequence[Any], progress: Progress
) -> dict[str, FigureDrop]:
    """Return the drop from *first* to *other*, the rows of two set-ups, in each shared figure."""
    whole = metric.total(first), metric.total(other)
    names = [name for name in whole[0] if name in whole[1]]

    def lost(drawn: NDArray[np.int64]) -> list[float]:
        before, after = (metric.total([rows[i] for i in drawn]) for rows in (first, other))
        return [before[name] - after[name] for name in names]

    if isinstance(metric.metric, MeanOfRows):  # means of many rows in one step
        each = np.array([[a[n] - b[n] for n in names] for a, b in zip(first, other, strict=True)])
        figures = resampled(lambda drawn: each[drawn].mean(0), len(each), progress=progress)
    else:
        figures = resampled(lost, len(first), progress=progress)
    return {
        name: FigureDrop(whole[0][name] - whole[1][name], percentile_interval(figures[:, column]))
        for column, name in enumerate(names)
    }


def _called_names(setups: Sequence[Setup]) -> dict[str, str]:
    """Return a mapping from each tensor's name to its name in commands, such as a signature's.

    If tensors of several models share a name, the name in commands is that of the first model, so
    that a metric sees the same name for all models.
    """
    found: dict[str, str] = {}
    for setup in {setup.model: setup for setup in setups}.values():
        model = setup.loaded_model()
        for index, name in names_in_calls(model).items():
            if tensor := model.subgraphs[0].tensors[index].name:
                found.setdefault(tensor, name)
    return found
