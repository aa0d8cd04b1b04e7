"""Metrics that a predictor collects in its process."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from delegraph.json_records import JsonRecord
from delegraph.tools.latency import Latency

KEPT = 10_000
"""Number of latest batches whose times are kept."""


def _latency(seconds: Collection[float]) -> Latency | None:
    return Latency.of(list(seconds)) if seconds else None


@dataclass
class Metrics(JsonRecord):
    """Counts and times of a predictor in this process.

    Attributes:
        rows: number of computed rows, good or bad.
        batches: number of calls of the predictor.
        errors: number of rows on which the model failed.
        incidents: number of delegate failures after which Delegraph went on.
        lost_processes: number of child processes that rows have killed.
        load_seconds: time to load the model and its delegates, in seconds.
        seconds: duration of each batch in seconds, for the latest :data:`KEPT` batches.
    """

    rows: int = 0
    batches: int = 0
    errors: int = 0
    incidents: int = 0
    lost_processes: int = 0
    load_seconds: float = 0.0
    seconds: deque[float] = field(
        default_factory=lambda: deque(maxlen=KEPT),
        metadata={"json_key": "latency", "json_value": _latency},
    )

    def add(self, rows: int, errors: int, seconds: float) -> None:
        """Add a batch of *rows* rows, *errors* of them bad, that took *seconds*."""
        self.rows += rows
        self.batches += 1
        self.errors += errors
        self.seconds.append(seconds)
