"""One block of a comparison, in a process of its own.

Two interpreters of one model in one process are not equally fast: where their memory lies, and
which was made first, makes some tenths of a percent to a percent, which stay as long as they live.
More runs do not take that away. New interpreters in a new process, in a random order, do: from
block to block the difference is another one, and the interval over blocks has it in it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

import numpy as np

from delegraph.errors import DelegraphError
from delegraph.plugins.standard_output import printed_to_stderr
from delegraph.tools.benchmarking.interleaving import Block, TimedRun, Turns
from delegraph.tools.benchmarking.timed_model import timed_model
from delegraph.tools.child_process import end_with_its_own, how_it_ended
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from delegraph.tools.benchmarking.block_process import answer; answer()"
)

_TELLING = 0.25
"""Seconds between two words of how far a block is: each wakes the process that waits for them."""


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """What a block is to do.

    Attributes:
        setups: what takes turns, by name.
        inputs: what their inputs are to be.
        signature: which of the models' is called; None: the whole model.
        seconds: how long they take turns, about.
        seed: of the order in which they are made, and of turns; another one for each block.
    """

    setups: Mapping[str, Setup]
    inputs: InputRequest
    signature: str | None
    seconds: float
    seed: tuple[int, int]


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """What a block has given.

    Attributes:
        times: the rounds of each set-up that did not fail.
        failures: the errors of the others.
    """

    times: dict[str, Block]
    failures: dict[str, Exception]


def block_here(
    request: BlockRequest,
    progress: Progress = untold,
    mark: Callable[[str], object] = str,
) -> BlockTimes:
    """Return the times of a block in this process, with new interpreters.

    Args:
        request: what it is to do.
        progress: is told between the rounds.
        mark: is called with the name of whatever runs next.
    """
    rng = np.random.default_rng(request.seed)
    names = list(request.setups)
    runs: dict[str, TimedRun] = {}
    failures: dict[str, Exception] = {}
    with ExitStack() as stack:
        for name in (names[i] for i in rng.permutation(len(names))):
            mark(name)
            try:
                made = timed_model(
                    request.setups[name], request.inputs, signature=request.signature
                )
                runs[name] = _marked(stack.enter_context(made).run, name, mark)
            except Exception as error:  # noqa: BLE001 - who fails is listed, and the others go on
                failures[name] = error
        turns = Turns(runs)
        turns.warm_up()
        times = turns.block(request.seconds, rng, progress)
    return BlockTimes(times, {**failures, **turns.failures})


def _marked(run: TimedRun, name: str, mark: Callable[[str], object]) -> TimedRun:
    def marked() -> float:
        mark(name)
        return run()

    return marked


# -- the process that asks -------------------------------------------------------------------------


def block_in_a_process(request: BlockRequest, progress: Progress = untold) -> BlockTimes:
    """Return the times of a block in a process of its own.

    What ends that process is a failure of whoever ran then; the block begins anew without it.

    Raises:
        OSError: no process can be started.
    """
    failures: dict[str, Exception] = {}
    while True:
        left = {n: setup for n, setup in request.setups.items() if n not in failures}
        found, culprit, how = _ask(replace(request, setups=left), progress)
        if found is not None:
            return BlockTimes(found.times, {**failures, **found.failures})
        if culprit not in left:
            raise DelegraphError(f"a process for a block of times ended with {how}")
        failures[culprit] = DelegraphError(f"its process ended with {how}")


def _ask(request: BlockRequest, progress: Progress) -> tuple[BlockTimes | None, str, str]:
    """Return the answer of a new process; or None, who ran when it ended, and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        mark, log = Path(folder, "running"), Path(folder, "log")
        mark.touch()
        with (
            log.open("wb") as printed,
            subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                start_new_session=True,  # so that the processes that it starts end with it
            ) as process,
        ):
            try:
                found = _answer_of(process, (request, str(mark)), progress)
            finally:
                end_with_its_own(process)
        how = how_it_ended(process.returncode)
        return found, mark.read_text(encoding="utf-8").rstrip(), how + _last_line(log)


def _answer_of(
    process: subprocess.Popen[bytes], question: object, progress: Progress
) -> BlockTimes | None:
    """Last answer of the process; None where it ends before that."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump(question, process.stdin)
        process.stdin.close()
        while not isinstance(told := pickle.load(process.stdout), BlockTimes):
            progress(*told)
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        process.wait()
        return None
    return told


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last}" if last else ""


# -- the process that answers ----------------------------------------------------------------------


def answer() -> None:
    """Do what standard input asks for; the process ends with it.

    Standard output gets how far the block is, now and then, and at last its times, all pickled;
    what delegates print goes to standard error. The file that the question names has the name of
    whoever runs.
    """
    request, path = pickle.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as answers, printed_to_stderr(), _Mark(path) as mark:

        def send(message: object) -> None:
            pickle.dump(message, answers)
            answers.flush()

        found = block_here(request, _now_and_then(lambda *told: send(told)), mark.put)
        send(BlockTimes(found.times, {n: sendable(e) for n, e in found.failures.items()}))
    os._exit(0)  # what delegates have registered for the end, or left running, is not asked for


class _Mark:
    """A name in a file, there to be read when this process has died."""

    def __init__(self, path: str) -> None:
        self._file: IO[bytes] = open(path, "r+b", buffering=0)  # noqa: SIM115 - __exit__ closes it
        self._last = ""

    def put(self, name: str) -> None:
        """Write a name, if it is another one than before."""
        if name != self._last:
            self._last = name
            self._file.seek(0)
            self._file.write(name.ljust(_LONGEST_NAME).encode())

    def __enter__(self) -> _Mark:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


_LONGEST_NAME = 20


def _now_and_then(progress: Progress) -> Progress:
    """Progress that calls *progress* at most once every :data:`_TELLING` seconds."""
    last = time.monotonic()

    def told(what: str, done: float, total: float | None) -> None:
        nonlocal last
        if time.monotonic() - last > _TELLING:
            last = time.monotonic()
            progress(what, done, total)

    return told


def sendable(error: Exception) -> Exception:
    """Return an error that another process can load: this one, or of the nearest known kind."""
    for kind in type(error).__mro__:
        if kind.__module__ in _KNOWN_EVERYWHERE:
            with contextlib.suppress(Exception):  # it takes more than a message
                return error if kind is type(error) else cast(Exception, kind(str(error)))
    return DelegraphError(str(error))


_KNOWN_EVERYWHERE = (DelegraphError.__module__, Exception.__module__)
