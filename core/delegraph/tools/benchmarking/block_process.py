"""Measures one block of a comparison (some rounds of turns) in a separate process.

Two interpreters of one model in one process are not equally fast. The addresses of their memory and
their order of creation cause a lasting difference of up to a percent. More runs do not remove this
difference. In each block, new interpreters in a new process, created in random order, have another
difference. So the confidence interval over blocks includes it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np

from delegraph.delegation.placement import Placement
from delegraph.errors import DelegraphError
from delegraph.processes.ending import Death
from delegraph.processes.worker import Worker, itself, tell
from delegraph.tools.benchmarking.handed_on import HandedOn
from delegraph.tools.benchmarking.interleaving import Block, TimedRun, Turns
from delegraph.tools.benchmarking.memory import memory
from delegraph.tools.benchmarking.timed_model import TimedModel, timed_model
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

_TELLING = 0.25
"""Seconds between two reports of a block's progress; each report wakes the waiting process."""


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """Task of one measuring process: set-ups to run in turn, for some seconds.

    Attributes:
        setups: mapping from a name to the set-up that takes turns under it.
        inputs: values for the set-ups' inputs.
        signature: name of the signature to call; None means the whole model.
        seconds: approximate time for all turns.
        seed: seed of the order in which interpreters are created and take turns. The second number
            is that of the block: the set-ups are created first in turn, block by block.
    """

    setups: Mapping[str, Setup]
    inputs: InputRequest
    signature: str | None
    seconds: float
    seed: tuple[int, int]


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """Measurements of one process: run times of each set-up, and failures.

    Attributes:
        times: mapping from each set-up that did not fail to its rounds.
        failures: mapping from each set-up that failed to its error.
        handed_on: mapping from each set-up with states, such as KV caches, to the states that a run
            passes to the next run.
        memory: mapping from the set-up that was made first to the bytes of resident memory that its
            creation and first run added; empty if it failed or the system does not report memory.
        threads: mapping from each set-up that did not fail to its number of threads; None if a
            delegate chooses it and does not report it.
        unused: mapping from each set-up of which a named delegate takes no node to the summary of
            its placement.
    """

    times: dict[str, Block]
    failures: dict[str, Exception]
    handed_on: dict[str, HandedOn] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    threads: dict[str, int | None] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)


def block_here(
    request: BlockRequest, progress: Progress = untold, mark: Callable[[str], object] = str
) -> BlockTimes:
    """Return the times of a block in this process, with new interpreters.

    *progress* is called between the rounds, and *mark* with the name of the set-up that runs next.
    """
    rng = np.random.default_rng(request.seed)
    names = list(request.setups)
    runs: dict[str, TimedRun] = {}
    models: dict[str, TimedModel] = {}
    failures: dict[str, Exception] = {}
    added: dict[str, int] = {}
    with ExitStack() as stack:
        turn = request.seed[1] % max(1, len(names))
        others = (names[i] for i in rng.permutation(len(names)) if i != turn)
        before = memory().current
        for name in (*names[turn : turn + 1], *others):
            mark(name)
            try:
                made = timed_model(
                    request.setups[name], request.inputs, signature=request.signature
                )
                models[name] = stack.enter_context(made)
                runs[name] = _marked(models[name].run, name, mark)
                runs[name]()
            except Exception as error:  # noqa: BLE001 - who fails is listed, and the others go on
                failures[name] = error
                runs.pop(name, None)
                continue
            if name == names[turn] and before is not None:  # later ones share what this one loaded
                added[name] = max(0, (memory().current or 0) - before)
        turns = Turns(runs)
        turns.warm_up()
        times = turns.block(request.seconds, rng, progress)
        found = {name: models[name].handed_on for name in times}
        threads = {name: models[name].threads for name in times}
        placements = {name: models[name].placement for name in times}
    handed_on = {name: each for name, each in found.items() if each is not None}
    unused = {name: str(each) for name, each in placements.items() if _has_unused(each)}
    return BlockTimes(times, {**failures, **turns.failures}, handed_on, added, threads, unused)


def _has_unused(placement: Placement) -> bool:
    """Whether a named delegate takes no node."""
    return not {p.delegate for p in placement.partitions}.issuperset(placement.requested_delegates)


def _marked(run: TimedRun, name: str, mark: Callable[[str], object]) -> TimedRun:
    def marked() -> float:
        mark(name)
        return run()

    return marked


# -- the process that asks -------------------------------------------------------------------------


def block_in_a_process(request: BlockRequest, progress: Progress = untold) -> BlockTimes:
    """Measure the block *request* in a separate process and return its times.

    If the process dies, the set-up that was running counts as failed. The block then starts again
    without this set-up.

    Raises:
        OSError: no process can be started.
    """
    failures: dict[str, Exception] = {}
    while True:
        left = {n: setup for n, setup in request.setups.items() if n not in failures}
        found, culprit = _ask(replace(request, setups=left), progress)
        if isinstance(found, BlockTimes):
            return replace(found, failures={**failures, **found.failures})
        how = ": ".join(filter(None, (found.how, found.last_line)))
        if culprit not in left:
            raise DelegraphError(f"a process for a block of times ended with {how}")
        failures[culprit] = DelegraphError(f"its process ended with {how}")


def _ask(request: BlockRequest, progress: Progress) -> tuple[BlockTimes | Death, str]:
    """Let a new process measure *request*; return its times, or how the process died.

    The second result is the name of the set-up that ran last. *progress* is called between rounds.
    """
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder, "running")
        mark.touch()
        work = _BlockWork(request, str(mark))
        with Worker(
            itself, work, time_limit=None, records=(BlockTimes, HandedOn), keeps_errors=True
        ) as worker:
            found: BlockTimes | Death = worker.ask("times", heard=lambda told: progress(*told))
        return found, mark.read_text(encoding="utf-8").rstrip()


# -- in the process of a block ---------------------------------------------------------------------


@dataclass(frozen=True)
class _BlockWork:
    """Work of the process that measures a block.

    Attributes:
        request: set-ups and settings of the block.
        mark: path of a file with the name of the running set-up.
    """

    request: BlockRequest
    mark: str

    def times(self) -> BlockTimes:
        """Measure the block and return its times; report progress from time to time."""
        with _Mark(self.mark) as mark:
            return block_here(self.request, _now_and_then(lambda *told: tell(told)), mark.put)


class _Mark:
    """File with the name of the running set-up, which the waiting process reads after a crash."""

    def __init__(self, path: str) -> None:
        self._file: IO[bytes] = open(path, "r+b", buffering=0)  # noqa: SIM115 - __exit__ closes it
        self._last = ""

    def put(self, name: str) -> None:
        """Write *name* to the file, unless the file contains it already."""
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
    """Return a function that calls *progress* at most once every :data:`_TELLING` seconds."""
    last = time.monotonic()

    def told(what: str, done: float, total: float | None) -> None:
        nonlocal last
        if time.monotonic() - last > _TELLING:
            last = time.monotonic()
            progress(what, done, total)

    return told
