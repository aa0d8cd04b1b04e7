import threading

import numpy as np  # noqa: F401 - brings the BLAS
from threadpoolctl import threadpool_info, threadpool_limits

from delegraph.runtime.threads import BlasThreads


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
