"""Runs the benchmarks, short by default: ``make bench``.

    python tests/benchmarks/run.py                          every one, some seconds each
    python tests/benchmarks/run.py framework --seconds 20   one, with arguments of its own

A benchmark measures; it never passes or fails. Compare figures of one machine only.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "docs" / "demo" / "models"

SINES, FLOAT, INT8 = (str(MODELS / f"{n}.tflite") for n in ("sines", "digits_float", "digits_int8"))

SHORT = {
    "tests/benchmarks/apply.py": ["--nodes", "1000", "--seconds", "1"],
    "tests/benchmarks/arena.py": ["--tensors", "1000", "--seconds", "1"],
    "tests/benchmarks/beside_litert.py": ["--networks", str(MODELS), "--seconds", "0.5"],
    "tests/benchmarks/decoder.py": ["--weights", "int8", "--seconds", "1"],
    "tests/benchmarks/framework.py": ["--seconds", "0.5"],
    "tests/benchmarks/gemma.py": ["--seconds", "1", "--rounds", "1"],
    "tests/benchmarks/isolation.py": ["--seconds", "1"],
    "tests/benchmarks/litert.py": [],
    "tests/benchmarks/memory_bounds.py": [SINES, FLOAT, INT8, "--all"],
    "tests/benchmarks/memory_table.py": [FLOAT, INT8],
    "tests/benchmarks/models.py": [SINES, FLOAT, INT8, "--seconds", "1"],
    "tests/benchmarks/networks.py": ["--seconds", "1"],
    "tests/benchmarks/nodes.py": ["--nodes", "1000", "--rounds", "5", "--memory", FLOAT],
    "tests/benchmarks/official_benchmark.py": [FLOAT, INT8, "--rounds", "1"],
    "tests/benchmarks/partition.py": ["--nodes", "2000", "--seconds", "1"],
    "tests/benchmarks/plugins.py": [],
    "tests/benchmarks/report_page.py": ["--rounds", "2"],
    "tests/benchmarks/scale.py": ["--rows", "1024"],
    "tests/benchmarks/start.py": ["--rounds", "3", "--least", "0.3"],
    "tests/benchmarks/startup.py": ["--blocks", "5"],
    "tests/benchmarks/under_load.py": [FLOAT, "--seconds", "1"],
    "delegates/edgetpu/benchmarks/compile_models.py": [INT8],
    "delegates/edgetpu/benchmarks/pipeline.py": [INT8, "--seconds", "1"],
    "delegates/flex/benchmarks/nodes.py": ["--seconds", "1"],
    "delegates/numba_cpu/benchmarks/pointwise.py": ["--rounds", "5"],
    "delegates/numba_cpu/benchmarks/thread_times.py": [FLOAT, "--rounds", "20"],
}
"""Every benchmark, with arguments that make it short and need nothing but a clone."""


def main(words: list[str]) -> int:
    """Run all benchmarks, or the named one; return how many failed."""
    if words:
        chosen = [path for path in SHORT if Path(path).stem == words[0]]
        if not chosen:
            print(f"no benchmark {words[0]!r}, expected one of: {', '.join(names())}")
            return 2
        return sum(run(path, words[1:] or SHORT[path]) for path in chosen)
    return sum(run(path, arguments) for path, arguments in SHORT.items())


def names() -> list[str]:
    """Return the names by which benchmarks are asked for."""
    return sorted(Path(path).stem for path in SHORT)


def run(path: str, arguments: list[str]) -> bool:
    """Run one benchmark, its output on the terminal; return whether it failed."""
    print(f"\n== {path}", flush=True)
    return (
        subprocess.run([sys.executable, str(ROOT / path), *arguments], check=False).returncode != 0
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
