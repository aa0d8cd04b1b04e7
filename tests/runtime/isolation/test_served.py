"""Whichever way the host ends, nothing of its isolated delegates is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.isolated import Watched

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches processes by Linux's ways")

HOST = """\
import os, signal, sys
from support.by_name import Y, run, sines
from support.isolated import interpreter_with, isolated, pid_of

def host():
    delegate = isolated({options})
    interpreter = interpreter_with(delegate)
    {before}
    print(pid_of(delegate), flush=True)
    sys.stdin.readline()
    {end}

host()
"""


@contextmanager
def host(
    end: str = "pass", *, before: str = "run(interpreter)", options: str = ""
) -> Iterator[tuple[subprocess.Popen[str], Watched]]:
    """Give a host, and the process of its delegate; a line of input lets it reach its *end*."""
    program = HOST.format(end=end, before=before, options=options)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            pytest.fail(process.communicate()[1])
        with Watched(int(line)) as child:
            yield process, child
        process.kill()


@pytest.mark.repetition(3)
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("pass", 0),
        ("sys.exit(5)", 5),
        ("os._exit(6)", 6),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("interpreter.close()", 0),
        ("raise SystemError('bad')", 1),
    ],
)
def test_a_host_that_ends_takes_the_process_along(end: str, status: int) -> None:
    with host(end) as (process, child):
        _, said = process.communicate("\n")
        assert process.returncode == status
        assert child.ends()
        assert said == "" or "SystemError: bad" in said  # no warning of what was left


def test_a_host_that_is_killed_takes_a_waiting_process_along() -> None:
    with host() as (process, child):
        process.kill()
        assert child.ends()


def test_a_host_that_is_killed_takes_a_process_along_that_holds_pythons_lock(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal"
    os.mkfifo(journal)
    options = f"at='eval', how='hang', journal={str(journal)!r}"
    with host("run(interpreter)", before="pass", options=options) as (process, child):
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        journal.read_text()  # the kernel has begun
        process.kill()
        assert child.ends()


FORKED = """\
warnings.simplefilter("ignore", DeprecationWarning)  # of threads
    if os.fork() == 0:
        found = run(interpreter)
        errors = [incident.error for incident in interpreter.incidents]
        os._exit(0 if (abs(found - Y) < 1e-6).all() and "fork" in errors[0] else 1)
    status = os.waitstatus_to_exitcode(os.wait()[1])
    run(interpreter)
    sys.exit(status if not interpreter.incidents else 2)
"""


def test_a_fork_of_the_host_computes_by_itself_and_leaves_the_process_alone() -> None:
    with host("import warnings; " + FORKED) as (process, child):
        _, said = process.communicate("\n")
        assert process.returncode == 0, said
        assert child.ends()


def test_a_fork_of_the_host_does_not_keep_the_process_alive() -> None:
    fork = "import time, warnings; warnings.simplefilter('ignore'); pid = os.fork(); "
    fork += "pid and print(pid, flush=True); time.sleep(60)"
    with host(fork) as (process, child):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        forked = int(process.stdout.readline())
        process.kill()
        assert child.ends()
        os.kill(forked, signal.SIGKILL)
