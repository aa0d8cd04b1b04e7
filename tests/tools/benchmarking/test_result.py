"""The figures, against values computed by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from delegraph.tools import BenchmarkResult, RunControl, Setup
from delegraph.tools.benchmarking.machine import machine
from delegraph.tools.benchmarking.stages import Stage

STAGES = (
    Stage("create delegates", 0.001, 1 << 20, 1 << 20),
    Stage("load", 0.002, 2 << 20, 3 << 20),
    Stage("apply delegates", 0.004, 3 << 20, 3 << 20),
    Stage("allocate", 0.008, 4 << 20, 7 << 20),
    Stage("invoke", 9, 5 << 20, 5 << 20),
)


def result(
    runs: Sequence[float] = (0.040, 0.010, 0.020, 0.030),
    warmup: Sequence[float] = (0.5, 0.1),
    stages: tuple[Stage, ...] = STAGES,
) -> BenchmarkResult:
    return BenchmarkResult(
        "mine",
        Setup("m.tflite").to_json(),
        None,
        "1 node",
        (),
        0,
        "benchmark",
        RunControl(),
        stages,
        1 << 19,
        tuple(warmup),
        tuple(runs),
        2_500_000,
        1 << 20,
        (),
        machine(),
    )


def test_official_latencies_have_the_official_names_and_definitions() -> None:
    expected = {
        "avg_ms": 25,
        "min_ms": 10,
        "max_ms": 40,
        "stddev_ms": 125**0.5,  # (15^2 + 15^2 + 5^2 + 5^2) / 4: of the population
        "median_ms": 30,  # sorted[4 * 50 // 100], the upper of the two in the middle
        "p5_ms": 10,  # sorted[0]
        "p95_ms": 40,  # sorted[3]
        "init_ms": 15,
        "first_inference_ms": 500,
        "average_warm_up_ms": 300,
    }
    assert result().official()["latency_metrics"] == pytest.approx(expected)


def test_official_memory_is_more_than_before_in_kb_and_the_peak_in_mb() -> None:
    assert result().official()["memory_metrics"] == {
        "init_footprint_kb": 3.5 * 1024,
        "overall_footprint_kb": 4.5 * 1024,
        "peak_mem_mb": 7,
    }


def test_official_counts_and_throughput() -> None:
    assert result().official()["misc_metrics"] == pytest.approx(
        {
            "model_size_mb": 2.5,
            "num_runs": 4,
            "num_warmup_runs": 2,
            "model_throughput_in_mb_per_sec": 40,  # 4 runs of 1 MiB in 0.1 s
        }
    )


def test_inferences_a_second_are_those_of_computing() -> None:
    assert result().inferences_per_second == pytest.approx(40)


def test_json_names_its_definitions_and_has_the_samples_and_the_machine() -> None:
    shown = json.loads(json.dumps(result().to_json()))
    assert shown["samples"] == {"warmup": [0.5, 0.1], "runs": [0.04, 0.01, 0.02, 0.03]}
    assert shown["definitions"]["std"].startswith("population")
    assert shown["definitions"]["nearest_percentiles"].startswith("nearest")
    latency = shown["latency"]
    assert (latency["median"], latency["nearest_percentiles"]["p50"]) == (0.025, 0.03)
    # linear between 0.03 (the 66.7th percentile of four) and 0.04 (the 100th)
    assert latency["percentiles"]["p90"] == pytest.approx(0.037)
    assert shown["machine"]["versions"]["numpy"]
    assert shown["peak_memory"] == 7 << 20
    assert (shown["init_seconds"], shown["first_inference_seconds"]) == (pytest.approx(0.015), 0.5)
    assert result(warmup=()).first_inference_seconds == 0.04


def test_what_was_not_measured_is_null() -> None:
    blind = tuple(replace(stage, memory=None, peak=None) for stage in STAGES)
    shown = result(runs=(), warmup=(), stages=blind).to_json()
    for key in ("latency", "warmup", "first_inference_seconds", "inferences_per_second"):
        assert shown[key] is None
    assert set(shown["official"]["memory_metrics"].values()) == {None}
    metrics = shown["official"]["latency_metrics"]
    assert {name for name, value in metrics.items() if value is not None} == {"init_ms"}
    assert shown["official"]["misc_metrics"]["model_throughput_in_mb_per_sec"] is None
