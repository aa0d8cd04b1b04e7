import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable

import numpy as np  # noqa: F401 - brings the BLAS
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from delegraph.runtime.execution import blas_threads as module
from delegraph.runtime.execution.blas_threads import BlasThreads
from delegraph.testing import interrupted


def blas_threads() -> set[int]:
    """Threads of NumPy's BLAS; SciPy, where another test has loaded it, has one of its own."""
    found = [entry for entry in threadpool_info() if entry["user_api"] == "blas"]
    return {entry["num_threads"] for entry in found if "scipy.libs" not in entry["filepath"]}


def test_blas_uses_the_count_inside_and_what_it_had_outside() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with BlasThreads(1):
            assert blas_threads() == {1}
            with BlasThreads(2):
                assert blas_threads() == before
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_blas_threads_are_restored_when_contexts_of_two_threads_overlap() -> None:
    with threadpool_limits(2, user_api="blas"):
        first, second = BlasThreads(1), BlasThreads(1)
        first.__enter__()
        second.__enter__()
        first.__exit__()
        assert blas_threads() == {1}
        second.__exit__()
        assert blas_threads() == {2}


def test_every_thread_may_set_blas_threads() -> None:
    """Whichever was the first: threadpoolctl 3.8 leaves the say to that one."""
    other = 2 if blas_threads() == {1} else 1
    seen: list[set[int]] = []

    def run() -> None:
        with BlasThreads(other):
            seen.append(blas_threads())

    run()
    worker = threading.Thread(target=run)
    worker.start()
    worker.join()
    assert seen == [{other}, {other}]


@pytest.mark.skipif(module.openblas_of_numpy() is None, reason="NumPy has another BLAS here")
def test_the_library_of_numpys_wheel_needs_no_search() -> None:
    source = """
import sys
from delegraph.runtime.execution.blas_threads import BlasThreads
with BlasThreads(2), BlasThreads(1):
    assert "threadpoolctl" not in sys.modules
    from threadpoolctl import threadpool_info
    print(*[found["num_threads"] for found in threadpool_info()])
print(*[found["num_threads"] for found in threadpool_info()])
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "2"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("held", ["lock", "context"])
def test_a_forked_child_does_not_wait_for_threads_that_it_does_not_have(held: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with module.lock if held == "lock" else BlasThreads(1):
            entered.set()
            leave.wait()

    with threadpool_limits(2, user_api="blas"):
        holder = threading.Thread(target=hold)
        holder.start()
        entered.wait()
        status = status_of_child(lambda: blas_threads() == {2} and enter_and_leave())
        leave.set()
        holder.join()
    assert status == 0


def enter_and_leave() -> bool:
    with BlasThreads(1):
        return blas_threads() == {1}


def status_of_child(is_right: Callable[[], bool]) -> int:
    """Return how a forked child ended: 0 where *is_right*."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from Python 3.12 on, of a fork beside threads
        pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        os._exit(0 if is_right() else 1)
    return os.waitpid(pid, 0)[1]


def test_blas_threads_are_restored_by_the_next_context_after_an_interrupt() -> None:
    def call() -> None:
        with BlasThreads(1):
            pass

    with threadpool_limits(2, user_api="blas"):
        at = 0
        while interrupted(call, at, inside=["delegraph.runtime.execution.blas_threads"]):
            with BlasThreads(1):
                assert blas_threads() == {1}
            assert blas_threads() == {2}
            at += 1
        assert at > 5
