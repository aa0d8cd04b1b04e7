"""The result of a benchmark, with its JSON, table and text forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from delegraph.delegation.html_tables import html_table
from delegraph.json_records import JsonRecord
from delegraph.tools.benchmarking.handed_on import HandedOn
from delegraph.tools.benchmarking.machine import Machine
from delegraph.tools.benchmarking.run_control import RunControl
from delegraph.tools.benchmarking.stages import Stage
from delegraph.tools.benchmarking.timed_model import INIT
from delegraph.tools.latency import Latency

MEBIBYTE = 1 << 20


DEFINITIONS = {
    "std": "population: divided by the count",
    "median": "the mean of the two in the middle",
    "percentiles": "linear: interpolated between the two nearest samples, as numpy.percentile",
    "nearest_percentiles": "nearest: sorted[floor(count * percent / 100)], as benchmark_model",
    "official": "std population, percentiles and median nearest",
    "time": "seconds of invoke alone; inputs are copied before, states are handed on inside",
}
"""Mapping from the name of each figure in JSON to its definition."""


@dataclass(frozen=True, slots=True)
class BenchmarkResult(JsonRecord):
    """Run times and memory of a set-up.

    Attributes:
        name: the user's name for the result; may be empty.
        setup: the measured set-up, as ``Setup.to_json`` returns it.
        signature: name of the called signature; None means the whole model.
        placement: summary of the placement in one line.
        inputs: name, type, shape and source of each input.
        seed: seed of random inputs.
        distribution: distribution of random inputs.
        control: number and duration of runs.
        stages: time and memory of each stage, in order: loading to allocation, warm-up, runs.
        memory_before: resident bytes of the process before the first stage; None if unknown.
        warmup: seconds of each warm-up run.
        runs: seconds of each measured run.
        model_bytes: size of the model file in bytes.
        input_bytes: size of all inputs in bytes.
        cautions: reasons why the figures may mislead, in words.
        machine: the machine on which the figures were measured.
        signatures: names of the model's signatures, sorted.
        handed_on: the states, such as KV caches, that each run passes to the next run; None if
            there are none.
        threads: largest number of threads of a run; None if a delegate chooses it and does not
            tell.
        elapsed: seconds from the start of the first measured run to the end of the last one, with
            rests and the copies of inputs between them.
    """

    json_properties: ClassVar = {
        "definitions": "definitions",
        "init_seconds": "init_seconds",
        "first_inference_seconds": "first_inference_seconds",
        "warmup": "warmup_latency",
        "latency": "latency",
        "inferences_per_second": "inferences_per_second",
        "tokens_per_second": "tokens_per_second",
        "peak_memory": "peak",
        "official": "official",
        "samples": "samples",
    }

    definitions: ClassVar = DEFINITIONS
    name: str
    setup: Mapping[str, Any]
    signature: str | None
    placement: str
    inputs: Sequence[Mapping[str, Any]]
    seed: int
    distribution: str
    control: RunControl
    stages: tuple[Stage, ...]
    memory_before: int | None
    warmup: tuple[float, ...]
    runs: tuple[float, ...] = field(metadata={"json_key": None})
    model_bytes: int = field(metadata={"json_key": None})
    input_bytes: int = field(metadata={"json_key": None})
    cautions: tuple[str, ...]
    machine: Machine
    signatures: tuple[str, ...] = ()
    handed_on: HandedOn | None = None
    threads: int | None = None
    elapsed: float = field(default=0.0, metadata={"json_key": "elapsed_seconds"})

    @property
    def latency(self) -> Latency | None:
        """Statistics of the measured runs; None if there are none."""
        return Latency.of(self.runs) if self.runs else None

    @property
    def warmup_latency(self) -> Latency | None:
        """Statistics of the warm-up runs; None if there are none."""
        return Latency.of(self.warmup) if self.warmup else None

    @property
    def samples(self) -> dict[str, tuple[float, ...]]:
        """Mapping from ``warmup`` and ``runs`` to the seconds of each of these runs."""
        return {"warmup": self.warmup, "runs": self.runs}

    @property
    def init_seconds(self) -> float:
        """Seconds until the model is ready."""
        return sum(stage.seconds for stage in self.stages if stage.name in INIT)

    @property
    def first_inference_seconds(self) -> float | None:
        """Seconds of the first run, which may be a warm-up run; None if there was no run."""
        return next(iter((*self.warmup, *self.runs)), None)

    @property
    def inferences_per_second(self) -> float | None:
        """Number of runs per second of computing time; None if there was no measured run."""
        return len(self.runs) / sum(self.runs) if sum(self.runs) else None

    @property
    def tokens_per_second(self) -> float | None:
        """Number of tokens per second of computing time; None if there were no runs or tokens."""
        if self.handed_on is None or not self.runs:
            return None
        return self.handed_on.per_second(sum(self.runs) / len(self.runs))

    @property
    def peak(self) -> int | None:
        """Largest resident memory of the process during all stages, in bytes; None if unknown."""
        return max((s.peak for s in self.stages if s.peak is not None), default=None)

    def _repr_html_(self) -> str:
        """Return tables of statistics and stages, which notebooks display."""
        times = {"warm-up": self.warmup_latency, "runs": self.latency}
        rows = [
            (what, t.count, *(1e3 * s for s in (t.median, t.mean, t.min, t.max, t.std)))
            for what, t in times.items()
            if t is not None
        ]
        columns = ("", "count", "median ms", "mean ms", "min ms", "max ms", "std ms")
        stages = [(s.name, 1e3 * s.seconds, s.memory, s.peak) for s in self.stages]
        title = "; ".join((self.placement, *self.cautions))
        return html_table(title, columns, rows) + html_table(
            "Stages", ("stage", "ms", "bytes after", "most bytes"), stages
        )

    def official(self) -> dict[str, Any]:
        """Return the figures of ``benchmark_model``, with its names and definitions.

        Missing figures are None. Times are in milliseconds. A kb is 1024 bytes; an mb is 10^6 bytes
        in model_size_mb and 2^20 bytes elsewhere.

        Source:
            BenchmarkResult, tflite/tools/benchmark/proto/benchmark_result.proto.
        """
        latency, warmup = self.latency, self.warmup_latency
        milliseconds: dict[str, float | None] = {
            "avg_ms": None if latency is None else latency.mean,
            "min_ms": None if latency is None else latency.min,
            "max_ms": None if latency is None else latency.max,
            "stddev_ms": None if latency is None else latency.std,
            "median_ms": None if latency is None else latency.upper_median,
            "p5_ms": None if latency is None else latency.nearest[5],
            "p95_ms": None if latency is None else latency.nearest[95],
            "init_ms": self.init_seconds,
            "first_inference_ms": None if warmup is None else warmup.first,
            "average_warm_up_ms": None if warmup is None else warmup.mean,
        }
        return {
            "name": self.name,
            "latency_metrics": {k: v if v is None else 1e3 * v for k, v in milliseconds.items()},
            "memory_metrics": self._official_memory(),
            "misc_metrics": {
                "model_size_mb": self.model_bytes / 1e6,
                "num_runs": len(self.runs),
                "num_warmup_runs": len(self.warmup),
                "model_throughput_in_mb_per_sec": self._throughput(),
            },
        }

    def _official_memory(self) -> dict[str, float | None]:
        last = {stage.name: stage.memory for stage in self.stages}
        init, overall = last.get(INIT[-1]), self.stages[-1].memory
        peak = self.peak
        return {
            "init_footprint_kb": _kilobytes_more(init, self.memory_before),
            "overall_footprint_kb": _kilobytes_more(overall, self.memory_before),
            "peak_mem_mb": None if peak is None else peak / MEBIBYTE,
        }

    def _throughput(self) -> float | None:
        total = sum(self.runs)
        return self.input_bytes * len(self.runs) / total / MEBIBYTE if total else None


def _kilobytes_more(after: int | None, before: int | None) -> float | None:
    return None if after is None or before is None else (after - before) / 1024
