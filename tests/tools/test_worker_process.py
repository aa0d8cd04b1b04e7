"""The process of the probes: it answers, and whatever ends it is told."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from delegraph.errors import ArgumentError, DelegateError, DelegraphError
from delegraph.tools.worker_process import Death, WorkerProcess
from support.probe_worker import ProbeWorker

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals as POSIX has them")


@pytest.fixture(params=["started", "forked"])
def process(request: pytest.FixtureRequest) -> Iterator[WorkerProcess]:
    can_be_sent = request.param == "started"
    with WorkerProcess(ProbeWorker, "hello", can_be_sent=can_be_sent, time_limit=60) as found:
        yield found


def test_it_serves_as_long_as_it_lives_whatever_is_printed(process: WorkerProcess) -> None:
    assert not process.is_alive
    assert process.ask("say", "you") == "hello you 1"
    assert process.ask("say", "again") == "hello again 2"
    assert process.ask("process") == process.ask("process") != os.getpid()


def test_errors_are_raised_as_they_were(process: WorkerProcess) -> None:
    with pytest.raises(ArgumentError, match="no such thing"):
        process.ask("refuse")
    with pytest.raises(DelegateError, match="broken") as caught:
        process.ask("fail")
    assert (caught.value.delegate, caught.value.node_index) == ("npu", 3)
    with pytest.raises(DelegraphError, match="KeyError: 'nothing'"):
        process.ask("stumble")
    assert process.ask("say", "on") == "hello on 1"


def test_a_crash_names_the_signal_and_the_next_question_starts_anew(process: WorkerProcess) -> None:
    assert process.ask("say", "you") == "hello you 1"
    death = process.ask("crash")
    assert isinstance(death, Death)
    assert not death.is_hung
    assert death.text.startswith("the process was ended by SIGSEGV (")
    assert not process.is_alive
    assert process.ask("say", "anew") == "hello anew 1"


def test_a_process_that_leaves_tells_its_status(process: WorkerProcess) -> None:
    assert process.ask("leave") == Death(False, "the process ended with status 3")


@pytest.mark.parametrize("can_be_sent", [True, False])
def test_what_hangs_is_killed(can_be_sent: bool) -> None:
    with WorkerProcess(ProbeWorker, "", can_be_sent=can_be_sent, time_limit=0.5) as process:
        process.ask("process")
        assert process.ask("hang") == Death(True, "no answer after 0.5 s")


def test_without_fork_an_object_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    with pytest.raises(ArgumentError, match="cannot be sent to another process on this system"):
        WorkerProcess(ProbeWorker, "", can_be_sent=False, time_limit=1)
