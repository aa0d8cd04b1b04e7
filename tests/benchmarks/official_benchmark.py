"""``delegraph benchmark --runtime litert`` beside ``litert-benchmark`` of the official wheel.

    python tests/benchmarks/official_benchmark.py MODEL.tflite... [--rounds 6] [--runs 50]

Both are commands in processes of their own, with one thread and as many runs and runs of warm-up.
In each round they take turns: official, ours, ours, official. The table has the median of the
medians that each command told, the ratio of the two, and the noise: how far the official command
is from itself, half of what lies between its lowest and its highest figure, as a share. It rounds
to 10 us, half of which is added. Last comes the ratio of the lowest figures of both, which other
work on the machine disturbs least.

``litert-benchmark`` runs models by ``CompiledModel``, we by ``Interpreter``: both have XNNPACK.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

LITERT_BENCHMARK = Path(sysconfig.get_path("scripts")) / "litert-benchmark"


ROUNDING = 0.005
"""Milliseconds by which the official figures may be off."""


def official(model: str, runs: int, file: Path) -> float:
    """Return the median that ``litert-benchmark`` reports, in milliseconds."""
    words = [str(LITERT_BENCHMARK), "--model", model, "--num_runs", str(runs)]
    shown = told_by([*words, "--warmup_runs", "5", "--num_threads", "1", "--result_json"], file)
    return float(shown["latency"]["median_ms"])


def ours(model: str, runs: int, file: Path) -> float:
    """Return the median that ``delegraph benchmark`` reports, in milliseconds."""
    words = [sys.executable, "-m", "delegraph", "benchmark", model, "--runs", str(runs)]
    words += ["--min-seconds", "0", "--warmup-runs", "5", "--warmup-seconds", "0"]
    words += ["--runtime", "litert", "--threads", "1", "--distribution", "run"]
    shown = told_by([*words, "--result-json"], file)
    return 1e3 * float(shown["latency"]["median"])


def told_by(words: list[str], file: Path) -> Any:
    """Return the JSON that a command writes to *file*."""
    subprocess.run([*words, str(file)], check=True, capture_output=True)
    return json.loads(file.read_text(encoding="utf-8"))


def compare(model: str, rounds: int, runs: int, file: Path) -> str:
    """Return the table row of a model."""
    theirs, own = list[float](), list[float]()
    for _ in range(rounds):
        theirs.append(official(model, runs, file))
        own += [ours(model, runs, file), ours(model, runs, file)]
        theirs.append(official(model, runs, file))
    right, found = statistics.median(theirs), statistics.median(own)
    noise = ((max(theirs) - min(theirs)) / 2 + ROUNDING) / right
    verdict = "within" if abs(found / right - 1) <= noise else "outside"
    best = min(own) / min(theirs)
    return f"{right:9.2f} {found:9.3f} {found / right:7.3f} {noise:7.1%} {verdict:8} {best:7.3f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--runs", type=int, default=50)
    args = parser.parse_args()
    print(f"{'median, ms':50} {'official':>9} {'ours':>9} {'ratio':>7} {'noise':>7} {'':8} lowest")
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            row = compare(model, args.rounds, args.runs, Path(folder) / "result.json")
            print(f"{Path(model).stem[:50]:50} {row}", flush=True)


if __name__ == "__main__":
    main()
