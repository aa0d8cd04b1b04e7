"""``benchmark``: how long a model takes, by the rules of ``benchmark_model``."""

from __future__ import annotations

from pathlib import Path

from delegraph.tools.benchmarking.cautions import cautions
from delegraph.tools.benchmarking.clock import Clock
from delegraph.tools.benchmarking.machine import machine
from delegraph.tools.benchmarking.result import BenchmarkResult
from delegraph.tools.benchmarking.run_control import RunControl, run_times
from delegraph.tools.benchmarking.timed_model import TimedModel, timed_model
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup


def benchmark(
    setup: Setup,
    inputs: InputRequest | None = None,
    control: RunControl | None = None,
    *,
    signature: str | None = None,
    name: str = "",
    clock: Clock | None = None,
    progress: Progress = untold,
) -> BenchmarkResult:
    """Return how long a set-up takes: until it is ready, the first time, and from then on.

    Args:
        setup: a model and what runs it.
        inputs: what its inputs are; default: random as in ``benchmark_model``.
        control: how often it runs; default: as ``benchmark_model`` does.
        signature: which of the model's is called; None: the whole model.
        name: what to call the result.
        clock: where times come from.
        progress: is told between the runs.

    Raises:
        ArgumentError: an input, a signature or an argument that does not fit.
        PluginError: a delegate is missing or broken.
        DelegraphError: the model cannot be used, or it fails.
    """
    request = inputs or InputRequest()
    with timed_model(setup, request, signature=signature, clock=clock) as model:
        return measured(model, request, control or RunControl(), signature, name, progress)


def measured(
    model: TimedModel,
    request: InputRequest,
    control: RunControl,
    signature: str | None,
    name: str,
    progress: Progress,
) -> BenchmarkResult:
    """Return how long a model that is ready takes."""
    where = machine()  # its load is that before the runs
    model.stages.skip()
    warmup = _runs(model, control.warm_up, "warming up", progress)
    model.stages.end("warm-up")
    runs = _runs(model, control, "running", progress)
    model.stages.end("run")
    return BenchmarkResult(
        name,
        model.setup.to_json(),
        signature,
        str(model.placement),
        [
            {
                "name": given.details["name"],
                "dtype": given.values.dtype.name,
                "shape": list(given.values.shape),
                "source": given.source,
            }
            for given in model.inputs
        ],
        request.seed,
        request.distribution,
        control,
        tuple(model.stages.done),
        model.stages.before.current,
        warmup,
        runs,
        Path(model.setup.model).stat().st_size,
        model.input_bytes,
        tuple(cautions(runs)),
        where,
    )


def _runs(
    model: TimedModel, control: RunControl, what: str, progress: Progress
) -> tuple[float, ...]:
    def told(share: float) -> None:
        progress(what, share, 1.0)

    return tuple(run_times(model.run, control, model.clock, told))
