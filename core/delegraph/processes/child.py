"""A child process from start to end; it ends when its parent ends."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any, BinaryIO, Protocol

from delegraph.processes import parent
from delegraph.processes.parent import die_with_parent

_LINES_KEPT = 100
"""Number of lines kept from the end of standard error, the last of which may be blank."""

_LAST_WORDS = 1.0
"""Seconds to wait for the rest of standard error, which a grandchild may keep open."""


class Closeable(Protocol):
    """End of a pipe or socket; closing it tells the child to end."""

    def close(self) -> object:
        """Close the resource."""


class _Process(Protocol):
    """The methods of ``subprocess.Popen`` and :class:`_Fork` that :class:`Child` uses."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


class Child:
    """A running child process, made by :func:`start` or :func:`fork`.

    Attributes:
        pid: identifier of the process, which leads a session, so that Ctrl-C does not reach it.
        requests: stream to which the parent writes requests.
        answers: stream from which the parent reads answers; its reader closes it.
    """

    requests: BinaryIO
    answers: BinaryIO

    def __init__(
        self, process: _Process, life: int, owned: Sequence[Closeable], patience: float = 0.0
    ) -> None:
        self.pid = process.pid
        self._process = process
        self._errors: deque[bytes] = deque(maxlen=_LINES_KEPT)
        self._listener: threading.Thread | None = None
        self.close = weakref.finalize(self, _close, process, life, owned, patience, os.getpid())
        """Function that ends the process and its children, at exit at the latest."""
        _children.add(self)

    @property
    def status(self) -> int | None:
        """Exit status, negative for a signal; None while the process runs."""
        return self._process.poll()

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait for the end; return the exit status, or None if it still runs after *seconds*."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def send(self, request: Any) -> None:
        """Send a pickled request, which is safe, because the child may trust its parent.

        Raises:
            OSError: the process has ended.
        """
        pickle.dump(request, _WholeWrites(self.requests))

    def send_signal(self, number: int) -> None:
        """Send signal *number* to the process, but not to its child processes."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process and its child processes; call :meth:`close` afterwards."""
        if self.close.alive:
            _kill_tree(self._process)

    def listen(self, stream: IO[bytes]) -> None:
        """Collect the process's standard error, read from *stream*, in a thread."""
        self._listener = threading.Thread(target=_keep, args=(stream, self._errors), daemon=True)
        self._listener.start()

    def last_line(self) -> str:
        """Return the last non-blank line of standard error, once the process has ended; or ""."""
        if self._listener is not None:
            self._listener.join(_LAST_WORDS)
        lines = (line.decode(errors="replace").strip() for line in reversed(list(self._errors)))
        return next(filter(None, lines), "")


class _WholeWrites:
    """Unbuffered stream whose ``write`` writes all bytes, even if the system call writes fewer."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, content: Any) -> None:
        view = memoryview(content).cast("B")
        while view:
            view = view[self._stream.write(view) :]


def _keep(stream: IO[bytes], lines: deque[bytes]) -> None:
    with stream:
        lines.extend(stream)


def start(
    function: str,
    *arguments: Any,
    files: Sequence[int] = (),
    owned: Sequence[Closeable] = (),
    patience: float = 0.0,
    piped: bool = False,
    keeps_errors: bool = False,
    cwd: str | os.PathLike[str] | None = None,
) -> Child:
    """Start a new Python process that calls a function, with this process's ``sys.path``.

    Args:
        function: ``module:function``; when it returns, the process ends.
        arguments: arguments of the function, which JSON must be able to hold.
        files: descriptors that the process inherits (not on Windows).
        owned: pipe ends or sockets whose closing tells the process to end.
        patience: seconds from that closing until the process is killed.
        piped: whether the process has streams of requests and answers; see
            :func:`delegraph.processes.parent.pipes`.
        keeps_errors: whether its standard error is captured; otherwise it goes to this process's
            standard error.
        cwd: working folder of the process; None means this process's working folder.

    Raises:
        OSError: the process cannot be started.
    """
    its_life, life = os.pipe()
    its_input, its_output = subprocess.DEVNULL, subprocess.DEVNULL
    streams: list[BinaryIO] = []
    opened = [its_life]
    if piped:
        its_input, its_output, streams = _pipes()
        opened += [its_input, its_output]
    name, options = _inherited(its_life)
    try:
        process = subprocess.Popen(
            [
                *(sys.executable, parent.__file__, name),
                *(function, json.dumps(arguments), *map(str, sys.path)),
            ],
            stdin=its_input,
            stdout=its_output,
            stderr=subprocess.PIPE if keeps_errors else None,
            cwd=cwd,
            start_new_session=True,
            pass_fds=(*files, *options.pop("pass_fds", ())),
            **options,
        )
    except BaseException:
        for stream in streams:
            stream.close()
        os.close(life)
        raise
    finally:
        for descriptor in opened:
            os.close(descriptor)
    child = Child(process, life, [*owned, *streams[:1]], patience)
    if streams:
        child.requests, child.answers = streams
    if process.stderr is not None:
        child.listen(process.stderr)
    return child


def _pipes() -> tuple[int, int, list[BinaryIO]]:
    """Return descriptors of the child's input and output, and streams of the parent's ends."""
    (its_input, requests), (answers, its_output) = os.pipe(), os.pipe()
    # Unbuffered: a fork of this process would write buffered data a second time.
    streams: list[Any] = [open(requests, "wb", buffering=0), open(answers, "rb", buffering=0)]  # noqa: SIM115 - the child's
    return its_input, its_output, streams


def _inherited(life: int) -> tuple[str, dict[str, Any]]:
    """Return text that names the descriptor *life*, and ``Popen`` options for inheriting it."""
    if sys.platform != "win32":
        return str(life), {"pass_fds": (life,)}
    import msvcrt

    handle = msvcrt.get_osfhandle(life)
    os.set_handle_inheritable(handle, True)
    startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]})
    return str(handle), {"startupinfo": startup}


class _Fork:
    """A forked copy of this process, with the methods of ``subprocess.Popen``."""

    def __init__(self, run: Callable[[], object]) -> None:
        import multiprocessing  # only forks need it

        context: Any = multiprocessing.get_context("fork")
        self._process = context.Process(target=run, daemon=True)
        with warnings.catch_warnings():
            # Python 3.12 warns if there are other threads, whose locks may be held. If the fork
            # hangs for that reason, it is killed after its time limit.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        status: int | None = self._process.exitcode
        return status

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired([], timeout or 0.0)
        return status

    def kill(self) -> None:
        self._process.kill()


def can_fork() -> bool:
    """Whether this system can fork a process; only Windows cannot."""
    return hasattr(os, "fork")


def fork(run: Callable[[BinaryIO, BinaryIO], object]) -> Child:
    """Start a fork of this process that calls *run* with streams of requests and answers.

    Use this function only for objects that cannot be sent to another process, such as a delegate:
    locks that other threads hold stay locked in the fork.
    """
    its_life, life = os.pipe()
    its_input, its_output, streams = _pipes()

    def begin() -> None:
        os.setsid()
        os.close(life)
        for stream in streams:
            stream.close()
        die_with_parent(its_life)
        with open(its_input, "rb") as requests, open(its_output, "wb") as answers:
            run(requests, answers)

    process = _Fork(begin)
    for descriptor in (its_life, its_input, its_output):
        os.close(descriptor)
    child = Child(process, life, streams[:1])
    child.requests, child.answers = streams
    return child


def ready(streams: Sequence[BinaryIO], seconds: float) -> Sequence[BinaryIO]:
    """Return the streams that have data to read or are at their end.

    Args:
        streams: unbuffered streams of requests or answers.
        seconds: longest time to wait for a ready stream.
    """
    from multiprocessing import connection

    found: Any = connection.wait(streams, seconds)  # type: ignore[arg-type]  # has fileno()
    return list(found)


# -- ending ----------------------------------------------------------------------------------------


def _close(
    process: _Process, life: int, owned: Sequence[Closeable], patience: float, starter: int
) -> None:
    """Kill *process* and close its streams; in a fork of the starter, only close the streams.

    Args:
        process: the child.
        life: descriptor whose closing tells the child to end.
        owned: pipe ends or sockets that are closed first, which tells the process to end.
        patience: seconds that the process has before it is killed.
        starter: identifier of the process that started the child.
    """
    for end in owned:
        with suppress(OSError):
            end.close()
    if os.getpid() == starter:
        if patience:
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)
        _kill_tree(process)
        process.wait()
    os.close(life)


def _kill_tree(process: _Process) -> None:
    """Kill a process and its child processes."""
    if sys.platform == "win32":
        command = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        subprocess.run(command, capture_output=True, check=False)
    else:
        with suppress(ProcessLookupError, PermissionError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


_children: weakref.WeakSet[Child] = weakref.WeakSet()


def _close_in_fork() -> None:
    """Close the pipes that keep the parent's children alive; called in a fork."""
    for child in list(_children):
        child.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_fork)
