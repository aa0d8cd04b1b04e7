"""Jobs on one machine: compute all rows of a source in several processes and write a file."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np

from delegraph.delegation.num_threads import usable_processors
from delegraph.errors import PredictionError
from delegraph.json_records import JsonRecord
from delegraph.processes.ending import Death
from delegraph.processes.worker import Worker, itself
from delegraph.quantities import rate_text
from delegraph.scale.batching import Batching
from delegraph.scale.classes import Classes, classes_of, score_sizes
from delegraph.scale.computing import ERROR
from delegraph.scale.job_folder import JobFolder, Record
from delegraph.scale.job_work import ROW, Stored, Work
from delegraph.scale.outputs import output_format
from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import require_no_clash
from delegraph.scale.sources import Source
from delegraph.tools.progress import Progress, untold
from delegraph.tools.whole_file import whole_file

MOST_PIECE_ROWS = 1024
"""Largest number of rows in a piece; each process of a killed job loses at most one piece."""

PIECES = 64
"""Number of pieces of a job, unless they would have more than MOST_PIECE_ROWS rows."""

_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")

TRIED_ROWS = 8
"""Number of rows with which a job tests whether the model accepts several rows at a time."""


def _rows(bad: Mapping[int, str]) -> list[dict[str, Any]]:
    return [{"row": row, "reason": reason} for row, reason in bad.items()]


@dataclass(frozen=True, slots=True)
class Cause(JsonRecord):
    """Bad rows with the same reason, except for numbers and quoted names in its text.

    Attributes:
        rows: number of these rows.
        first: number of the first of these rows.
        reason: reason of the first row.
    """

    rows: int
    first: int
    reason: str


@dataclass(frozen=True, slots=True)
class JobResult(JsonRecord):
    """Result of a job.

    Attributes:
        output: path of the output file.
        rows: number of rows in the source.
        written: number of rows in the output file; 0 if an earlier file stays, as all rows are bad.
        bad: mapping from the number of a bad row to the reason why it is bad.
        resumed: number of rows that earlier runs had computed.
        seconds: duration of this run, in seconds.
        start_seconds: part of *seconds* before the first process had loaded the model.
        processes: number of processes that computed.
        batching: method by which rows became calls.
        incidents: number of delegate failures after which Delegraph went on, in all runs.
        lost_processes: number of child processes that rows have killed, in all runs.
        fingerprint: digest of everything that determines the results; see
            ``Predictor.fingerprint``.
        placement: summary of which delegates take the nodes of the model.
        stored_integers: mapping from the column of each output that holds stored integers to their
            quantization.
        scores: mapping from the column of each output that holds class scores, in place of which
            *top* writes the best classes, to their number.
    """

    json_properties: ClassVar = {"rows_per_second": "rate", "causes": "causes", "good": "good"}

    output: str
    rows: int
    written: int
    bad: Mapping[int, str] = field(metadata={"json_value": _rows})
    resumed: int
    seconds: float
    start_seconds: float
    processes: int
    batching: Batching
    incidents: int
    lost_processes: int
    fingerprint: str
    placement: str
    stored_integers: Mapping[str, Stored] = field(default_factory=dict)
    scores: Mapping[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Number of rows per second in this run, after the start."""
        return (self.rows - self.resumed) / (self.seconds - self.start_seconds)

    @property
    def good(self) -> int:
        """Number of rows that are not bad."""
        return self.rows - len(self.bad)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Causes of bad rows, the most frequent first."""
        alike: dict[str, list[int]] = {}
        for row, reason in self.bad.items():
            alike.setdefault(_VARYING.sub("", reason), []).append(row)
        found = (Cause(len(rows), rows[0], self.bad[rows[0]]) for rows in alike.values())
        return tuple(sorted(found, key=lambda cause: (-cause.rows, cause.first)))


def predict(
    predictor: Predictor,
    source: Source,
    output: str | os.PathLike[str],
    *,
    processes: int | None = None,
    resume: bool = False,
    resumed_from: Callable[[int, int], object] = lambda rows, bad: None,
    top: int | None = None,
    labels: Sequence[str] = (),
    real: bool = False,
    progress: Progress = untold,
) -> JobResult:
    """Compute all rows of a source, and write the results to a file in the same order.

    The file has these columns: the number of each row, the source's columns except the model's
    inputs, the outputs, and the errors if ``predictor.on_error`` is ``"column"``. The file is
    written whole at the end; until then, finished rows are in the folder ``OUTPUT.job``. Rows
    become calls in the same way in every process and after every interruption. So the file depends
    neither on the number of processes nor on interruptions. If all rows are bad, an existing file
    stays.

    Each process is a new Python process. It imports the main module if the source's class is
    defined there. Then the main module must call this function under ``if __name__ ==
    "__main__":``.

    Args:
        predictor: the predictor; each process makes one with the same arguments, and this one is
            closed.
        source: source of the rows, see :func:`~delegraph.scale.opening.open_source`.
        output: a ``.jsonl``, ``.csv``, ``.npz`` or ``.parquet`` file.
        processes: number of processes that compute; None means one per core.
        resume: whether to continue an interrupted job; a finished one, whose output is unchanged,
            computes nothing.
        resumed_from: function that is called with *resume*, before any row is computed. Its
            arguments are the number of rows that earlier runs have finished, and the number of bad
            rows among them.
        top: number of best classes that replace an output's scores, each with a column for the
            class and a column for its score; None keeps the scores. Outputs that the predictor's
            arguments name are kept as well.
        labels: names of the classes, with *top*; by default, the names in the model's metadata, or
            else numbers.
        real: whether outputs of stored integers are written as real values.
        progress: function that is called with the number of finished rows.

    Raises:
        ArgumentError: the output's suffix is unknown, or the data do not fit the model. Or an
            interrupted job exists, but *resume* is False or the job is different. Or *top* is
            given, but no output has class scores.
        PredictionError: a row is bad and ``predictor.on_error`` is ``"raise"``, or a row has killed
            its process.
        DelegraphError: the model cannot be loaded.
    """
    path = os.path.abspath(output)
    if output_format(path).has_cells:
        source = source.with_texts()
    require_no_clash((ROW, ERROR), predictor.output_columns())
    classes = None
    if top is not None:
        classes = classes_of(predictor, labels, top, source.read(0, 1).passed)
    identity = {**predictor.identity(), "output": Path(path).suffix}
    identity["size or time of the data"] = source.identity()
    if real:
        identity["real values"] = True
    if source.preparation:
        identity["preprocessing"] = source.preparation
    if classes is not None:
        identity["labels or number of best classes"] = classes.identity()
    piece_rows = _piece_rows(len(source), predictor.max_batch)
    folder = JobFolder(path, identity, resume=resume)
    try:
        batching = _batching(predictor, source)
        marking = predictor.replaced(batching=batching, on_error="column")
        stored, fingerprint = _stored(predictor, classes), predictor.fingerprint()
        scores = score_sizes(predictor) if classes is None else {}
        predictor.close()  # the processes have their own interpreters
        work = Work(
            marking, source, predictor.on_error, piece_rows, path, classes, stored if real else {}
        )
        start = time.perf_counter()
        finished = folder.finished() if resume else {}
        records = finished or folder.records()
        resumed = sum(record.rows for record in records.values())
        if resume:
            resumed_from(resumed, sum(len(record.bad) for record in records.values()))
        told = _Told(progress, resumed, len(source))
        numbers = range(-(-len(source) // piece_rows))
        pending = [number for number in numbers if number not in records]
        count = min(processes or usable_processors(), len(pending))
        for number, record in _computed(work, folder, pending, count, told.start):
            folder.add(number, record)
            records[number] = record
            told.add(record.rows)
        ordered = [records[number] for number in numbers]
        are_bad = all(len(r.bad) == r.rows for r in ordered)
        is_kept = not finished and are_bad and os.path.exists(path)
        if not is_kept and not finished:
            with whole_file(path) as partial:
                output_format(path).join([folder.piece(number) for number in numbers], partial)
            folder.finish(ordered)
    except BaseException:
        folder.leave()
        raise
    folder.remove()
    return JobResult(
        output=os.fspath(output),
        rows=len(source),
        written=0 if is_kept else sum(record.written for record in ordered),
        bad={int(row): reason for record in ordered for row, reason in record.bad.items()},
        resumed=resumed,
        seconds=time.perf_counter() - start,
        start_seconds=told.begin - start if count else 0.0,
        processes=count,
        batching=batching,
        incidents=sum(record.incidents for record in ordered),
        lost_processes=sum(record.lost_processes for record in ordered),
        fingerprint=fingerprint,
        placement=identity["placement"]["summary"],
        stored_integers={} if real else stored,
        scores=scores,
    )


def _stored(predictor: Predictor, classes: Classes | None) -> dict[str, Stored]:
    """Return, by column, the quantization of stored integers that *classes* do not replace."""
    replaced = classes.outputs if classes is not None and not classes.keeps_scores else {}
    return {
        column: Stored(float(details["quantization"][0]), int(details["quantization"][1]))
        for column, details in predictor.output_columns().items()
        if details["quantization"][0]
        and column not in replaced
        and np.dtype(details["dtype"]).kind in "iu"
    }


def _piece_rows(rows: int, max_batch: int) -> int:
    """Return the number of rows that a process computes and saves at a time.

    Args:
        rows: number of rows of the whole job.
        max_batch: largest number of rows in a call of the model; the result is a multiple of it.
    """
    wanted = min(rows // PIECES, MOST_PIECE_ROWS)
    return max(1, wanted // max_batch) * max_batch


def _batching(predictor: Predictor, source: Source) -> Batching:
    """Return the method by which all processes turn rows into calls.

    It is ``"resize"``, ``"pad"`` or ``"rows"``; the predictor decides by trying the first rows of
    *source*.

    Raises:
        ArgumentError: the data do not fit the model.
    """
    if predictor.batching == "auto":
        rows = source.read(0, min(TRIED_ROWS, len(source)))
        if rows.given:
            predictor.try_batching(rows.given)
    return "rows" if predictor.batching == "auto" else predictor.batching


class _Told:
    """Reports the progress of a job to the caller, with the number of rows per second.

    Attributes:
        begin: time from which the rate counts: of the last call of :meth:`start`.
    """

    def __init__(self, progress: Progress, done: int, total: int) -> None:
        self._progress = progress
        self._resumed = self._done = done
        self._total = total
        self.start()

    def start(self) -> None:
        """Tell the progress before rows are computed, and count the time from now."""
        self.begin = time.perf_counter()
        self._progress("predicting", self._done, self._total)

    def add(self, rows: int) -> None:
        """Add *rows* finished rows to the progress."""
        self._done += rows
        rate = (self._done - self._resumed) / (time.perf_counter() - self.begin)
        what = f"{self._done:,} of {self._total:,} rows, {rate_text(rate)} a second"
        self._progress(what, self._done, self._total)


def _computed(
    work: Work,
    folder: JobFolder,
    pending: Iterable[int],
    processes: int,
    started: Callable[[], object],
) -> Iterator[tuple[int, Record]]:
    """Yield number and record of each piece in *pending*, in the order of completion.

    *started* is called once, when the first process has loaded the model.

    Raises:
        PredictionError: a process died.
    """
    if not processes:
        return
    waiting = iter(pending)
    with _pool(work, processes) as submit:
        started()
        futures: dict[Future[Record | Death], int] = {}
        while True:
            while len(futures) < 2 * processes and (number := next(waiting, None)) is not None:
                futures[submit(number, folder.piece(number))] = number
            if not futures:
                return
            done = wait(futures, return_when=FIRST_COMPLETED).done
            for future in sorted(done, key=futures.__getitem__):  # rows before a bad one are kept
                record = future.result()
                if isinstance(record, Death):
                    raise _lost(record, futures[future] * work.piece_rows)
                yield futures.pop(future), record


def _lost(death: Death, row: int) -> PredictionError:
    """Return the error for a process that died while it computed the rows from *row* on."""
    return PredictionError(
        f"a process that computes was lost ({death.how}); it had rows from {row} on. "
        "isolation='process' finds and marks rows that end their process; resume=True goes on"
    )


@contextmanager
def _pool(work: Work, processes: int) -> Iterator[Callable[[int, str], Future[Record | Death]]]:
    """Yield a function that computes a piece (its number and path) in one of *processes*.

    One of them has then loaded the model, or failed to: its pieces fail in the same way.
    """
    idle: SimpleQueue[Worker] = SimpleQueue()

    def start(worker: Worker) -> None:
        try:
            worker.ask("start")
        finally:
            idle.put(worker)

    def compute(number: int, path: str) -> Record | Death:
        worker = idle.get()
        try:
            found: Record | Death = worker.ask("compute", number, path)
        finally:
            idle.put(worker)
        return found

    with ExitStack() as stack, ThreadPoolExecutor(processes) as threads:
        workers = [
            stack.enter_context(Worker(itself, work, time_limit=None, records=(Record,)))
            for _ in range(processes)
        ]
        try:
            starts = [threads.submit(start, worker) for worker in workers]
            wait(starts, return_when=FIRST_COMPLETED)
            yield lambda number, path: threads.submit(compute, number, path)
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.kill()  # so that the threads need not wait for the processes
            raise
