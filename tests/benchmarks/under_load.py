"""Times of a network while another process keeps one processor busy, beside XNNPACK.

    python tests/benchmarks/under_load.py MODEL [--threads 2] [--seconds 30]
    python tests/benchmarks/under_load.py MODEL --page    write docs/speed.md as well

XNNPACK and numba_cpu have a process each and take turns: alone, then beside a process that never
sleeps. The median and the 99th percentile of all single runs are printed. A runtime whose threads
wait for each other loses most when one of them has no processor.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from network_runs import BASE, Process, random_inputs
from networks import KEPT, PAGE, level_used, read_kept, write_kept

from delegraph.delegation.num_threads import usable_processors

RUNTIMES = {BASE: BASE, "numba_cpu": "numba_cpu"}
BLOCKS = 8
"""Number of times that each runtime runs alone and beside the neighbour."""

PERCENTILES = (50, 99)


@contextmanager
def neighbour(is_there: bool) -> Iterator[None]:
    """Context in which another process keeps a processor busy, if *is_there*."""
    if not is_there:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measured(model: Path, threads: int, seconds: float) -> list[dict[str, Any]]:
    """Return the percentiles of each runtime, alone and beside the neighbour, in milliseconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "inputs.npz", *random_inputs(model))
        words = (str(model), str(threads), str(folder / "inputs.npz"))
        processes: dict[str, Process] = {}
        try:
            for runtime, word in RUNTIMES.items():
                own = folder / runtime
                own.mkdir()
                processes[runtime] = Process((sys.executable, word, *words), own)
            times = turns({name: each.turn for name, each in processes.items()}, seconds)
        finally:
            for process in processes.values():
                process.close()
    return [
        {"runtime": runtime, "neighbour": is_busy, "milliseconds": percentiles(found)}
        for (runtime, is_busy), found in times.items()
    ]


def turns(
    runtimes: Mapping[str, Callable[[float], list[float]]], seconds: float
) -> dict[tuple[str, bool], list[float]]:
    """Return the seconds of single runs of runtimes in turn, without and with load.

    Args:
        runtimes: mapping from each runtime to a function that runs for some seconds.
        seconds: of all turns together.
    """
    found: dict[tuple[str, bool], list[float]] = {
        (runtime, is_busy): [] for runtime in runtimes for is_busy in (False, True)
    }
    share = seconds / BLOCKS / len(found)
    for number in range(BLOCKS):
        order = sorted(runtimes, reverse=number % 2 == 1)
        for is_busy in (False, True):
            with neighbour(is_busy):
                for runtime in order:
                    found[runtime, is_busy] += runtimes[runtime](share)
    return found


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return the median and the 99th percentile in milliseconds: ``{"50": ..., "99": ...}``."""
    values = 1e3 * np.percentile(seconds, PERCENTILES)
    return {str(p): float(value) for p, value in zip(PERCENTILES, values, strict=True)}


def main() -> None:
    """Measure a model, print a line for each runtime, and write the page if requested."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=usable_processors())
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--page", action="store_true", help=f"keep results in {KEPT.name}")
    given = parser.parse_args()
    found = measured(given.model, given.threads, given.seconds)
    for row in found:
        times = " ".join(f"p{p} {value:8.3f} ms" for p, value in row["milliseconds"].items())
        beside = "beside a busy process" if row["neighbour"] else "alone"
        print(f"{row['runtime']:10} {beside:22} {times}")
    if given.page:
        kept = read_kept(KEPT, {"numba_cpu": level_used("auto")})
        entry = {"network": given.model.stem, "threads": given.threads, "results": found}
        entry["date"] = time.strftime("%Y-%m-%d", time.gmtime())
        key = entry["network"], entry["threads"]
        others = [e for e in kept.get("under_load", ()) if (e["network"], e["threads"]) != key]
        write_kept(KEPT, {**kept, "under_load": [*others, entry]})
        subprocess.run([sys.executable, str(PAGE)], check=True)


if __name__ == "__main__":
    main()
