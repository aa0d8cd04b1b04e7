from __future__ import annotations

import signal

import pytest

from delegraph.locks import Lock

ROUNDS = 50


class Interrupted(Exception):
    """Raised by the signal's handler."""


def interrupt(*_: object) -> None:
    raise Interrupted


def _take_it_until_a_signal(lock: Lock) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    while True:
        with lock:
            pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="only POSIX has timers that signal")
def test_an_interrupt_never_leaves_it_held() -> None:
    lock = Lock()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(ROUNDS):
            with pytest.raises(Interrupted):
                _take_it_until_a_signal(lock)
            assert not lock._is_owned()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_its_owner_may_take_it_again() -> None:
    lock = Lock()
    with lock, lock:
        assert lock._is_owned()
    assert not lock._is_owned()
