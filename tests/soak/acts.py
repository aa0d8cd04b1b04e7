"""What users do to interpreters, and what may go wrong meanwhile.

An act leaves the interpreter allocated for the shape of the file, or raises: ``AssertionError`` for
a wrong answer, anything else for what should not have been raised.
"""

from __future__ import annotations

import _imp
import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest

from delegraph import FailurePolicy, Interpreter, Limits
from delegraph.errors import CallCancelledError, DelegateError, StateError, TimeLimitError
from delegraph.plugins.plugin_set import installed
from soak.failures import PHASES, Failing
from soak.subjects import Subject

DELEGATES = ("numba_cpu", "sin", "add_sub")
"""Delegates that are put on and off, as far as they are installed."""

CHILD_SECONDS = 60

_LOW = np.zeros(1, np.int32)
"""From here the counting model counts for hours."""


@dataclass
class Owned:
    """A subject with an interpreter that belongs to one thread.

    Attributes:
        subject: the model.
        chance: of everything random.
        interpreter: allocated.
    """

    subject: Subject
    chance: Random
    interpreter: Interpreter = field(init=False)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Create a new interpreter, with two threads for delegates."""
        self.interpreter = self.subject.open(num_threads=2)
        self.interpreter.allocate_tensors()

    def check(self) -> None:
        """Invoke and check the outputs; see :meth:`Subject.check`."""
        self.subject.check(self.interpreter, self.chance)


Act = Callable[[Owned], None]


def available_delegates() -> list[str]:
    """Return the delegates that the acts apply and remove."""
    offered = {offer.spec.name for offer in installed().offers()}
    return [name for name in DELEGATES if name in offered]


def invoke(owned: Owned) -> None:
    """Invoke a few times."""
    for _ in range(5):
        owned.check()


def resize(owned: Owned) -> None:
    """Resize the input, invoke, and resize it back."""
    if not owned.subject.resizable:
        return
    interpreter = owned.interpreter
    detail = interpreter.get_input_details()[0]
    batch = owned.chance.choice([2, 3, 7, 16])
    interpreter.resize_tensor_input(detail["index"], [batch])
    interpreter.allocate_tensors()
    owned.subject.check(interpreter, owned.chance, batch)
    interpreter.resize_tensor_input(detail["index"], detail["shape"])
    interpreter.allocate_tensors()
    owned.check()


def delegate(owned: Owned) -> None:
    """Apply a delegate."""
    owned.interpreter.modify_graph_with_delegate(owned.chance.choice(available_delegates()))
    owned.check()


def no_delegate(owned: Owned) -> None:
    """Remove all delegates."""
    owned.interpreter.remove_all_delegates()
    owned.check()


def renew(owned: Owned) -> None:
    """Close the interpreter and open another."""
    owned.interpreter.close()
    owned.renew()
    owned.check()


def failing_delegate(owned: Owned) -> None:
    """Apply a delegate that raises in some phase; the graph must stay unchanged."""
    phase = owned.chance.choice(PHASES)
    interpreter = owned.subject.open()
    interpreter.allocate_tensors()
    with pytest.raises(DelegateError, match="failing-at"):
        _use(interpreter, Failing(phase), owned)
    if phase == "eval":
        interpreter.remove_all_delegates()
    interpreter.allocate_tensors()
    owned.subject.check(interpreter, owned.chance)
    interpreter.close()


def _use(interpreter: Interpreter, delegate: Failing, owned: Owned) -> None:
    interpreter.modify_graph_with_delegate(delegate)
    owned.subject.check(interpreter, owned.chance)


def fallback(owned: Owned) -> None:
    """Let a delegate fail, so that Delegraph's kernels replace it."""
    with owned.subject.open(
        Failing("eval"), failures=FailurePolicy(on_failure="fallback")
    ) as interpreter:
        interpreter.allocate_tensors()
        owned.subject.check(interpreter, owned.chance)
        assert interpreter.incidents


def endless(owned: Owned) -> None:
    """Stop a model that would run for hours, by a time limit or from another thread."""
    if owned.subject.name != "counting":
        return
    name = owned.chance.choice([*available_delegates(), ""])
    by_limit = owned.chance.random() < 0.5
    limits = Limits(time=0.5 if by_limit else None)
    with (
        contextlib.suppress(TimeLimitError),  # of another call: on a busy machine all take long
        owned.subject.open(*([name] if name else []), limits=limits) as interpreter,
    ):
        interpreter.allocate_tensors()
        _count_for_ever(interpreter, by_limit)
        owned.subject.check(interpreter, owned.chance)


def _count_for_ever(interpreter: Interpreter, by_limit: bool) -> None:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], _LOW)
    done = threading.Event()
    canceller = threading.Thread(target=_cancel_until, args=(interpreter, done))
    if not by_limit:
        canceller.start()
    try:
        interpreter.invoke()
    except (TimeLimitError, CallCancelledError):
        return
    finally:
        done.set()
        if not by_limit:
            canceller.join()
    raise AssertionError("a model that counts for hours came to an end")


def _cancel_until(interpreter: Interpreter, done: threading.Event) -> None:
    """Cancel repeatedly, because a cancel before a call begins has no effect."""
    while not done.wait(0.05):
        interpreter.cancel()


def two_threads(owned: Owned) -> None:
    """Use the interpreter from a second thread at the same time."""
    owned.check()  # without inputs, a model may count for hours from whatever memory holds
    errors: list[BaseException] = []

    def intrude() -> None:
        for _ in range(20):
            try:
                owned.interpreter.invoke()
            except StateError:
                pass
            except BaseException as error:  # noqa: BLE001 - raised below
                errors.append(error)

    thread = threading.Thread(target=intrude)
    thread.start()
    for _ in range(20):
        with contextlib.suppress(StateError):
            owned.interpreter.invoke()
    thread.join()
    if errors:
        raise errors[0]
    owned.check()


def fork(owned: Owned) -> None:
    """Fork; the child invokes and reports whether its answer is right."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            faulthandler.register(signal.SIGALRM, chain=True)  # says where, and ends the child
            signal.alarm(CHILD_SECONDS)
            owned.check()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise AssertionError(f"a forked child ended with status {status}, expected 0")
    owned.check()


def interrupt(owned: Owned) -> None:
    """Send Ctrl-C at a random moment of an act; only in the main thread."""
    act = owned.chance.choice([invoke, resize, delegate, no_delegate, renew])
    moment = owned.chance.random() * 0.01
    sender = threading.Thread(target=_send_interrupt, args=(moment,))
    before = swallowed.count
    pressed = False
    try:
        sender.start()
        act(owned)
        while sender.is_alive():
            owned.check()
        time.sleep(0.1)
    except KeyboardInterrupt:
        pressed = True
    sender.join()
    assert pressed or swallowed.count > before, "SIGINT raised no KeyboardInterrupt"
    _after_interrupt(owned)


class Swallowed:
    """Counts the interrupts that Python swallows because a finalizer was running.

    Attributes:
        count: how many.
    """

    def __init__(self) -> None:
        self.count = 0
        self._before = sys.unraisablehook

    def __call__(self, unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self.count += 1
        else:
            self._before(unraisable)


swallowed = Swallowed()


def _send_interrupt(moment: float) -> None:
    time.sleep(moment)
    os.kill(os.getpid(), signal.SIGINT)


def _after_interrupt(owned: Owned) -> None:
    """Check that the interpreter works; replace one that was being opened or closed."""
    with contextlib.suppress(RuntimeError):  # mostly this thread does not hold it
        _imp.release_lock()  # Python keeps it if the signal arrived while importlib took it
    try:
        owned.interpreter.get_input_details()
    except StateError:
        owned.renew()
    subject, interpreter = owned.subject, owned.interpreter
    detail = interpreter.get_input_details()[0]
    interpreter.resize_tensor_input(detail["index"], subject.inputs[0].shape)
    interpreter.allocate_tensors()
    for _ in range(3):
        owned.check()


IN_THREADS: dict[Act, int] = {
    invoke: 12,
    resize: 3,
    delegate: 3,
    no_delegate: 2,
    renew: 2,
    failing_delegate: 3,
    fallback: 1,
    endless: 1,
    two_threads: 1,
}
"""Acts of every thread, and how often each is chosen beside the others."""

IN_MAIN: dict[Act, int] = {interrupt: 6, fork: 1, invoke: 3}
"""Acts of the main thread, which alone hears of signals."""
