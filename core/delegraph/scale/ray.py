"""Batch jobs on a Ray cluster, by Ray Data. Needs ``pip install 'delegraph[ray]'``.

Ray reads and writes the data, places the actors, and starts again what was lost; bad rows are the
predictor's, as Ray knows only whole blocks.
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
    """Return a dataset with the outputs of each row, computed when it is read.

    Each actor loads the model once, so its file must be at the same path on every node. Ray keeps
    the order of rows only if ``execution_options.preserve_order`` is set; use a column of ids.

    Args:
        dataset: with a column for each input of the model.
        predictor: what is computed. With ``on_error="raise"`` a bad row ends the whole job.
        batch_size: rows of a call of the predictor, which computes at most ``max_batch`` of them
            together; None for those of a block.
        compute: how many actors, ``ray.data.ActorPoolStrategy(size=2)``; by default Ray starts as
            many as the cluster has room for.
        num_cpus: that an actor takes; the threads of its interpreter by default.
        fingerprint: an actor that finds another one fails, as its node has another model
            or delegate.
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
    """Return the configuration with which a job continues after its driver was killed.

    Set it as ``ray.data.DataContext.get_current().checkpoint_config`` before the data is read. Ids
    of rows that are written lie in the folder of the predictor's fingerprint, so that those of
    another model, delegate or option do not count as done.

    Args:
        predictor: of the job. It is loaded here, for its fingerprint.
        id_column: column that names each row; no two rows have the same.
        checkpoint_path: folder of the job that all nodes reach, or a URI.
        options: other arguments of ``ray.data.checkpoint.CheckpointConfig``.

    Raises:
        ArgumentError: Ray Data is not installed, or *predictor* drops bad rows: they would never
            be done.
        DelegraphError: the model cannot be loaded.
    """
    _require_ray()
    if predictor.on_error == "drop":
        raise ArgumentError(
            "on_error='drop' leaves no trace of bad rows, which a resumed job would compute again: "
            "give on_error='column'"
        )
    from ray.data.checkpoint import CheckpointConfig

    path = f"{checkpoint_path.rstrip('/')}/{predictor.fingerprint()}"
    return CheckpointConfig(id_column, path, **options)


def _require_ray() -> None:
    require_extra("Ray Data", "ray", "ray", "pandas", "pyarrow")


class PredictorActor:
    """Callable class for ``Dataset.map_batches``, which Ray creates in each actor.

    Args:
        predictor: what is computed.
        fingerprint: that it must have here; None for any.

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
