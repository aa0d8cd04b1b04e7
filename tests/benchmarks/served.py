"""What serving a model gives at 1, 8 and 64 clients, beside a plain loop. Part of scale.py."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from delegraph import Predictor

ROUNDS = 5
CLIENTS = (1, 8, 64)
SETTINGS = ("--max-queue", "128")
START = 90.0
"""Seconds in which a server must be ready."""

Ask = Callable[[], object]


def serving(model: Path, width: int, seconds: float) -> None:
    """Print start, memory, requests a second and latencies of each engine beside a plain loop.

    Each request has one row. The installed engines are measured one after the other, as a cluster
    of Ray takes processor time while it waits; the loop and the clients of an engine take turns.

    Args:
        model: takes ``[1, width], float32``.
        width: of a row.
        seconds: that each way has in each round.
    """
    from tritonclient import grpc

    x = np.random.default_rng(1).standard_normal((1, width)).astype(np.float32)

    def client(port: int) -> Ask:
        triton = grpc.InferenceServerClient(f"localhost:{port}")
        tensor = grpc.InferInput("t0", [1, width], "FP32")
        tensor.set_data_from_numpy(x)
        return lambda: triton.infer(model.stem, [tensor])

    engines: dict[str, list[str]] = {"embedded": []}
    if find_spec("ray") is not None:
        engines |= {"Ray, 1 replica": ["--ray-address", "local"]}
        engines |= {"Ray, 2 replicas": ["--replicas", "2"]}
    with Predictor(model, batching="rows") as predictor:
        predictor({"t0": x})
        for engine, words in engines.items():
            with server(model, *words, *SETTINGS):
                pass  # what later starts find is compiled now
            with server(model, *words, *SETTINGS, name=engine) as port:
                ways: dict[str, list[Ask]] = {"plain loop": [lambda: predictor({"t0": x})]}
                for clients in CLIENTS:
                    ways[f"{clients} client(s)"] = [client(port) for _ in range(clients)]
                times: dict[str, list[list[float]]] = {way: [] for way in ways}
                for _ in range(ROUNDS + 1):
                    for way, asks in ways.items():
                        times[way].append(asked(asks, seconds))
            report({way: rounds[1:] for way, rounds in times.items()}, seconds)  # 1st warms up


def asked(asks: Sequence[Ask], seconds: float) -> list[float]:
    """Return the latencies of concurrent clients that send requests for some seconds."""
    found: list[float] = []
    end = time.perf_counter() + seconds

    def client(ask: Ask) -> None:
        while (start := time.perf_counter()) < end:
            ask()
            found.append(time.perf_counter() - start)

    threads = [threading.Thread(target=client, args=(ask,)) for ask in asks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def report(times: dict[str, list[list[float]]], seconds: float) -> None:
    """Print a line for each engine: its best rate over the loop's, and latencies of that round.

    Other programs of the machine only ever make a round slower, so the best rounds are compared.
    """
    base = max(map(len, times["plain loop"]))
    for way, rounds in times.items():
        best = max(rounds, key=len)
        p50, p99 = (1e3 * np.percentile(best, p) for p in (50, 99))
        low, high = (edge(map(len, rounds)) / seconds for edge in (min, max))
        print(
            f"  {way:12} {len(best) / base:5.2f} of the loop, p50 {p50:7.1f} ms, p99 {p99:7.1f} ms "
            f"({low:.0f} to {high:.0f} requests/s)"
        )


@contextmanager
def server(model: Path, *words: str, name: str = "") -> Iterator[int]:
    """Serve a model; yield the port of gRPC once it is ready.

    Args:
        model: path of the model.
        words: further words of the command line.
        name: is printed with the seconds to the start and the memory, if there is one.
    """
    http_port, grpc_port = free_port(), free_port()
    command = [sys.executable, "-m", "delegraph", "serve", str(model), *words]
    command += ["--http-port", str(http_port), "--grpc-port", str(grpc_port)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_ready(f"http://localhost:{http_port}/v2/health/ready")
        if name:
            seconds = time.perf_counter() - start
            print(f"{name:27} ready after {seconds:.2f} s, {resident(process.pid):.0f} MB resident")
        yield grpc_port
    finally:
        process.terminate()
        process.wait()


def resident(pid: int) -> float:
    """Return the resident memory of a process and its children, in MB."""
    import psutil

    process = psutil.Process(pid)
    found = [process, *process.children(recursive=True)]
    return float(sum(each.memory_info().rss for each in found)) / 1e6


def wait_until_ready(url: str) -> None:
    """Return when a server answers that it is ready."""
    end = time.monotonic() + START
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:  # not there, or 503
            time.sleep(0.02)
    sys.exit(f"the server was not ready after {START:.0f} s")


def free_port() -> int:
    """Return a port that is unused at the moment."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
