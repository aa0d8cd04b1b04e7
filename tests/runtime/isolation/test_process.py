"""A process that crashes, hangs or is killed costs its delegate, never the host or a result."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Delegate, FailurePolicy, Limits
from delegraph.errors import CallCancelledError, DelegateError, DelegateNodeError, TimeLimitError
from delegraph.native import LiteRtInterpreter, compiled_model
from delegraph.runtime.isolation import process
from support.by_name import X, Y, run, sines
from support.isolated import Watched, interpreter_with, isolated, pid_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches processes by Linux's ways")

ENDINGS = {
    "abort": "ended with SIGABRT",
    "fault": "ended with SIGSEGV",
    "exit": "ended with exit code 3",
    "hang": r"gave no answer in [\d.]+ s and was ended",
}


def assert_right(interpreter: Any) -> None:
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


@pytest.mark.parametrize("how", ["abort", "hang"])
def test_an_import_that_goes_wrong(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "hang":
        monkeypatch.setattr(process, "START_TIMEOUT", 1.0)
    with interpreter_with(isolated(at="load", how=how)) as interpreter:
        assert_right(interpreter)
        (incident,) = interpreter.incidents
        assert incident.phase == "initialize"
        assert "while it was importing the delegate" in incident.error
        assert all(node.delegate is None for node in interpreter.placement.nodes)


def failing(monkeypatch: pytest.MonkeyPatch, at: str, how: str) -> Delegate:
    """Return a delegate that goes wrong in one phase; a hang is noticed soon."""
    if how == "hang":
        monkeypatch.setattr(process, "START_TIMEOUT", 1.0)
    return isolated(0.5, at=at, how=how, dynamic=True)


@pytest.mark.repetition(3)
@pytest.mark.parametrize("how", ENDINGS)
@pytest.mark.parametrize(
    ("at", "doing"),
    [
        ("claim", "was asked about nodes"),
        ("init", "took a partition"),
        ("prepare", "prepared a partition"),
        ("eval", "computed a partition"),
    ],
)
def test_a_phase_that_goes_wrong(
    at: str, doing: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with interpreter_with(failing(monkeypatch, at, how)) as interpreter:
        assert_right(interpreter)
        (incident,) = interpreter.incidents
        assert incident.phase == at
        assert f"while it {doing}" in incident.error
        assert re.search(ENDINGS[how], incident.error)


def test_a_killed_process_is_replaced() -> None:
    delegate = isolated()
    with interpreter_with(delegate) as interpreter:
        assert_right(interpreter)
        first = pid_of(delegate)
        os.kill(first, signal.SIGKILL)
        for _ in range(3):
            interpreter.invoke()
            np.testing.assert_allclose(interpreter.get_tensor(result(interpreter)), Y, rtol=1e-6)
        (incident,) = interpreter.incidents
        assert incident.count == 1
        assert "ended with SIGKILL while it computed a partition" in incident.error
        assert pid_of(delegate) != first


def result(interpreter: Any) -> int:
    index: int = interpreter.get_output_details()[0]["index"]
    return index


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A journal that is waited for: whoever reads it hears when a kernel has begun."""
    os.mkfifo(tmp_path / "journal")
    return tmp_path / "journal"


def once_begun(fifo: Path, do: Any) -> threading.Thread:
    """Call *do* with the process of a kernel that has begun."""

    def wait() -> None:
        with fifo.open() as journal:
            do(int(journal.readline()))

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_process_killed_in_the_middle_of_an_invoke(fifo: Path) -> None:
    delegate = isolated(at="eval", how="wait", journal=str(fifo))
    with interpreter_with(delegate) as interpreter:
        killer = once_begun(fifo, lambda pid: os.kill(pid, signal.SIGKILL))
        assert_right(interpreter)
        killer.join()
        assert "ended with SIGKILL" in interpreter.incidents[0].error


def test_a_process_is_started_again_so_many_times(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    delegate = isolated(at="eval", journal=str(journal))
    with interpreter_with(delegate) as interpreter:
        for _ in range(process.RESTARTS + 4):
            assert_right(interpreter)
        pids = journal.read_text().split()
        assert len(set(pids)) == len(pids) == 1 + process.RESTARTS
        last = interpreter.incidents[-1]
        assert "lost 4 times, it is not started again" in last.error
        assert last.count == 3


def test_it_is_right_again_after_a_crash(tmp_path: Path) -> None:
    delegate = isolated(at="eval", journal=str(tmp_path / "journal"), times=1)
    with interpreter_with(delegate) as interpreter:
        assert_right(interpreter)
        lost = interpreter.incidents
        assert_right(interpreter)
        assert interpreter.incidents == lost


def test_an_exception_is_no_loss() -> None:
    delegate = isolated(at="eval", how="raise")
    with interpreter_with(delegate) as interpreter:
        pid = pid_of(delegate)
        assert_right(interpreter)
        assert interpreter.incidents[0].error == "OSError: device lost"
        assert pid_of(delegate) == pid


@pytest.mark.parametrize("how", ["abort", "hang"])
def test_kernels_that_do_not_close_hold_nobody_up(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "CLOSE_TIMEOUT", 0.5)
    delegate = isolated(at="close", how=how)
    interpreter = interpreter_with(delegate)
    assert_right(interpreter)
    with Watched(pid_of(delegate)) as child:
        interpreter.close()
        assert child.ends(0)


def test_users_may_want_the_error() -> None:
    interpreter = interpreter_with(isolated(at="eval"), failures=FailurePolicy(on_failure="raise"))
    with pytest.raises(DelegateNodeError, match="ended with SIGABRT"):
        run(interpreter)
    interpreter.close()
    with pytest.raises(DelegateError, match=r"could not be applied .* ended with SIGABRT"):
        interpreter_with(isolated(at="claim"), failures=FailurePolicy(on_failure="raise"))


def test_shadow_compares_what_the_process_computes() -> None:
    with interpreter_with(
        isolated(), failures=FailurePolicy(on_failure="shadow", shadow_share=1.0)
    ) as interpreter:
        assert_right(interpreter)
        assert interpreter.incidents == ()


def test_a_call_that_shall_stop_does_not_wait_for_the_process(fifo: Path) -> None:
    delegate = isolated(at="eval", how="wait", journal=str(fifo))
    with interpreter_with(delegate) as interpreter:
        interpreter.allocate_tensors()
        canceller = once_begun(fifo, lambda pid: interpreter.cancel())
        with pytest.raises(CallCancelledError):
            interpreter.invoke()
        canceller.join()
        assert interpreter.incidents == ()


def test_a_time_limit_does_not_wait_for_the_process() -> None:
    delegate = isolated(at="eval", how="hang")
    with interpreter_with(delegate):  # starts the process, however long that takes
        pass
    with interpreter_with(delegate, limits=Limits(time=1.0)) as interpreter:
        interpreter.allocate_tensors()
        with Watched(pid_of(delegate)) as child:
            with pytest.raises(TimeLimitError):
                interpreter.invoke()
            assert child.ends(0)
        assert interpreter.incidents == ()


@pytest.fixture
def _interrupts_are_raised() -> Iterator[None]:
    """Shells ignore them in what runs in the background, and so does Python then."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts_are_raised")
def test_an_interrupt_belongs_to_the_host(fifo: Path) -> None:
    delegate = isolated(at="eval", how="wait", journal=str(fifo))
    with interpreter_with(delegate) as interpreter:
        interpreter.allocate_tensors()
        assert os.getsid(pid_of(delegate)) != os.getsid(0)  # Ctrl-C does not reach it
        sender = once_begun(fifo, lambda pid: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            interpreter.invoke()
        sender.join()
        assert interpreter.incidents == ()
        assert delegate.process.child is None


# -- in LiteRT -------------------------------------------------------------------------------------


def litert_with(delegate: Delegate, **arguments: Any) -> LiteRtInterpreter:
    pytest.importorskip("ai_edge_litert")
    return LiteRtInterpreter(model_content=sines(), delegates=[delegate], **arguments)


@pytest.mark.repetition(2)
@pytest.mark.parametrize("how", ["abort", "hang"])
@pytest.mark.parametrize("at", ["claim", "init", "prepare", "eval"])
def test_in_litert_a_phase_that_goes_wrong(
    at: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with litert_with(failing(monkeypatch, at, how)) as interpreter:
        assert_right(interpreter)
        (incident,) = interpreter.incidents
        assert incident.phase == at
        assert re.search(ENDINGS[how], incident.error)
        is_left = {node.delegate for node in interpreter.placement.nodes} <= {None, "XNNPACK"}
        assert is_left == (at in ("claim", "init"))


def test_in_litert_a_killed_process_is_replaced() -> None:
    delegate = isolated()
    with litert_with(delegate) as interpreter:
        assert_right(interpreter)
        first = pid_of(delegate)
        os.kill(first, signal.SIGKILL)
        for _ in range(3):
            assert_right(interpreter)
        (incident,) = interpreter.incidents
        assert incident.count == 1
        assert "ended with SIGKILL" in incident.error
        assert pid_of(delegate) != first


def test_in_compiled_model_a_killed_process_is_replaced() -> None:
    pytest.importorskip("ai_edge_litert.compiled_model")
    delegate = isolated()
    with compiled_model(sines(), [delegate]) as model:
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        inputs[0].write(X)
        for is_killed in (False, True, False):
            if is_killed:
                first = pid_of(delegate)
                os.kill(first, signal.SIGKILL)
            model.run_by_index(0, inputs, outputs)
            np.testing.assert_allclose(outputs[0].read(4, np.float32), Y, rtol=1e-5)
        assert [incident.count for incident in model.incidents] == [1]
        assert "ended with SIGKILL" in model.incidents[0].error
        assert pid_of(delegate) != first


def test_in_litert_a_process_is_started_again_so_many_times(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with litert_with(isolated(at="eval", journal=str(journal))) as interpreter:
        for _ in range(process.RESTARTS + 4):
            assert_right(interpreter)
        assert len(journal.read_text().split()) == 1 + process.RESTARTS
        assert "lost 4 times, it is not started again" in interpreter.incidents[-1].error


def test_in_litert_users_may_want_the_error(tmp_path: Path) -> None:
    delegate = isolated(at="eval", journal=str(tmp_path / "journal"), times=1)
    with litert_with(delegate, failures=FailurePolicy(on_failure="raise")) as interpreter:
        with pytest.raises(DelegateError, match="ended with SIGABRT"):
            run(interpreter)
        assert_right(interpreter)
    with pytest.raises(DelegateError, match="ended with SIGABRT"):
        litert_with(isolated(at="claim"), failures=FailurePolicy(on_failure="raise"))
