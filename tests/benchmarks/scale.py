"""What processes, Ray and a server are worth beside a plain loop, and whether killed jobs go on.

``python tests/benchmarks/scale.py`` prints rows a second of a plain loop, of one process and of
two, of Ray with two actors, and of a server at 1, 8 and 64 clients, as ratios to the loop in the
same run. ``--only`` does some of it. Ray needs the environment of ``make test-scale-ray``, the
server that of ``make test-scale-serve``, or of ``make test-scale-serve-ray`` for both of its
engines. ``--killed`` kills a job of 200,000 rows at three random moments, resumes it each time, and
compares its file with that of a job without interruption.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from clustered import on_ray
from served import serving

from delegraph import Predictor
from delegraph.scale.job import MOST_PIECE_ROWS, predict
from delegraph.scale.opening import open_source
from delegraph.schema.options import FullyConnectedOptions
from delegraph.testing import constant, graph_model, tensor

KILLS = 3

NEEDS = {
    "processes": (),
    "ray": ("ray", "pandas", "pyarrow"),
    "server": ("grpc", "psutil", "tritonclient", "uvicorn"),
}
"""Part to the packages that it needs."""

PARTS = tuple(NEEDS)


def heavy_model(folder: Path, width: int, layers: int) -> Path:
    """Write a model of layers ``[width] -> [width]``, whose batches take some time."""
    rng = np.random.default_rng(0)
    weights = (rng.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32)
    tensors = {"w": constant(weights), "t0": tensor((1, width))}
    nodes = []
    for layer in range(layers):
        tensors[f"t{layer + 1}"] = tensor((1, width))
        nodes.append(("FULLY_CONNECTED", f"t{layer} w", f"t{layer + 1}", FullyConnectedOptions()))
    path = folder / "heavy.tflite"
    path.write_bytes(graph_model(nodes, inputs="t0", outputs=f"t{layers}", tensors=tensors))
    return path


def cpu_seconds() -> float:
    """Return the processor time of this process and of its ended child processes."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def throughput(folder: Path, model: Path, rows: int, width: int) -> None:
    """Print the rows per second of each way to compute, in turn."""
    x = np.random.default_rng(1).standard_normal((rows, width)).astype(np.float32)
    np.savez(folder / "data.npz", t0=x)
    with Predictor(model, on_error="column", batching="resize") as predictor:
        source = open_source(str(folder / "data.npz"), predictor.input_columns())
        predictor({"t0": x[:32]})
        begin, cpu = time.perf_counter(), cpu_seconds()
        for start in range(0, rows, 32):
            predictor({"t0": x[start : start + 32]})
        loop, loop_cpu = time.perf_counter() - begin, cpu_seconds() - cpu
        batch = 1e3 * 32 * loop_cpu / rows
        print(f"plain loop   {rows / loop:9.1f} rows/s, {batch:.1f} ms of processor time a batch")
        seconds = {}
        for processes in (1, 2):
            output, cpu = folder / f"{processes}.npz", cpu_seconds()
            seconds[processes] = predict(predictor, source, output, processes=processes).seconds
            rate, ratio = rows / seconds[processes], loop / seconds[processes]
            work = (cpu_seconds() - cpu) / loop_cpu
            print(
                f"{processes} process(es) {rate:9.1f} rows/s, {ratio:.2f} of the loop, with "
                f"{work:.2f} of its processor time"
            )
        print(f"2 processes are {seconds[1] / seconds[2]:.2f} times one (with their start)")


def killed_job(folder: Path, rows: int, seed: int) -> None:
    """Kill a job at random moments, restart it, and compare its final output."""
    choose = random.Random(seed)
    model = heavy_model(folder, 8, 1)
    x = np.random.default_rng(1).standard_normal((rows, 8)).astype(np.float32)
    np.savez(folder / "data.npz", t0=x, id=np.arange(rows))
    command = [sys.executable, "-m", "delegraph", "predict", str(model), str(folder / "data.npz")]
    subprocess.run([*command, "-o", str(folder / "whole.jsonl")], check=True)
    killed = [*command, "--resume", "-o", str(folder / "killed.jsonl")]
    done = 0
    for _ in range(KILLS):
        moment = done + choose.randint(1, rows // MOST_PIECE_ROWS // (KILLS + 1))
        process = subprocess.Popen(killed, stdout=subprocess.DEVNULL)
        while done < moment and process.poll() is None:
            time.sleep(choose.uniform(0, 0.05))
            done = len(list(folder.glob("killed.jsonl.job/*.done")))
        process.kill()
        print(f"killed with {done} pieces done: status {process.wait()}")
    subprocess.run(killed, check=True)
    same = filecmp.cmp(folder / "whole.jsonl", folder / "killed.jsonl", shallow=False)
    print("the same file" if same else "NOT THE SAME FILE")
    if not same:
        sys.exit(1)


def main() -> None:
    """Run the benchmarks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="of the data")
    parser.add_argument("--width", type=int, default=1024, help="of the model's layers")
    parser.add_argument("--layers", type=int, default=24, help="of the model")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a round with the server")
    parser.add_argument("--killed", action="store_true", help="kill a job and resume it instead")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.killed:
            killed_job(folder, given.rows or 200_000, given.seed)
            return
        model = heavy_model(folder, given.width, given.layers)
        for part in given.only:
            if missing := [name for name in NEEDS[part] if find_spec(name) is None]:
                print(f"{part}: not measured, {', '.join(missing)} not installed")
            elif part == "processes":
                throughput(folder, model, given.rows or 16_384, given.width)
            elif part == "ray":
                on_ray(model, given.rows or 8192, given.width)
            else:
                serving(model, given.width, given.seconds)


if __name__ == "__main__":
    main()
