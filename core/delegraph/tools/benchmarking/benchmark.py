"""``benchmark``: measures the run time of a model by the rules of ``benchmark_model``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from delegraph.errors import ArgumentError
from delegraph.tools.array_files import write_npz
from delegraph.tools.benchmarking.cautions import cautions
from delegraph.tools.benchmarking.machine import OtherWork, machine
from delegraph.tools.benchmarking.result import BenchmarkResult
from delegraph.tools.benchmarking.run_control import Clock, RunControl, run_times
from delegraph.tools.benchmarking.timed_model import TimedModel, timed_model
from delegraph.tools.given_inputs import GivenInput
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup
from delegraph.tools.tensor_names import tensor_names


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
    on_estimate: Callable[[float], object] = bool,
) -> BenchmarkResult:
    """Measure a set-up: time until it is ready, first run, and later runs.

    If the system allows it, the process's record of its peak memory, ``VmHWM``, is reset.

    Args:
        setup: a model, and the runtime, delegates and threads that run it.
        inputs: values for the inputs; by default random ones as in ``benchmark_model``.
        control: number and duration of runs; by default as in ``benchmark_model``.
        signature: name of the signature to call; None means the whole model.
        name: name of the result.
        save: path of a ``.npz`` file for the outputs of the last run; None means that they are not
            kept.
        clock: source of the times.
        progress: function that is called between the runs.
        on_estimate: function that is called after the first run, with the estimated seconds of all
            runs.

    Raises:
        ArgumentError: an input, a signature or an argument does not fit the model.
        PluginError: a delegate is missing or broken.
        DelegraphError: the model cannot be used, or it fails.
    """
    request, chosen = inputs or InputRequest(), control or RunControl()
    with timed_model(setup, request, signature=signature, clock=clock) as model:
        where = machine()  # with the load before the runs
        others = OtherWork()
        run = _estimating(model, chosen, on_estimate)
        model.stages.skip()
        warmup = _runs(run, chosen.warm_up, model.clock, "warming up", progress)
        begin = model.clock.now()
        runs = _runs(run, chosen, model.clock, "running", progress)
        elapsed = model.clock.now() - begin
        if warmup or runs:
            model.stages.end("invoke")
        result = BenchmarkResult(
            name,
            model.setup.to_json(),
            signature,
            str(model.placement),
            tuple(map(_input_json, model.inputs)),
            request.seed,
            request.distribution,
            chosen,
            tuple(model.stages.done),
            model.stages.before.current,
            tuple(warmup),
            tuple(runs),
            model.model_bytes,
            model.input_bytes,
            tuple(cautions(runs, chosen, where, others.cores())),
            where,
            tuple(sorted(model.interpreter.get_signature_list())),
            model.handed_on,
            model.threads,
            elapsed,
        )
        if save is not None:
            _save(save, model, result)
        return result


def _runs(
    run: Callable[[], float], control: RunControl, clock: Clock, what: str, progress: Progress
) -> Sequence[float]:
    def told(share: float) -> None:
        progress(what, share, 1.0)

    return run_times(run, control, clock, told)


def _estimating(
    model: TimedModel, control: RunControl, on_estimate: Callable[[float], object]
) -> Callable[[], float]:
    """Return a function that runs the model once and returns the seconds that the run took.

    After the first run, *on_estimate* is called with the estimated seconds of all runs.
    """
    is_first = True

    def run() -> float:
        nonlocal is_first
        seconds = model.run()
        if is_first:
            is_first = False
            on_estimate(control.estimate(seconds))
        return seconds

    return run


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
    names = tensor_names(model.setup, result.signature, model.call).outputs
    write_npz(path, names, [array for _, array in model.call.outputs()])
