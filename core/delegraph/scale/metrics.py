"""What a predictor has done in its process."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from delegraph.tools.latency import Latency

KEPT = 10_000
"""Batches of which the times are kept: the last ones."""


@dataclass
class Metrics:
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
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))

    def add(self, rows: int, errors: int, seconds: float) -> None:
        """Count a batch."""
        self.rows += rows
        self.batches += 1
        self.errors += errors
        self.seconds.append(seconds)

    def to_json(self) -> dict[str, Any]:
        """Return all of it; the latency is None before the first batch."""
        return {
            "rows": self.rows,
            "batches": self.batches,
            "errors": self.errors,
            "incidents": self.incidents,
            "lost_processes": self.lost_processes,
            "load_seconds": self.load_seconds,
            "latency": Latency.of(list(self.seconds)).to_json() if self.seconds else None,
        }
