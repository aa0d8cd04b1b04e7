"""Accuracy of set-ups in picture classification, losses between them, and their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.html_tables import html_table
from delegraph.json_records import JsonRecord
from delegraph.tools.bootstrap import Interval
from delegraph.tools.evaluation.answers import Answers, write_csv
from delegraph.tools.evaluation.mcnemar import drop_interval, mcnemar_p_value
from delegraph.tools.evaluation.preprocessing import Preprocessing
from delegraph.tools.evaluation.task import Row

RANKS = 10
"""Number of best classes among which the true class is sought."""


@dataclass(frozen=True, slots=True)
class Drop(JsonRecord):
    """Accuracy that a set-up loses against the first set-up, on the same pictures.

    Attributes:
        top: number of best classes among which the true class counts as right: 1 to 10.
        lost: number of pictures that only the first set-up has right.
        gained: number of pictures that only this set-up has right.
        drop: ``lost - gained``, as a share of the pictures.
        interval: confidence interval of the drop.
        p_value: p-value of the exact McNemar test.
    """

    top: int
    lost: int
    gained: int
    drop: float
    interval: Interval
    p_value: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Classes that a set-up returns for a picture.

    Attributes:
        word: label of the best class; None if all scores are NaN.
        score: score of the best class, as a real number; None if all scores are NaN.
        rank: rank of the true class by score, from 1; None beyond 10.
    """

    word: str | None
    score: float | None
    rank: int | None


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """A picture for which a set-up's answer differs from the first set-up's.

    Attributes:
        key: name of the picture.
        truth: label of the true class.
        first: the answer of the first set-up.
        other: the answer of this set-up.
    """

    key: str
    truth: str
    first: Answer
    other: Answer


@dataclass(frozen=True, slots=True)
class Classification:
    """Classification accuracy of set-ups on the same pictures.

    Attributes:
        labels: labels of the model's classes.
        preprocessing: conversion of pictures to inputs.
        answers: answers of every set-up, with times.
        truths: mapping from a picture's name to the label of its true class.
    """

    labels: tuple[str, ...]
    preprocessing: Preprocessing
    answers: Answers
    truths: Mapping[str, str]

    def accuracy(self, setup: int, top: int = 1) -> float:
        """Return the share of pictures whose true class is among the *top* best classes.

        Args:
            setup: position of the set-up.
            top: 1 to 10.
        """
        return float(self._hits(setup, top).mean())

    def drop(self, setup: int, top: int = 1) -> Drop:
        """Return the loss of top-*top* accuracy of set-up number *setup* against the first."""
        first, other = self._hits(0, top), self._hits(setup, top)
        lost, gained = int((first & ~other).sum()), int((other & ~first).sum())
        count = len(first)
        interval = drop_interval(lost, gained, count)
        drop = (lost - gained) / count
        return Drop(top, lost, gained, drop, interval, mcnemar_p_value(lost, gained))

    def _hits(self, setup: int, top: int) -> NDArray[np.bool_]:
        rows = self.answers.rows[setup]
        return np.array([row["rank"] is not None and row["rank"] <= top for row in rows])

    def changed(self, setup: int) -> list[ChangedAnswer]:
        """Return the pictures whose class differs between set-up number *setup* and the first."""
        rows = zip(self.answers.keys, self.answers.rows[0], self.answers.rows[setup], strict=True)
        return [
            ChangedAnswer(key, self.truths[key], self._answer(first), self._answer(other))
            for key, first, other in rows
            if first["best"][:1] != other["best"][:1]
        ]

    def _answer(self, row: Row) -> Answer:
        if not row["best"]:
            return Answer(None, None, None)
        return Answer(self.labels[row["best"][0]], row["scores"][0], row["rank"])

    def _repr_html_(self) -> str:
        """Return a table of the set-ups, which notebooks display."""
        rows = []
        for i, setup in enumerate(self.answers.setups):
            drop = self.drop(i) if i else None
            lost = (None, None) if drop is None else (drop.drop, str(drop.interval))
            time = 1e3 * self.answers.invoke[i].median
            rows.append((setup, self.accuracy(i), self.accuracy(i, 5), *lost, time))
        columns = ("set-up", "top-1", "top-5", "drop of top-1", "interval", "median ms")
        return html_table(f"{len(self.answers.keys)} pictures", columns, rows)

    def to_json(self) -> dict[str, Any]:
        """Return accuracies, drops, changed answers and times of every set-up."""
        shown = self.answers.to_json()
        for position, entry in enumerate(shown["setups"]):
            entry["accuracy"] = {
                f"top-{top}": self.accuracy(position, top) for top in range(1, RANKS + 1)
            }
            if position:
                drops = [self.drop(position, top) for top in (1, 5)]
                entry["drop"] = {f"top-{drop.top}": drop.to_json() for drop in drops}
                entry["changed"] = [asdict(answer) for answer in self.changed(position)]
        preprocessing = self.preprocessing.to_json()
        return {"task": "classification", "preprocessing": preprocessing, **shown}

    def save_csv(self, path: str) -> None:
        """Write a CSV line per picture to *path*: the truth and the answer of every set-up.

        Raises:
            ArgumentError: the file cannot be written.
        """
        write_csv(path, self._table())

    def _table(self) -> Iterator[list[Any]]:
        names = [field.name for field in fields(Answer)]
        setups = list(map(str, self.answers.setups))
        columns = [f"{name} {i}" for i in range(1, len(setups) + 1) for name in ("set-up", *names)]
        yield ["picture", "truth", *columns]
        for key, *rows in zip(self.answers.keys, *self.answers.rows, strict=True):
            answers = zip(setups, map(self._answer, rows), strict=True)
            values = (value for setup, each in answers for value in (setup, *astuple(each)))
            yield [key, self.truths[key], *values]
