"""Batch jobs on a Ray cluster with Ray Data; needs ``pip install 'delegraph[ray]'``.

Ray reads and writes the data, places the actors, and restarts lost work. The predictor handles bad
rows, because Ray repeats only whole blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from delegraph.errors import ArgumentError
from delegraph.scale.extras import require_extra
from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import Columns

if TYPE_CHECKING:
    from ray.data import ActorPoolStrategy, Dataset
    from ray.data.checkpoint import CheckpointConfig


def predict(
    dataset: Dataset,
    predictor: Predictor,
    *,
    batch_size: int | Literal["auto"] | None = None,
    compute: ActorPoolStrategy | None = None,
    num_cpus: float | None = None,
    fingerprint: str | None = None,
    **options: Any,
) -> Dataset:
    """Return a dataset with the outputs of each row, which Ray computes when it is read.

    Each actor loads the model once, so the model's file must be at the same path on every node. Ray
    keeps the order of rows only if ``execution_options.preserve_order`` is set; otherwise use a
    column of ids.

    Args:
        dataset: a dataset with a column for each input of the model.
        predictor: the predictor that computes the rows. With ``on_error="raise"`` a bad row ends
            the whole job.
        batch_size: number of rows in a call of the predictor, which computes at most ``max_batch``
            rows together; None means all rows of a block.
        compute: number of actors, such as ``ray.data.ActorPoolStrategy(size=2)``; by default as
            many as the cluster has room for.
        num_cpus: number of processors that an actor reserves; by default the threads of its
            interpreter.
        fingerprint: expected fingerprint of the predictor. An actor whose predictor has another
            fingerprint fails, because its node has another model or delegate.
        options: other arguments of ``Dataset.map_batches``: ``num_gpus``, ``resources`` and so on.

    Raises:
        ArgumentError: Ray Data is not installed.
    """
    _require_ray()
    return dataset.map_batches(
        PredictorActor,
        batch_size=batch_size,
        batch_format="numpy",
        compute=compute,
        fn_constructor_args=(predictor, fingerprint),
        num_cpus=predictor.setup.threads if num_cpus is None else num_cpus,
        udf_modifying_row_count=predictor.on_error == "drop",
        **options,
    )


def checkpoint_config(
    predictor: Predictor, id_column: str, checkpoint_path: str, **options: Any
) -> CheckpointConfig:
    """Return the configuration by which a job continues after its driver was killed.

    Set it as ``ray.data.DataContext.get_current().checkpoint_config`` before the data is read. The
    ids of written rows are stored in a folder named by the predictor's fingerprint. So rows written
    with another model, delegate or option do not count as done.

    Args:
        predictor: predictor of the job; its model is loaded here, for the fingerprint.
        id_column: column with a unique id for each row.
        checkpoint_path: folder of the job, which all nodes can reach, or a URI.
        options: other arguments of ``ray.data.checkpoint.CheckpointConfig``.

    Raises:
        ArgumentError: Ray Data is not installed, or *predictor* drops bad rows, which would never
            count as done.
        DelegraphError: the model cannot be loaded.
    """
    _require_ray()
    if predictor.on_error == "drop":
        raise ArgumentError(
            "on_error='drop' keeps no record of bad rows, so a resumed job would compute them "
            "again: give on_error='column'"
        )
    from ray.data.checkpoint import CheckpointConfig

    path = f"{checkpoint_path.rstrip('/')}/{predictor.fingerprint()}"
    return CheckpointConfig(id_column, path, **options)


def _require_ray() -> None:
    require_extra("Ray Data", "ray", "ray", "pandas", "pyarrow")


class PredictorActor:
    """Callable class for ``Dataset.map_batches``, which Ray creates in each actor.

    Args:
        predictor: the predictor that computes the rows.
        fingerprint: expected fingerprint of the predictor; None accepts any.

    Raises:
        ArgumentError: the fingerprint differs.
        DelegraphError: the model cannot be loaded.
    """

    def __init__(self, predictor: Predictor, fingerprint: str | None) -> None:
        predictor.warm_up()
        if fingerprint is not None and predictor.fingerprint() != fingerprint:
            raise ArgumentError(
                f"the predictor's fingerprint is {predictor.fingerprint()} on this node, expected "
                f"{fingerprint}: install the same model, Delegraph and delegates on every node"
            )
        self._predictor = predictor

    def __call__(self, batch: Mapping[str, ArrayLike]) -> Columns:
        """Return a batch with the outputs of each row."""
        return self._predictor(batch)
