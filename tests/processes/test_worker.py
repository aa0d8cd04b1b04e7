"""A child process that is asked: it answers, and whatever ends it is told."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError, DelegateError, DelegraphError
from delegraph.processes.ending import Death
from delegraph.processes.worker import UNREADABLE, Worker
from support.isolated import Watched
from support.worker_object import Pair, Served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches processes by Linux's ways")

both = pytest.mark.parametrize("forked", [False, True], ids=["started", "forked"])


@pytest.fixture(params=[False, True], ids=["started", "forked"])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    with Worker(Served, "hello", time_limit=60, records=(Pair,), forked=request.param) as found:
        yield found


def test_it_serves_as_long_as_it_lives_whatever_is_printed(worker: Worker) -> None:
    assert not worker.is_alive
    assert worker.ask("say", "you") == "hello you 1"
    assert worker.ask("say", "again") == "hello again 2"
    assert worker.ask("process") == worker.ask("session") != os.getpid()  # no Ctrl-C reaches it


def test_errors_are_raised_as_they_were(worker: Worker) -> None:
    with pytest.raises(ArgumentError, match="no such thing"):
        worker.ask("refuse")
    with pytest.raises(DelegateError, match="broken") as caught:
        worker.ask("fail")
    assert (caught.value.delegate, caught.value.node_index) == ("npu", 3)
    with pytest.raises(DelegraphError, match="KeyError: 'nothing'"):
        worker.ask("stumble")
    with pytest.raises(DelegraphError, match="a complex cannot be sent"):
        worker.ask("give", 1j)
    assert worker.ask("say", "on") == "hello on 1"


def test_messages_come_before_the_answer(worker: Worker) -> None:
    told: list[dict[str, int]] = []
    assert worker.ask("count_to", 3, heard=told.append) == "done"
    assert told == [{"number": 0}, {"number": 1}, {"number": 2}]
    assert worker.ask("count_to", 3) == "done"


def test_warnings_of_the_process_are_logged_here(caplog: pytest.LogCaptureFixture) -> None:
    with Worker(Served, "hello", time_limit=60) as worker:
        worker.ask("warn", "100 % slow")
        assert [(each.name, each.getMessage()) for each in caplog.records] == [
            ("delegraph.served", "100 % slow")
        ]
        assert caplog.records[0].process == worker.ask("process")


def test_messages_of_threads_do_not_mix(worker: Worker) -> None:
    told: list[dict[str, Any]] = []
    assert worker.ask("tell_from_threads", 4, 200, heard=told.append) == "done"
    assert sorted(each["number"] for each in told) == sorted(list(range(200)) * 4)
    assert all((each["array"] == each["number"]).all() for each in told)


def test_large_arrays_go_both_ways(worker: Worker) -> None:
    assert worker.ask("ones", 5_000_000).array.sum() == 5_000_000
    array = np.arange(3_000_000.0).reshape(3, -1)
    np.testing.assert_array_equal(worker.ask("give", array), array)


def test_a_crash_names_the_signal_and_the_next_question_starts_anew(worker: Worker) -> None:
    assert worker.ask("say", "you") == "hello you 1"
    death = worker.ask("crash")
    assert death == Death("SIGKILL")
    assert death.text == "the process ended with SIGKILL"
    assert not worker.is_alive
    assert worker.ask("say", "anew") == "hello anew 1"
    assert worker.ask("leave") == Death("exit code 3")


@both
def test_what_hangs_is_killed(forked: bool) -> None:
    with Worker(Served, "", time_limit=0.5, forked=forked) as worker:
        worker.ask("process")
        death = worker.ask("hang")
    assert (death.text, death.is_hung) == ("no answer after 0.5 s", True)


@both
def test_what_it_has_started_is_killed_too(forked: bool) -> None:
    with Worker(Served, "", time_limit=60, forked=forked) as worker:
        with Watched(worker.ask("start_another", False)) as other:
            worker.ask("crash")
            assert other.ends()
        with Watched(worker.ask("start_another", False)) as other:
            worker.close()
            assert other.ends()


def test_a_grandchild_that_holds_the_pipe_does_not_delay_the_answer() -> None:
    pids: list[int] = []
    with Worker(Served, "", time_limit=60) as worker:
        assert worker.ask("leave_another", heard=pids.append) == Death("exit code 4")
    os.kill(pids[0], signal.SIGKILL)


def test_its_life_ends_with_its_parent_and_so_does_what_it_started() -> None:
    with Worker(Served, "", time_limit=60) as worker:
        child, grandchild = worker.ask("have_child")
        with Watched(child) as first, Watched(grandchild) as second:
            worker.ask("crash")
            assert first.ends()
            assert second.ends()


@pytest.mark.repetition(2)
@pytest.mark.parametrize(
    "what", [b"no message, however long one waits for the rest", 5, ("error", 5), (1, 2, 3)]
)
def test_what_is_no_message_ends_it(what: Any) -> None:
    with Worker(Served, "", time_limit=60) as worker:
        assert worker.ask("babble", what) == Death(UNREADABLE)
        assert worker.ask("say", "you") == " you 1"


def test_a_record_that_the_parent_does_not_expect_is_unreadable() -> None:
    with Worker(Served, "", time_limit=60) as worker:
        assert worker.ask("ones", 1) == Death(UNREADABLE)


def test_the_last_line_of_standard_error_is_kept_on_request() -> None:
    with Worker(Served, "", time_limit=60, keeps_errors=True) as worker:
        assert worker.ask("crash").last_line == "out of order"


def test_what_cannot_be_made_is_a_death() -> None:
    with Worker(Served(""), "", time_limit=60, keeps_errors=True) as worker:  # type: ignore[arg-type]  # on purpose
        death = worker.ask("process")
    assert death == Death("exit code 1", last_line="TypeError: 'Served' object is not callable")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_of_the_parent_does_not_keep_it_alive(worker: Worker) -> None:
    with Watched(worker.ask("process")) as child:
        pid = os.fork()
        if pid == 0:
            select.select([], [], [], 1000)
        worker.close()
        try:
            assert child.ends()
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@pytest.mark.parametrize("error", [KeyboardInterrupt, BrokenPipeError])
def test_what_the_listener_raises_ends_it_and_comes_through(error: type[BaseException]) -> None:
    def interrupt(_: object) -> None:
        raise error

    with Worker(Served, "", time_limit=60) as worker:
        with pytest.raises(error):
            worker.ask("count_to", 3, heard=interrupt)
        assert not worker.is_alive


def test_without_fork_an_object_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    with pytest.raises(ArgumentError, match="cannot be sent to another process on this system"):
        Worker(Served, "", forked=True, time_limit=1)


def test_objects_of_the_main_module_can_be_sent(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from delegraph.processes.worker import Worker, itself\n"
        "class Mine:\n"
        "    def name(self):\n"
        "        return __name__\n"
        "if __name__ == '__main__':\n"
        "    with Worker(itself, Mine(), time_limit=60) as worker:\n"
        "        print(worker.ask('name'))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "__mp_main__\n"
