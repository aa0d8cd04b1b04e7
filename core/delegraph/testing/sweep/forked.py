"""Work in a forked process, so that this process imports no engine and starts no threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from delegraph.processes import messages
from delegraph.processes.child import fork, ready

Result = TypeVar("Result")


def run_forked(work: Callable[[], Result], seconds: float | None = None) -> Result:
    """Return the result of *work*, run in a forked process, so that this process starts no threads.

    Args:
        work: function without arguments; its result must fit in a message.
        seconds: seconds after which the process is killed; None for no limit.

    Raises:
        DelegraphError: the error that *work* raises.
        ChildProcessError: the process ended or was killed before *work* was done.
    """
    child = fork(lambda requests, answers: messages.write(answers, _ended(work)))
    try:
        if seconds is not None and not ready([child.answers], seconds):
            raise TimeoutError
        result, error = messages.read(child.answers)
    except TimeoutError:
        error = ChildProcessError(f"not done after {seconds:g} s; a longer --timeout gives it more")
    except (EOFError, OSError):
        error = ChildProcessError("its process ended")
    finally:
        child.close()
        child.answers.close()
    if error is not None:
        raise error
    found: Result = result
    return found


def _ended(work: Callable[[], object]) -> tuple[object, Exception | None]:
    """Return the result of *work* and None, or None and the error that it raised."""
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - the parent raises it
        return None, error
