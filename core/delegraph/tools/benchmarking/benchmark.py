"""``benchmark``: measures the run time of a model by the rules of ``benchmark_model``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delegraph.errors import ArgumentError
from delegraph.tools.array_files import write_npz
from delegraph.tools.benchmarking.cautions import cautions
from delegraph.tools.benchmarking.clock import Clock
from delegraph.tools.benchmarking.machine import machine
from delegraph.tools.benchmarking.result import BenchmarkResult
from delegraph.tools.benchmarking.run_control import RunControl, run_times
from delegraph.tools.benchmarking.timed_model import TimedModel, timed_model
from delegraph.tools.given_inputs import GivenInput
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
    save: str | None = None,
    clock: Clock | None = None,
    progress: Progress = untold,
) -> BenchmarkResult:
    """Measure a set-up: time until it is ready, first run, and later runs.

    If the system allows it, the process's record of its peak memory, ``VmHWM``, is reset.

    Args:
        setup: a model, and the runtime, delegates and threads that run it.
        inputs: values for the inputs; by default random ones as in ``benchmark_model``.
        control: number and duration of runs; by default those of ``benchmark_model``.
        signature: name of the signature to call; None means the whole model.
        name: name of the result.
        save: path of a ``.npz`` file for the outputs of the last run; None means that they are not
            kept.
        clock: source of the times.
        progress: is called between the runs.

    Raises:
        ArgumentError: an input, a signature or an argument does not fit the model.
        PluginError: a delegate is missing or broken.
        DelegraphError: the model cannot be used, or it fails.
    """
    request = inputs or InputRequest()
    with timed_model(setup, request, signature=signature, clock=clock) as model:
        result = measured(model, request, control or RunControl(), signature, name, progress)
        if save is not None:
            _save(save, model, result)
        return result


def measured(
    model: TimedModel,
    request: InputRequest,
    control: RunControl,
    signature: str | None,
    name: str,
    progress: Progress,
) -> BenchmarkResult:
    """Return the run times of an allocated model; see :func:`benchmark`."""
    where = machine()  # with the load before the runs
    model.stages.skip()
    warmup = _runs(model, control.warm_up, "warming up", progress)
    runs = _runs(model, control, "running", progress)
    if warmup or runs:
        model.stages.end("invoke")
    return BenchmarkResult(
        name,
        model.setup.to_json(),
        signature,
        str(model.placement),
        tuple(map(_input_json, model.inputs)),
        request.seed,
        request.distribution,
        control,
        tuple(model.stages.done),
        model.stages.before.current,
        tuple(warmup),
        tuple(runs),
        model.model_bytes,
        model.input_bytes,
        tuple(cautions(runs, control, where)),
        where,
        tuple(sorted(model.interpreter.get_signature_list())),
        model.handed_on,
    )


def _runs(model: TimedModel, control: RunControl, what: str, progress: Progress) -> Sequence[float]:
    def told(share: float) -> None:
        progress(what, share, 1.0)

    return run_times(model.run, control, model.clock, told)


def _input_json(given: GivenInput) -> dict[str, Any]:
    return {
        "name": given.details["name"],
        "dtype": "string" if given.values.dtype.kind == "O" else given.values.dtype.name,
        "shape": list(given.values.shape),
        "source": given.source,
    }


def _save(path: str, model: TimedModel, result: BenchmarkResult) -> None:
    if not result.warmup and not result.runs:
        raise ArgumentError(f"there are no outputs to save in {path!r}: the model did not run")
    outputs = model.call.outputs()
    write_npz(path, [details["name"] for details, _ in outputs], [array for _, array in outputs])
