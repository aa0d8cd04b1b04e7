"""What a process of the sweep leaves behind of an error that ends it."""

from __future__ import annotations

import signal
from typing import Any, BinaryIO

from delegraph.processes import messages
from delegraph.runtime.delegates.failure_memory import FailureMemory
from delegraph.testing.sweep import last_words
from delegraph.testing.sweep.workers import Limits, Worker


def test_an_error_names_its_innermost_place() -> None:
    try:
        last_words.innermost(3)  # type: ignore[arg-type]
    except TypeError as error:
        words = last_words.of_error(error).decode()
    assert last_words.error(words).startswith("TypeError: expected string")
    assert last_words.innermost(words) == "sweep/last_words.innermost"


def test_code_of_a_delegates_author_is_named_with_its_line() -> None:
    words = f'''  File "{last_words.__file__}", line 3 in innermost
  File "{__file__}", line 7 in run'''
    assert last_words.innermost(words) == "sweep/last_words.innermost"
    found = last_words.innermost(words.partition("\n")[2])
    assert found.endswith("test_last_words.py:7 in run")


def test_a_worker_keeps_no_failures_of_default_delegates() -> None:
    def work(_: Worker, requests: BinaryIO, answers: BinaryIO) -> None:
        messages.write(answers, FailureMemory.is_kept)

    worker = Worker(work, Limits(10, 1 << 30))
    try:
        assert messages.read(worker.child.answers) is False
    finally:
        worker.close()
    assert FailureMemory.is_kept


def test_a_worker_that_ends_by_an_error_says_which() -> None:
    def work(*_: Any) -> None:
        raise MemoryError("too little")

    worker = Worker(work, Limits(1, 1 << 30))
    try:
        worker.child.wait(30)
        fault = worker.cause_of_death(late=False)
    finally:
        worker.close()
    assert fault.detail == "the process ended with exit code 1: MemoryError: too little"


def test_a_signal_leaves_no_error() -> None:
    assert not last_words.error(f"Fatal Python error: {signal.SIGSEGV.name}")
