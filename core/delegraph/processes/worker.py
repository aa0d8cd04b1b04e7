"""A worker: a child process that answers requests and is restarted after its death."""

from __future__ import annotations

import logging
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO

from delegraph.errors import ArgumentError, DelegraphError
from delegraph.processes import messages
from delegraph.processes.child import Child, can_fork, fork, start
from delegraph.processes.ending import Death, how_it_ended
from delegraph.processes.parent import pipes

_LOOK = 0.5
"""Seconds between two checks whether a silent process is still running."""

_END = 10.0
"""Seconds within which a process must end after its pipe has broken."""

UNREADABLE = "an answer that cannot be read"
"""Text for a process that was ended because it sent something other than a message."""


class Worker:
    """A process that creates an object and answers calls of the object's methods.

    Warnings that a started process logs are logged in this process, by loggers of the same names.

    Attributes:
        argument: argument with which the object is created.
        time_limit: seconds that an answer may take; None for no limit.

    Args:
        make: module-level function that creates the object in the process. If it or *argument* is
            from the main module, the process imports that module under another name than
            ``__main__``.
        argument: argument of *make*.
        time_limit: seconds that an answer may take; None for no limit.
        records: classes that answers may hold, see :func:`~delegraph.processes.messages.read`.
        forked: whether the process is a fork of this process, for an *argument* that cannot be
            pickled.
        keeps_errors: whether the last line of standard error is captured for :class:`Death`.

    Raises:
        ArgumentError: the system cannot fork.
    """

    def __init__(
        self,
        make: Callable[[Any], Any],
        argument: Any,
        *,
        time_limit: float | None,
        records: Sequence[type] = (),
        forked: bool = False,
        keeps_errors: bool = False,
    ) -> None:
        if forked and not can_fork():
            raise ArgumentError(
                "a delegate that is an object cannot be sent to another process on this system; "
                "name an installed delegate, or a file by delegate_files"
            )
        self._make = make
        self.argument = argument
        self.time_limit = time_limit
        self._records = records
        self._forked, self._keeps_errors = forked, keeps_errors
        self._line: Line | None = None
        self._is_killed = False

    @property
    def is_alive(self) -> bool:
        """Whether a process is running; :meth:`ask` starts one if not."""
        return self._line is not None and self._line.child.close.alive  # False in a forked process

    def ask(
        self,
        method: str,
        *arguments: Any,
        patiently: bool = False,
        heard: Callable[[Any], object] = bool,
    ) -> Any:
        """Return the result of a method of the object, or a :class:`Death`.

        Args:
            method: name of the method.
            arguments: arguments of the method; they are pickled.
            patiently: whether there is no time limit for the answer.
            heard: function that is called with each message that the method sends by :func:`tell`.

        Raises:
            DelegraphError: the method's error; other kinds of errors become a DelegraphError with
                the same text.
            OSError: no process can be started.
        """
        line = self._line if self._line and self.is_alive else self._started()
        self._line = line
        hung = threading.Event()

        def end() -> None:
            hung.set()
            line.child.kill()

        timer = self.timer(end)
        try:
            if self._is_killed:  # another thread has killed it after this call began
                line.child.kill()
            line.await_start()  # this time does not count for the time limit
            if not patiently and self.time_limit is not None:
                timer.start()
            line.send(method, *arguments)
            kind, answer = line.receive()
            while kind in ("told", "logged"):
                (_log if kind == "logged" else heard)(answer)
                kind, answer = line.receive()
        except LostError as error:
            return self._death(hung.is_set(), error.is_unreadable)
        except BaseException:  # interrupted: a later call must not receive this answer
            self.close()
            raise
        finally:
            timer.cancel()
        if kind == "error":
            raise answer
        return answer

    def timer(self, end: Callable[[], object]) -> threading.Timer:
        """Return a timer, not yet started, that calls *end* after the time limit.

        *end* is the function that kills the process.
        """
        found = threading.Timer(self.time_limit or 0.0, end)
        found.daemon = True
        return found

    def _started(self) -> Line:
        if self._forked:
            make, argument = self._make, self.argument
            child = fork(lambda requests, answers: serve(make(argument), requests, answers))
            return Line(child, self._records)
        content = pickle.dumps((self._make, self.argument))
        request = _main_module() if b"__main__" in content else {}, content
        child = start(f"{__name__}:serve_parent", piped=True, keeps_errors=self._keeps_errors)
        with suppress(OSError):  # if the process has ended, asking it fails
            child.send(request)
        return Line(child, self._records)

    def _death(self, is_hung: bool, is_unreadable: bool) -> Death:
        line, self._line = self._line, None
        assert line is not None
        if is_hung:
            line.child.close()
            return Death(f"no answer after {self.time_limit:g} s", is_hung=True)
        return line.death(is_unreadable)

    def kill(self) -> None:
        """Kill the process for good, from another thread; later requests return a Death."""
        self._is_killed = True
        line = self._line
        if line is not None:
            line.child.kill()

    def close(self) -> None:
        """End the process, if there is one."""
        line, self._line = self._line, None
        if line is not None:
            line.child.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def itself(served: Any) -> Any:
    """Return *served* unchanged.

    It serves as ``make`` of a :class:`Worker` whose served object exists already.
    """
    return served


def _main_module() -> dict[str, Any]:
    """Return the location of this process's main module, whose classes a pickle may need."""
    from multiprocessing import spawn  # few children need it

    names = ("init_main_from_name", "init_main_from_path")
    return {k: v for k, v in spawn.get_preparation_data("child").items() if k in names}


class LostError(Exception):
    """The process has ended, or its messages cannot be read.

    Attributes:
        is_unreadable: whether messages cannot be read; otherwise the process has ended.
    """

    def __init__(self, *, is_unreadable: bool = False) -> None:
        super().__init__()
        self.is_unreadable = is_unreadable


class Line:
    """Connection to a child process, which sends requests and receives messages.

    A thread reads the messages. So neither a hanging child, nor a grandchild that keeps the pipe
    open, can block the parent.

    Args:
        child: child process, started with pipes.
        records: classes that answers may hold.
    """

    def __init__(self, child: Child, records: Sequence[type]) -> None:
        self.child = child
        self._heard: SimpleQueue[Any] = SimpleQueue()
        self._has_started = False
        arguments = (child.answers, records, self._heard)
        threading.Thread(target=_listen, args=arguments, daemon=True).start()

    def await_start(self) -> None:
        """Wait until the child has started.

        Raises:
            LostError: the process has ended, or its message cannot be read.
        """
        if not self._has_started:
            self.receive()
            self._has_started = True

    def send(self, method: str, *arguments: Any) -> None:
        """Send a request for a method call.

        Raises:
            LostError: the process has ended.
        """
        try:
            self.child.send((method, arguments))
        except OSError as error:
            raise LostError from error

    def receive(self) -> tuple[str, Any]:
        """Return kind and content of the next message.

        The kind is ``told``, ``logged``, ``answer`` or ``error``.

        Raises:
            LostError: the process has ended, or its message cannot be read.
        """
        has_ended = False
        while True:
            try:
                found = self._heard.get(timeout=_LOOK)
            except Empty:
                if has_ended:  # and no further message came
                    raise LostError from None
                has_ended = self.child.status is not None
                continue
            if isinstance(found, LostError):
                raise found
            return found  # type: ignore[no-any-return]  # _listen has looked

    def death(self, is_unreadable: bool = False) -> Death:
        """Kill the process if it still runs, and return a description of how it ended.

        If *is_unreadable*, the description says that the process's messages cannot be read.
        """
        if not is_unreadable:
            self.child.wait(_END)
        self.child.close()
        how = UNREADABLE if is_unreadable else how_it_ended(self.child.status or 0)
        return Death(how, last_line=self.child.last_line())


def _listen(stream: BinaryIO, records: Sequence[type], heard: SimpleQueue[Any]) -> None:
    """Put each message of *stream* into the queue *heard*, then the error at the stream's end.

    *records* are the classes that messages may hold.
    """
    with stream:
        try:
            while True:
                kind, content = messages.read(stream, records)
                if kind == "error" and not isinstance(content, DelegraphError):
                    raise TypeError(f"no error: {content!r}")
                if kind == "logged":
                    content = logging.makeLogRecord(content)
                heard.put((kind, content))
        except EOFError:
            heard.put(LostError())
        except (OSError, TypeError, ValueError):  # no message, or one of an unknown kind
            heard.put(LostError(is_unreadable=True))


def _log(record: logging.LogRecord) -> None:
    """Log a child's *record* in this process."""
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)


# -- in the child ----------------------------------------------------------------------------------


def serve_parent() -> None:
    """Create the object that the parent describes; answer requests until the pipe closes."""
    requests, answers = pipes()
    main_module, content = pickle.load(requests)
    if main_module:
        from multiprocessing import spawn

        spawn.prepare(main_module)
    make, argument = pickle.loads(content)
    served = make(argument)
    logging.getLogger().addHandler(_ToParent(logging.WARNING))
    serve(served, requests, answers)


def serve(served: Any, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer *requests* for calls of *served*'s methods, until the parent closes the pipe.

    The answers are written to *answers*.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the parent ends this process
    _parent.append(answers)
    _send("started", None)
    while True:
        try:
            method, arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            _send("answer", getattr(served, method)(*arguments))
        except Exception as error:  # noqa: BLE001 - raised in the parent
            _send("error", error)


_parent: list[BinaryIO] = []
"""Stream for the answers of this process, the last of the list."""


def tell(message: Any) -> None:
    """Send a message to the parent before the request's answer; any thread may call this."""
    _send("told", message)


class _ToParent(logging.Handler):
    """Log handler that sends records to the parent, which logs them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Send the fields of *record* that describe it as text."""
        fields = {n: getattr(record, n) for n in ("name", "levelno", "levelname", "process")}
        _send("logged", {**fields, "msg": self.format(record)})


def _send(kind: str, content: Any) -> None:
    with _sending:
        messages.write(_parent[-1], (kind, content))


_sending = threading.Lock()
"""Lock that is held while a message is written, so that two messages do not mix."""
