"""Computes requests in batches, in the process of an engine or replica."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from delegraph.scale.batching import SIZES_KEPT
from delegraph.scale.computing import ERROR
from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import Columns, joined, row_count
from delegraph.tools.model_inputs import random_values


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """A computed batch: its number of rows, times and incidents.

    Attributes:
        rows: number of rows in the batch.
        seconds: duration of the batch, in seconds.
        incidents: number of delegate failures in the batch after which Delegraph went on.
        queue_seconds: seconds that the first request waited before the batch was computed.
    """

    rows: int
    seconds: float
    incidents: int
    queue_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a request: the outputs of its rows, or an error.

    Attributes:
        rows: column of each output; empty if there is an error.
        error: reason why there are no rows; empty if there are rows.
        batch: facts of the batch, set for its first request only, so that each batch is counted
            once.
    """

    rows: Columns
    error: str = ""
    batch: BatchFacts | None = None


class ServedBatches:
    """Computes several requests together; each request has one or more rows.

    Args:
        predictor: predictor that computes the rows, at most ``max_batch`` at a time.
        has_rows: whether a request's rows lie along the first axis of the model's inputs.
    """

    def __init__(self, predictor: Predictor, has_rows: bool) -> None:
        self._predictor = predictor
        if predictor.on_error != "column":
            self._predictor = predictor.replaced(batching=predictor.batching, on_error="column")
        self._has_rows = has_rows

    def warm_up(self) -> None:
        """Compute a batch of each size, so that delegates are prepared for later requests.

        Raises:
            DelegraphError: the model cannot be loaded.
        """
        sizes = batch_sizes(self._predictor.max_batch if self._has_rows else 1)
        rng = np.random.default_rng(0)
        self._predictor(self._random_rows(sizes[-1], rng))
        if self._has_rows and self._predictor.batching == "resize":
            for size in sizes:
                self._predictor(self._random_rows(size, rng))

    def _random_rows(self, rows: int, rng: np.random.Generator) -> Columns:
        columns = {}
        for name, entry in self._predictor.input_columns().items():
            values = [random_values(entry, rng) for _ in range(rows)]
            columns[name] = np.concatenate(values) if self._has_rows else np.stack(values)
        return columns

    def __call__(self, requests: Sequence[Columns]) -> list[Answer]:
        """Return an answer to each request.

        Args:
            requests: for each request, the column of each input; at most ``max_batch`` rows in all.

        Raises:
            DelegraphError: the batch failed, but not because of a single request.
        """
        start, incidents = time.perf_counter(), self._predictor.metrics.incidents
        answers: dict[int, Answer] = {}
        for places in _alike(requests):
            computed = self._computed([requests[place] for place in places])
            answers.update(zip(places, computed, strict=True))
        incidents = self._predictor.metrics.incidents - incidents
        rows = sum(map(row_count, requests))
        facts = BatchFacts(rows, time.perf_counter() - start, incidents)
        answers[0] = replace(answers[0], batch=facts)
        return [answers[place] for place in range(len(requests))]

    def _computed(self, requests: Sequence[Columns]) -> list[Answer]:
        """Compute requests whose rows have equal shapes in one batch; return a result for each."""
        given = joined(requests)
        if self._has_rows and self._predictor.batching == "resize":
            given = _filled(given, batch_sizes(self._predictor.max_batch))
        made = self._predictor(given)
        answers, start = [], 0
        for request in requests:
            rows = slice(start, start + row_count(request))
            start = rows.stop
            answers.append(self._answer({name: values[rows] for name, values in made.items()}))
        return answers

    def _answer(self, made: Columns) -> Answer:
        errors = [f"row {row}: {reason}" for row, reason in enumerate(made[ERROR]) if reason]
        if errors:
            return Answer({}, "; ".join(errors))
        return Answer({name: made[name] for name in self._predictor.output_columns()})


def batch_sizes(most: int) -> list[int]:
    """Return the batch sizes, up to *most*, to which batches are padded.

    Each size has an allocated interpreter.

    >>> batch_sizes(24)
    [1, 2, 4, 8, 16, 24]
    """
    sizes = [*(2**power for power in range(most.bit_length()) if 2**power < most), most]
    return sizes[-SIZES_KEPT:]


def _filled(columns: Columns, sizes: Sequence[int]) -> Columns:
    """Return *columns* padded with copies of the last row to the next larger of *sizes*."""
    rows = row_count(columns)
    missing = next(size for size in sizes if size >= rows) - rows
    if not missing:
        return columns
    return {
        name: np.concatenate([values, np.repeat(values[-1:], missing, 0)])
        for name, values in columns.items()
    }


def _alike(requests: Sequence[Columns]) -> list[list[int]]:
    """Return groups of indices of requests whose rows have equal shapes, to share a batch."""
    groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for place, request in enumerate(requests):
        shapes = tuple(values.shape[1:] for values in request.values())
        groups.setdefault(shapes, []).append(place)
    return list(groups.values())
