"""All kinds of clients at once, good and bad: no answer is lost, none wrong, each refusal right.

It takes some seconds for each engine; ``DELEGRAPH_SERVE_SECONDS=60`` has a minute of it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.digits import answers_one_by_one
from support.served import Served, kill

NEEDED = ("grpc", "httptools", "psutil", "tritonclient", "uvicorn")
if not all(map(importlib.util.find_spec, NEEDED)):
    pytest.skip("serving is tested by make test-scale-serve", allow_module_level=True)

import psutil  # noqa: E402
from tritonclient import grpc, http  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402

SECONDS = float(os.environ.get("DELEGRAPH_SERVE_SECONDS", "6"))
DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"
PICTURES = np.random.default_rng(0).integers(-128, 128, (64, 8, 8, 1)).astype(np.int8)
INFER = "/v2/models/digits_int8/infer"
WORDS = [
    *(str(DIGITS), "--max-body-size", "8", "--header-timeout", "1", "--max-queue", "200"),
    *("--access-log", "/dev/full"),
]
TAKES_NO_MORE = ("503", "StatusCode.UNAVAILABLE")


def head(length: int, *lines: str) -> bytes:
    """Return a header of HTTP."""
    first = [f"POST {INFER} HTTP/1.1", "host: here", f"content-length: {length}", *lines, "", ""]
    return "\r\n".join(first).encode()


def large_json() -> bytes:
    numbers = ",".join(["1"] * 64 * 20_000)
    image = f'"name":"image","datatype":"INT8","shape":[20000,8,8,1],"data":[{numbers}]'
    return f'{{"inputs":[{{{image}}}]}}'.encode()


BAD: dict[str, tuple[int, bytes]] = {
    "half a header": (408, head(1)[:30]),
    "announced": (413, head(9 * 2**20)),
    "large JSON": (400, head(len(large_json())) + large_json()),
    "no gzip": (400, head(2, "content-encoding: gzip") + b"{}"),
    "unknown encoding": (415, head(2, "content-encoding: br") + b"{}"),
    "long header": (431, head(2, f"x: {'a' * 70_000}") + b"{}"),
    "no JSON": (400, head(2) + b"[["),
}
"""Mapping from a kind of bad client to the status that it gets and what it sends."""


class Load:
    """Clients that ask until they are told to stop.

    Attributes:
        counts: number of answers of each kind.
        wrong: what should not have happened.
        has_ended: whether a replica was killed, or the server told to stop; then 503 is right.
    """

    def __init__(self, served: Served, expected: NDArray[Any]) -> None:
        self._served = served
        self._expected = expected
        self._stop = threading.Event()
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.has_ended = threading.Event()
        self.is_stopping = threading.Event()

    def good(self, way: str, seed: int) -> None:
        """Ask by a client of the protocol, and compare the answers."""
        module: Any = grpc if way == "grpc" else http
        served = self._served
        client = module.InferenceServerClient(served.grpc if way == "grpc" else served.http)
        rng = random.Random(seed)
        while not self._stop.is_set():
            start, rows = rng.randrange(60), rng.randrange(1, 5)
            pictures = PICTURES[start : start + rows]
            image = module.InferInput("image", list(pictures.shape), "INT8")
            image.set_data_from_numpy(pictures, **({"binary_data": False} if way == "json" else {}))
            try:
                found = client.infer("digits_int8", [image]).as_numpy("digit")
            except InferenceServerException as error:
                right = self.has_ended.is_set() and str(error.status()) in TAKES_NO_MORE
                self._note("refused" if right else f"{way}: {error}", right)
            except OSError as error:
                self._note("not connected", self.is_stopping.is_set() or f"{way}: {error!r}")
            else:
                same = np.array_equal(found, self._expected[start : start + rows])
                self._note(way, same or f"{way}: a wrong answer")
        with suppress(Exception):
            client.close()

    def bad(self, kind: str) -> None:
        """Send what is refused, and compare the status."""
        status, content = BAD[kind]
        while not self._stop.is_set():
            try:
                found = sent(self._served.http_port, content)
            except OSError as error:
                self._note("not connected", self.is_stopping.is_set() or f"{kind}: {error!r}")
                continue
            right = found == status or (self.is_stopping.is_set() and found == 0)
            self._note(kind, right or f"{kind}: {found}")

    def leaver(self) -> None:
        """Send a request and leave before its answer."""
        image = {"name": "image", "shape": [32, 8, 8, 1], "datatype": "INT8", "data": [1] * 2048}
        body = json.dumps({"inputs": [image]}).encode()
        while not self._stop.is_set():
            with (
                suppress(OSError),
                socket.create_connection(("127.0.0.1", self._served.http_port)) as raw,
            ):
                raw.sendall(head(len(body)) + body)
                self._note("left", True)
            time.sleep(0.02)

    def _note(self, kind: str, is_right: bool | str) -> None:
        self.counts[kind] += 1
        if is_right is not True:
            self.wrong.append(is_right if isinstance(is_right, str) else kind)

    def stop(self) -> None:
        self._stop.set()


def sent(port: int, content: bytes) -> int:
    """Return the status of the answer to some bytes; 0 if the connection ends without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(content)
        answer = raw.recv(65536)
    return int(answer.split(b" ")[1]) if answer else 0


def resident(served: Served) -> int:
    process = psutil.Process(served.process.pid)
    return int(process.memory_info().rss)


@pytest.mark.timeout(300 + 2 * SECONDS)
@pytest.mark.parametrize("engine", ["embedded", "ray"])
def test_all_kinds_of_clients_at_once(engine: str, tmp_path: Path) -> None:
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("tested by make test-scale-serve-ray")
    expected = answers_one_by_one(PICTURES)
    words = [*WORDS, *(["--replicas", "2"] if engine == "ray" else [])]
    with Served(words, tmp_path / "log") as served, ThreadPoolExecutor(20) as pool:
        served.wait_until_ready()
        load = Load(served, expected)
        ways = ["json", "binary", "grpc", "grpc"]
        clients: list[Callable[[], None]] = [load.leaver]
        clients += [lambda w=way, s=seed: load.good(w, s) for seed, way in enumerate(ways)]
        clients += [lambda k=kind: load.bad(k) for kind in BAD]
        running = [pool.submit(client) for client in clients]
        try:
            time.sleep(SECONDS / 2)
            memory = resident(served)
            if engine == "ray":
                load.has_ended.set()
                kill(served.wait_until(served.replicas)[0])
            time.sleep(SECONDS / 2)
            assert resident(served) < 1.25 * memory + 20e6
            load.has_ended.set()
            load.is_stopping.set()
            served.stop()  # while they ask
            assert served.end() == 0
        finally:
            load.stop()
        for one in running:
            one.result(60)
    assert load.wrong == []
    assert all(load.counts[kind] for kind in [*ways, *BAD, "left"]), load.counts
    print(load.counts)
