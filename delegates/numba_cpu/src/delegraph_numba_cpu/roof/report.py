"""The roof of each operator of a model, from a profile and a measurement of the processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

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
        seconds: sum of the least times of all operators and partitions.
        roof: highest rates of the processor.
        operators: the operators, and the partitions of other delegates, in the order in which they
            run.
        cautions: reasons why the times may mislead, in words.
    """

    json_properties: ClassVar = {"roof_seconds": "roof_seconds", "of_roof": "of_roof"}

    model: str
    exact: bool
    runs: int
    seconds: float
    roof: ProcessorRoof
    operators: tuple[OperatorRoof, ...]
    cautions: tuple[str, ...] = ()

    @property
    def roof_seconds(self) -> float:
        """Sum of the roofs of all operators that have one, in seconds."""
        return sum(each.roof_seconds or 0.0 for each in self.operators)

    @property
    def of_roof(self) -> float | None:
        """Sum of the roofs divided by the time of the same operators; None if none has a time."""
        taken = sum(each.seconds for each in self.operators if each.roof_seconds is not None)
        return self.roof_seconds / taken if taken > 0 else None


def roof_report(
    model: str,
    cpu: str = "auto",
    threads: int = 1,
    *,
    inputs: InputRequest | None = None,
    signature: str | None = None,
    delegates: Sequence[str] = (),
    exact: bool = True,
    progress: Callable[..., object] = lambda what, done, total: None,
) -> RoofReport:
    """Measure each operator of a model, and compare its time with the least possible time.

    Args:
        model: path of the model.
        cpu: level of instructions, as in the option ``cpu``.
        threads: number of threads, >= 1; at most one for each processor is used.
        inputs: values for the inputs; None means random ones as in ``delegraph benchmark``.
        signature: name of the signature to call; None means the whole model.
        delegates: further delegates, each ``NAME[:KEY=VALUE,...]``, which take nodes before
            numba_cpu does. Their partitions have no roof.
        exact: as in the option ``exact``.
        progress: function that gets the name of the present step, the number of finished steps and
            of all.

    Raises:
        ArgumentError: an input or the signature does not fit the model, numba_cpu takes no node
            that runs or is among *delegates*, or programs run between guards.
        DelegateError: the processor has no such level, or its kernels cannot be compiled.
        DelegraphError: the model cannot be used, or it fails.
    """
    if is_guarded():
        raise ArgumentError(f"{GUARD_VARIABLE} is set: times between guards mean nothing")
    if any(name.partition(":")[0] == "numba_cpu" for name in delegates):
        raise ArgumentError("numba_cpu always runs: its options here are --cpu and --inexact")
    level, asked, threads = level_named(cpu), threads, min(threads, POOL.most_threads)
    delegate = f"numba_cpu:cpu={level.name},exact={str(exact).lower()}"
    setup = Setup(model, delegates=(*delegates, delegate), threads=threads)
    measurement = RoofMeasurement(level, threads)
    recording = record(
        setup,
        inputs,
        control=RUNS,
        signature=signature,
        progress=_measuring(measurement, progress),
    )
    if not any(e.delegate == "numba_cpu" for run in recording.runs for e in run.events):
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
    placement = recording.placement
    unused = {*placement.requested_delegates}.difference(p.delegate for p in placement.partitions)
    cautions = (*(f"{name} takes no node" for name in sorted(unused)), *cautions)
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
