"""Counts and times of a predictor in its process."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from delegraph.json_records import JsonRecord
from delegraph.tools.latency import Latency

KEPT = 10_000
"""Batches of which the times are kept: the last ones."""


def _latency(seconds: Collection[float]) -> Latency | None:
    return Latency.of(list(seconds)) if seconds else None


@dataclass
class Metrics(JsonRecord):
    """Counts and times of a predictor in this process.

    Attributes:
        rows: computed, good or bad.
        batches: calls of the predictor.
        errors: rows on which the model failed.
        incidents: failures of delegates after which Delegraph went on.
        lost_processes: that rows have ended.
        load_seconds: what loading the model and its delegates took.
        seconds: of each batch, the last :data:`KEPT`.
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
        """Add the counts of one batch."""
        self.rows += rows
        self.batches += 1
        self.errors += errors
        self.seconds.append(seconds)
