"""Metrics of the server, for Prometheus."""

from __future__ import annotations

from collections import Counter as Counts

from prometheus_client import Counter, Gauge, Histogram

from delegraph.scale.serving.batches import BatchFacts

_REQUESTS = Counter("delegraph_requests", "Requests by outcome.", ["model_name", "outcome"])
_IN_PROGRESS = Gauge(
    "delegraph_requests_in_progress", "Requests that are not answered yet.", ["model_name"]
)
_REQUEST_SECONDS = Histogram(
    "delegraph_request_seconds", "Seconds from a decoded request to its answer.", ["model_name"]
)
_QUEUE_SECONDS = Histogram(
    "delegraph_queue_seconds", "Seconds that a batch's first request waited.", ["model_name"]
)
_BATCH_ROWS = Histogram(
    "delegraph_batch_rows",
    "Rows computed together.",
    ["model_name"],
    buckets=[2**power for power in range(9)],
)
_BATCH_SECONDS = Histogram("delegraph_batch_seconds", "Seconds to compute a batch.", ["model_name"])
_INCIDENTS = Counter(
    "delegraph_delegate_incidents",
    "Failures of delegates after which Delegraph went on.",
    ["model_name"],
)


class ModelMetrics:
    """Metrics of a served model.

    Attributes:
        outcomes: number of requests by outcome: ``answered``, ``invalid``, ``refused``, ``failed``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.outcomes: Counts[str] = Counts()
        self.in_progress = _IN_PROGRESS.labels(name)
        self._request_seconds = _REQUEST_SECONDS.labels(name)
        self._queue_seconds = _QUEUE_SECONDS.labels(name)
        self._batch_rows = _BATCH_ROWS.labels(name)
        self._batch_seconds = _BATCH_SECONDS.labels(name)
        self._incidents = _INCIDENTS.labels(name)

    def count_request(self, outcome: str, seconds: float) -> None:
        """Count a request that has ended.

        Args:
            outcome: one of ``answered``, ``invalid``, ``refused``, ``failed``.
            seconds: duration from the decoded request to its answer.
        """
        self.outcomes[outcome] += 1
        _REQUESTS.labels(self._name, outcome).inc()
        self._request_seconds.observe(seconds)

    def count_batch(self, facts: BatchFacts) -> None:
        """Count a computed batch: its rows, times and incidents in *facts*."""
        self._batch_rows.observe(facts.rows)
        self._batch_seconds.observe(facts.seconds)
        self._queue_seconds.observe(facts.queue_seconds)
        self._incidents.inc(facts.incidents)
