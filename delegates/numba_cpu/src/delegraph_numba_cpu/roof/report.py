"""The roof of each operator of a model, from a profile and a measurement of the processor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from delegraph.errors import ArgumentError, printable
from delegraph.json_records import JsonRecord
from delegraph.tools import InputRequest, RunControl, Setup, record
from delegraph_numba_cpu.library.cpu import level_named
from delegraph_numba_cpu.program.pool import POOL
from delegraph_numba_cpu.program.program import GUARD_VARIABLE, is_guarded
from delegraph_numba_cpu.roof.operators import OperatorRoof, operator_roofs
from delegraph_numba_cpu.roof.processor import ROUNDS, ProcessorRoof, RoofMeasurement

RUNS = RunControl(runs=60, min_seconds=0.0, max_seconds=8.0, warmup_runs=3, warmup_seconds=0.2)


@dataclass(frozen=True, slots=True)
class RoofReport(JsonRecord):
    """Operators of a model, with measured times and roofs.

    Attributes:
        model: the model's path.
        exact: whether integers were computed exactly.
        runs: number of runs; the least time of each operator counts.
        seconds: sum of the least times of all operators.
        roof: highest rates of the processor.
        operators: the operators in the order in which they run.
        cautions: reasons why the times may mislead, in words.
    """

    model: str
    exact: bool
    runs: int
    seconds: float
    roof: ProcessorRoof
    operators: tuple[OperatorRoof, ...]
    cautions: tuple[str, ...] = ()


def roof_report(
    model: str,
    cpu: str = "auto",
    threads: int = 1,
    *,
    inputs: InputRequest | None = None,
    exact: bool = True,
    progress: Callable[..., object] = lambda what, done, total: None,
) -> RoofReport:
    """Measure each operator of a model, and compare its time with the least possible time.

    Args:
        model: path of the model.
        cpu: level of instructions, as in the option ``cpu``.
        threads: number of threads, >= 1; at most one for each processor is used.
        inputs: values for the inputs; None means random ones as in ``delegraph benchmark``.
        exact: as in the option ``exact``.
        progress: function that gets the name of the present step, the number of finished steps and
            of all.

    Raises:
        ArgumentError: an input does not fit the model, numba_cpu takes no node of the model, or
            programs run between guards.
        DelegateError: the processor has no such level, or its kernels cannot be compiled.
        DelegraphError: the model cannot be used, or it fails.
    """
    if is_guarded():
        raise ArgumentError(f"{GUARD_VARIABLE} is set: times between guards mean nothing")
    level, asked, threads = level_named(cpu), threads, min(threads, POOL.most_threads)
    delegate = f"numba_cpu:cpu={level.name},exact={str(exact).lower()}"
    setup = Setup(model, delegates=(delegate,), threads=threads)
    measurement = RoofMeasurement(level, threads)
    recording = record(setup, inputs, control=RUNS, progress=_measuring(measurement, progress))
    if not any(event.delegate for run in recording.runs for event in run.events):
        raise ArgumentError(
            f"numba_cpu takes no node of {printable(model)}; for the reasons: "
            f"delegraph explain {printable(model)} --delegate numba_cpu"
        )
    progress("measuring the processor", 0, None)
    roof = measurement.roof()
    operators = tuple(operator_roofs(recording, roof))
    seconds = sum(operator.seconds for operator in operators)
    runs, cautions = len(recording.runs), recording.cautions
    if threads < asked:
        used = f"{threads} {'are' if threads > 1 else 'is'} used, one for each processor"
        cautions = (f"{asked} threads were asked for; {used}", *cautions)
    return RoofReport(model, exact, runs, seconds, roof, operators, cautions)


def _measuring(
    measurement: RoofMeasurement, progress: Callable[..., object]
) -> Callable[..., None]:
    """Return a function for the progress of :func:`record`, which measures between the runs.

    The rounds of *measurement* are spread over the profiled runs. *progress* is called first.
    """
    begin: float | None = None

    def between_runs(what: str, done: float, total: float | None) -> None:
        nonlocal begin
        progress(what, done, total)
        if what != "profiling":
            return
        begin = perf_counter() if begin is None else begin
        finished = max(done / (total or 1.0), (perf_counter() - begin) / RUNS.max_seconds)
        if measurement.rounds < ROUNDS * finished:
            measurement.measure()

    return between_runs
