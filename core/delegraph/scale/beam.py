"""A model with delegates in Beam's ``RunInference``; needs ``pip install 'delegraph[beam]'``.

Beam groups the examples, runs the pipeline and repeats lost batches. The predictor handles bad
rows, because Beam repeats only whole batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delegraph.errors import ArgumentError
from delegraph.scale.metrics import Metrics as PredictorMetrics
from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import Columns, stacked

try:
    from apache_beam.metrics import Metrics
    from apache_beam.ml.inference.base import ModelHandler, PredictionResult
except ImportError as error:
    raise ImportError(
        "delegraph.scale.beam needs Apache Beam: pip install 'delegraph[beam]'", name=error.name
    ) from error

Example = Mapping[str, ArrayLike]
"""A row: mapping from column to value; the values have no axis of rows."""

NAMESPACE = "Delegraph"
"""Namespace of all metrics: Beam's metrics of RunInference, and those in :data:`COUNTERS`."""

COUNTERS = {
    "errors": "bad_rows",
    "incidents": "delegate_incidents",
    "lost_processes": "lost_processes",
}
"""Mapping from a count in the predictor's metrics to the name of its Beam counter."""


class DelegraphModelHandler(ModelHandler[Example, PredictionResult, Predictor]):
    """Beam model handler that computes examples by a predictor.

    An example is a dict with the model's inputs; ``KeyedModelHandler(DelegraphModelHandler(...))``
    takes pairs of a key and an example instead. The ``inference`` of a ``PredictionResult`` is a
    dict of the outputs, with ``error`` if the predictor has ``on_error="column"``; ``model_id`` is
    the model's path. With ``on_error="raise"``, a bad row fails its batch. Then Beam repeats the
    batch, or sets it aside with ``RunInference(...).with_exception_handling()``.
    """

    def __init__(self, predictor: Predictor, **options: Any) -> None:
        """Store the predictor, whose model each worker loads.

        Args:
            predictor: the predictor that computes the examples.
            options: options of every ``ModelHandler``: ``min_batch_size``, ``max_batch_size``,
                ``max_batch_duration_secs``, ``model_copies``, ``env_vars`` and so on. By default,
                ``max_batch_size`` is the predictor's ``max_batch``.

        Raises:
            ArgumentError: *predictor* drops bad rows: each example needs its result.
        """
        if predictor.on_error == "drop":
            raise ArgumentError(
                "on_error='drop' drops examples without results: give on_error='column' and "
                "filter by 'error'"
            )
        super().__init__(**{"max_batch_size": predictor.max_batch, **options})
        self._predictor = predictor

    def load_model(self) -> Predictor:
        """Return a copy of the predictor with its model loaded.

        Raises:
            DelegraphError: the model cannot be loaded.
        """
        predictor = copy(self._predictor)  # Beam may ask for several loaded models
        predictor.warm_up()
        return predictor

    def run_inference(
        self,
        batch: Sequence[Example],
        model: Predictor,
        inference_args: dict[str, Any] | None = None,
    ) -> list[PredictionResult]:
        """Return the result of each example.

        This is not a generator, because Beam counts a failed batch only when the call itself fails.

        Raises:
            ArgumentError: examples differ in their columns, or do not fit the model.
            PredictionError: the model failed on an example, and the predictor has
                ``on_error="raise"``.
        """
        before = counts(model.metrics)
        columns = model(columns_of_examples(batch))
        for name, count in counts(model.metrics).items():
            Metrics.counter(NAMESPACE, name).inc(count - before[name])
        path = model.setup.model
        made = [name for name in columns if name not in batch[0]]
        return [
            PredictionResult(example, {name: columns[name][row] for name in made}, path)
            for row, example in enumerate(batch)
        ]

    def get_num_bytes(self, batch: Sequence[Example]) -> int:
        """Return the number of bytes of the values of the examples in *batch*."""
        return sum(np.asarray(value).nbytes for example in batch for value in example.values())

    def get_metrics_namespace(self) -> str:
        """Return the namespace of this handler's Beam metrics."""
        return NAMESPACE

    def validate_inference_args(self, inference_args: dict[str, Any] | None) -> None:
        """Raise an error if there are arguments for single calls, which predictors do not support.

        Raises:
            ArgumentError: there are arguments.
        """
        if inference_args:
            raise ArgumentError(f"inference_args {sorted(inference_args)}: a model takes none")

    def update_model_path(self, model_path: str | None = None) -> None:
        """Use the model *model_path*, which must have the same inputs; Beam loads it later."""
        if model_path:
            self._predictor = self._predictor.replaced(model=model_path)


def columns_of_examples(batch: Sequence[Example]) -> Columns:
    """Return the examples in *batch* as columns; different shapes give a column of arrays.

    Raises:
        ArgumentError: the examples have different columns.
    """
    for example in batch:
        if example.keys() != batch[0].keys():
            raise ArgumentError(
                f"examples have different columns: {sorted(batch[0])} and {sorted(example)}"
            )
    return {name: _column([example[name] for example in batch]) for name in batch[0]}


def _column(values: Sequence[ArrayLike]) -> NDArray[Any]:
    return stacked([np.asarray(value) for value in values])


def counts(metrics: PredictorMetrics) -> dict[str, int]:
    """Return a predictor's counts so far (rows, errors and so on) by the names of Beam counters."""
    return {name: int(getattr(metrics, field)) for field, name in COUNTERS.items()}
