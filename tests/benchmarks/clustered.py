"""What two actors of Ray give a batch job, beside calling the predictor in a loop. Of scale.py."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from delegraph import Predictor

ROUNDS = 3
BATCH = 32


def on_ray(model: Path, rows: int, width: int) -> None:
    """Print the ratios of Ray with two actors to a plain loop, run in turn.

    Once with the start of the actors, and once without: of what a job takes longer than one of half
    the rows.

    Args:
        model: takes ``[1, width], float32``, ``t0``.
        rows: of the data.
        width: of a row.
    """
    import ray.data

    ray.init(address="local", num_cpus=4)  # of which actors take two
    ray.data.DataContext.get_current().enable_progress_bars = False
    x = np.random.default_rng(1).standard_normal((rows, width)).astype(np.float32)
    predictor = Predictor(model, on_error="column", batching="resize", max_batch=BATCH)
    predictor({"t0": x[:BATCH]})
    half = x[: rows // 2]
    whole, without_start = [], []
    for _ in range(ROUNDS):
        loop, job = loop_seconds(predictor, x), job_seconds(predictor, x)
        whole.append(loop / job)
        without_start.append(loop / 2 / (job - job_seconds(predictor, half)))
    ray.shutdown()
    for name, ratios in (("with their start", whole), ("without it", without_start)):
        low, middle, high = np.quantile(ratios, [0, 0.5, 1])
        print(f"Ray, 2 actors, {name}: {middle:.2f} of the loop ({low:.2f} to {high:.2f})")


def job_seconds(predictor: Predictor, x: NDArray[np.float32]) -> float:
    """Return the run time of a job on two actors, including their start."""
    import ray.data

    from delegraph.scale.ray import predict

    blocks = np.array_split(x, len(x) // (8 * BATCH))
    dataset = ray.data.from_numpy(blocks).rename_columns({"data": "t0"})
    begin = time.perf_counter()
    answers = predict(dataset, predictor, compute=ray.data.ActorPoolStrategy(size=2))
    answered = sum(len(batch["error"]) for batch in answers.iter_batches(batch_size=None))
    if answered != len(x):
        raise RuntimeError(f"{answered} rows of {len(x)}")
    return time.perf_counter() - begin


def loop_seconds(predictor: Predictor, x: NDArray[np.float32]) -> float:
    """Return the run time of a plain loop."""
    begin = time.perf_counter()
    for start in range(0, len(x), BATCH):
        predictor({"t0": x[start : start + BATCH]})
    return time.perf_counter() - begin
