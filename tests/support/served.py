"""``delegraph serve`` in a process of its own, for tests that ask it as clients do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

Value = TypeVar("Value")

PATIENCE = 120.0
"""Seconds after which something that is waited for is not going to happen."""


class Served:
    """Server process; ``with`` waits until the server is ready.

    Args:
        words: of the command line, after ``delegraph serve``.
        log: file of what it prints.
        http_port: None for a free one.
        environment: further variables of its environment.
    """

    def __init__(
        self,
        words: Sequence[str],
        log: Path,
        http_port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        free, self.grpc_port = _free_ports()
        self.http_port = free if http_port is None else http_port
        self._log = log
        ports = ["--http-port", str(self.http_port), "--grpc-port", str(self.grpc_port)]
        command = [sys.executable, "-m", "delegraph", "serve", *words, *ports]
        with log.open("w") as file:
            self.process = subprocess.Popen(
                command, stdout=file, stderr=file, env={**os.environ, **(environment or {})}
            )

    @property
    def http(self) -> str:
        """Return the host and port of REST."""
        return f"localhost:{self.http_port}"

    @property
    def grpc(self) -> str:
        """Return the host and port of gRPC."""
        return f"localhost:{self.grpc_port}"

    def status(self, path: str) -> int:
        """Return the HTTP status of a GET; 0 if no server answers."""
        try:
            with urllib.request.urlopen(f"http://{self.http}/{path}", timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0

    def text(self, path: str) -> str:
        """Return the body that a GET answers."""
        with urllib.request.urlopen(f"http://{self.http}/{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def metrics(self) -> dict[str, float]:
        """Return Prometheus's metrics by name with labels."""
        lines = [line for line in self.text("metrics").splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def wait_until(self, holds: Callable[[], Value]) -> Value:
        """Wait until *holds* is true and return its value; fail if the server ends before."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = holds()
            if found:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"it did not happen; the server says\n{self._log.read_text()}")

    def wait_until_ready(self) -> None:
        """Wait until the server answers requests."""
        self.wait_until(lambda: self.status("v2/health/ready") == 200)

    def stop(self) -> None:
        """Send the server the signal to stop."""
        self.process.send_signal(signal.SIGTERM)

    def end(self) -> int:
        """Wait for the server's end, and return its exit code."""
        return self.process.wait(PATIENCE)

    def replicas(self) -> list[int]:
        """Return the process ids of the replicas that compute."""
        import psutil

        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child.pid for child in children if _is_replica(child)]

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.stop()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def _is_replica(process: object) -> bool:
    import psutil

    assert isinstance(process, psutil.Process)
    try:
        return process.cmdline()[0].startswith("ray::ServeReplica")
    except (psutil.Error, IndexError):
        return False


def _free_ports() -> list[int]:
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind(("", 0))
        return [one.getsockname()[1], other.getsockname()[1]]


def kill(process: int) -> None:
    """Kill a process as the system does when memory runs out."""
    os.kill(process, signal.SIGKILL)
