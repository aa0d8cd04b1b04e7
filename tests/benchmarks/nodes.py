"""Models of very many small nodes, beside the official interpreter: time, growth and memory.

    python tests/benchmarks/nodes.py [--nodes 10000 100000] [--rounds 9] [--memory MODEL ...]

Both sides take turns in this process, each on one thread. The best processor time of each counts,
since other processes of the machine lengthen it least. Memory is the most that a process of its own
ever held, imports included; Linux tells it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from framework import chain_model, core, created_and_allocated, official, ready

from delegraph import Interpreter
from delegraph.graph import parse_model

SIDES = ("official", "core", "numba_cpu")

PROCESS = """
import sys
side, path = sys.argv[1:]
if side == "official":
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    given = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(path, num_threads=1, experimental_op_resolver_type=given)
else:
    from delegraph import Interpreter
    interpreter = Interpreter(path, num_threads=1, delegates=[] if side == "core" else [side])
interpreter.allocate_tensors()
interpreter.invoke()
with open("/proc/self/status") as status:
    print(*(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def best_times(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the least processor time of each function, in seconds; the functions take turns."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.thread_time()
            run()
            best[name] = min(best[name], time.thread_time() - start)
    return best


def report(name: str, times: Mapping[str, float], unit: str) -> None:
    """Print the ratio of each side to the official one."""
    least = times["official"]
    ratios = "  ".join(f"{side} {times[side] / least:6.2f}" for side in SIDES[1:] if side in times)
    print(f"{name:42} {least:12.4g} {unit}   {ratios}", flush=True)


def measure_nodes(length: int, rounds: int) -> None:
    """Print the rows of a chain of *length* ADD."""
    content = chain_model(length)
    sides = {
        "official": lambda: official(content),
        "core": lambda: core(content),
        "numba_cpu": lambda: Interpreter(model_content=content, delegates=["numba_cpu"]),
    }
    loads = {"official": sides["official"], "core": lambda: parse_model(content)}
    report(f"load, {length} ADD / Interpreter()", best_times(loads, rounds), "s")
    made = {side: lambda make=make: created_and_allocated(make()) for side, make in sides.items()}
    report(f"create + allocate, {length} ADD", best_times(made, rounds), "s")
    runs = {side: ready(make()) for side, make in sides.items()}
    often = max(rounds, 200_000 // length)
    report(f"set + invoke + get, {length} ADD", best_times(runs, often), "s")


def measure_one_node() -> None:
    """Print the row of a single ADD."""
    content = chain_model(1)
    runs = {
        "official": ready(official(content)),
        "core": ready(core(content)),
        "numba_cpu": ready(Interpreter(model_content=content, delegates=["numba_cpu"])),
    }
    thousand = {
        side: lambda run=run: [run() for _ in range(1000)] and None for side, run in runs.items()
    }
    times = best_times(thousand, 100)
    report("set + invoke + get, 1 ADD", {side: t / 1000 for side, t in times.items()}, "s")


def measure_memory(name: str, path: Path) -> None:
    """Print the row of the memory of processes that run a model once."""
    peaks = {}
    for side in SIDES:
        command = [sys.executable, "-c", PROCESS, side, str(path)]
        for _ in range(2):  # the second process finds a kept program
            peaks[side] = float(subprocess.run(command, check=True, capture_output=True).stdout)
    report(f"memory of the process, {name}", peaks, "KiB")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--memory", type=Path, nargs="*", default=[], metavar="MODEL")
    args = parser.parse_args()
    print(f"{'':42} {'official':>12}     times the official figure")
    measure_one_node()
    for length in args.nodes:
        measure_nodes(length, args.rounds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chain.tflite")
        path.write_bytes(chain_model(max(args.nodes)))
        measure_memory(f"{max(args.nodes)} ADD", path)
    for path in args.memory:
        measure_memory(path.name, path)


if __name__ == "__main__":
    main()
