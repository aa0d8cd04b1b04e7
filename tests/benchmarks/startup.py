"""What a process costs from its start to the end of the first invoke, beside the official one.

    python tests/benchmarks/startup.py [MODEL.tflite ...] [--blocks 12] [--delegate numba_cpu]

Each side is a program of its own: it imports, loads, allocates and invokes once. All take turns as
fresh processes, one thread each. Times count from before the process is made to after it has ended;
memory is the most that it had in use. All run from byte code, as installed packages do: it is
written to a folder of this run, by a round that does not count.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from ratio_rows import Row, row, write_rows

from delegraph.tools.benchmarking.verdicts import LEAST_BLOCKS, block_effects, ratio

MODELS = Path(__file__).parents[2] / "docs" / "demo" / "models"

OFFICIAL = "official"

RUN = """
import sys
from {package} import Interpreter
interpreter = Interpreter(model_path=sys.argv[1], num_threads=1{delegates})
interpreter.allocate_tensors()
interpreter.invoke()
"""


def programs(delegates: list[str]) -> dict[str, str]:
    """Return the program of each side, by name."""
    ours = {name: f", delegates=[{name!r}]" for name in delegates}
    return {
        OFFICIAL: RUN.format(package="ai_edge_litert.interpreter", delegates=""),
        "core": RUN.format(package="delegraph", delegates=", delegates=[]"),
        **{name: RUN.format(package="delegraph", delegates=text) for name, text in ours.items()},
    }


def environment(bytecode: str) -> dict[str, str]:
    """Return the processes' environment, with byte code stored in the folder *bytecode*."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": bytecode, "OMP_NUM_THREADS": "1"}


def run(program: str, model: str, variables: Mapping[str, str]) -> tuple[float, float]:
    """Run a program in a new process; return its seconds and its peak memory in MiB."""
    start = time.perf_counter()
    made = subprocess.Popen(
        [sys.executable, "-c", program, model], env=variables, stderr=subprocess.PIPE
    )
    assert made.stderr is not None
    said = made.stderr.read()
    _, status, usage = os.wait4(made.pid, 0)
    seconds = time.perf_counter() - start
    made.returncode = os.waitstatus_to_exitcode(status)
    if made.returncode:
        raise SystemExit(said.decode())
    return seconds, usage.ru_maxrss / 1024


def measure(model: str, sides: Mapping[str, str], blocks: int) -> dict[str, np.ndarray]:
    """Return the seconds and MiB of each side, ``[blocks, 2 turns, 2]``: A B C C B A per block."""
    order = [*sides, *reversed(sides)]
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as bytecode:
        variables = environment(bytecode)
        for program in sides.values():
            run(program, model, variables)
        for name in order * blocks:
            taken[name].append(run(sides[name], model, variables))
    return {name: np.reshape(rows, (blocks, 2, 2)) for name, rows in taken.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=[str(MODELS / "digits_int8.tflite")])
    parser.add_argument("--blocks", type=int, default=12, help=f"at least {LEAST_BLOCKS}")
    parser.add_argument("--delegate", action="append", default=[], dest="delegates")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios")
    args = parser.parse_args()
    rows_found: list[Row] = []
    sides = programs(args.delegates)
    print(f"{'model':46} {'side':12} {'ms':>8} {'MiB':>7}   time [95 %]  memory, by the official")
    for model in args.models:
        found = measure(model, sides, max(args.blocks, LEAST_BLOCKS))
        official = found[OFFICIAL]
        for name, rows in found.items():
            milliseconds, memory = 1e3 * np.median(rows[..., 0]), np.median(rows[..., 1])
            effects = block_effects(rows[:, np.newaxis, :, 0], official[:, np.newaxis, :, 0])
            by = memory / np.median(official[..., 1])
            shown = ""
            if name != OFFICIAL:
                time_row = row(f"process, {Path(model).stem}, {name}", ratio(effects))
                rows_found += [time_row, Row(f"peak memory, {Path(model).stem}, {name}", by)]
                shown = str(time_row)
            print(
                f"{Path(model).stem[:46]:46} {name:12} {milliseconds:8.1f} {memory:7.1f}   "
                f"{shown:18} {by:.2f}",
                flush=True,
            )
    write_rows(args.json, rows_found)


if __name__ == "__main__":
    main()
