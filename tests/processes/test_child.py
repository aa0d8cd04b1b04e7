"""Child processes that call one function."""

from __future__ import annotations

import sys

import pytest

from delegraph.processes.child import start


def test_a_function_is_called_and_its_result_is_the_exit_code() -> None:
    child = start("support.worker_object:serve_badly", 7, keeps_errors=True)
    assert child.wait() == 7
    assert child.last_line() == "all is lost"
    child.close()
    assert child.status == 7


def test_one_that_still_runs_has_no_status() -> None:
    child = start("time:sleep", 1000)
    assert child.status is child.wait(0.01) is None
    child.close()
    assert child.status == (1 if sys.platform == "win32" else -9)


def test_what_it_owns_is_closed_once_and_it_has_time_to_end() -> None:
    class End:
        count = 0

        def close(self) -> None:
            self.count += 1

    end = End()
    child = start("support.worker_object:serve_badly", 5, owned=[end], patience=60)
    child.close()
    child.close()
    assert (end.count, child.status) == (1, 5)


def test_a_function_that_is_not_there_ends_it_in_words() -> None:
    child = start("support.worker_object:nothing", keeps_errors=True)
    assert child.wait() == 1
    assert "has no attribute 'nothing'" in child.last_line()
    child.close()


def test_no_python_is_an_error_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", sys.executable + "-which-is-not-there")
    with pytest.raises(OSError, match="which-is-not-there"):
        start("time:sleep", 0, piped=True)
