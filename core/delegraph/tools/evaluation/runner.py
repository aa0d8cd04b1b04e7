"""Runs every set-up once on every sample; an interrupted run continues from its journal.

Samples are computed one after the other, each by all set-ups before the next sample. So a temporary
slow-down of the machine affects all set-ups.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.tools.benchmarking.threads import applied_delegates, most_threads
from delegraph.tools.evaluation.answers import Answers, BadSample
from delegraph.tools.evaluation.identity import identity
from delegraph.tools.evaluation.journal import Entry, Journal
from delegraph.tools.evaluation.task import Outputs, Row, Sample, Task
from delegraph.tools.latency import Latency
from delegraph.tools.model_call import Details, model_call
from delegraph.tools.progress import Progress, untold
from delegraph.tools.setup import Setup

AnySample = TypeVar("AnySample", bound=Sample)


def run_task(
    setups: Sequence[Setup],
    samples: Sequence[AnySample],
    task: Task[AnySample],
    *,
    journal: str | None = None,
    warmup_runs: int = 1,
    progress: Progress = untold,
) -> Answers:
    """Return the answers of every set-up to every sample.

    Args:
        setups: the set-ups, at least one.
        samples: the samples, at least one, each with a unique key.
        task: task that makes the inputs and judges the outputs.
        journal: path of a file with the finished samples. If the file exists, its samples are not
            computed again. It is kept at the end.
        warmup_runs: number of runs of each set-up on the first sample before times are measured.
        progress: function that is called with the number of samples finished in this run, and the
            number to compute.

    Raises:
        ArgumentError: a model does not fit the task, no sample can be used, the journal belongs to
            another evaluation, or one of its samples has changed.
        DelegraphError: a set-up failed.
    """
    _require_samples(samples)
    with ExitStack() as stack:
        done: dict[str, Entry] = {}
        keep: Callable[[Entry], None] = lambda entry: done.update({entry["key"]: entry})  # noqa: E731
        if journal is not None:
            kept = Journal(journal, identity(setups, task.identity(), samples))
            stack.callback(kept.close)
            done, keep = kept.entries, kept.add
            _require_unchanged(journal, samples, done)
        resumed = len(done)
        pending = [sample for sample in samples if sample.key not in done]
        if pending:
            run = _Run([stack.enter_context(_Host(setup)) for setup in setups], task, warmup_runs)
            for count, sample in enumerate(pending):
                progress("evaluating", count, len(pending))
                keep(run.entry(sample))
            progress("evaluating", len(pending), len(pending))
    return _answers(setups, [done[sample.key] for sample in samples], resumed)


class _Host:
    """The interpreter of one set-up, which computes all samples and measures the run times."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._made = setup.with_objects()
        self._interpreter = self._made.interpreter()
        self._call = model_call(self._interpreter)
        self.inputs: list[Details] = self._call.input_details()
        self.outputs: list[Details] = self._call.output_details()
        self._shapes: list[tuple[int, ...]] | None = None

    def __enter__(self) -> _Host:
        return self

    def __exit__(self, *error: object) -> None:
        self._interpreter.close()

    def threads(self) -> int | None:
        """Return the largest number of threads of a run, after the first one.

        None if a delegate chooses it and does not tell.
        """
        applied = applied_delegates(self._made, self._interpreter)
        return most_threads(self.setup.threads, self._interpreter.placement, applied)

    def run(self, values: Sequence[NDArray[Any]]) -> tuple[Outputs, float]:
        """Return the outputs for *values*, and the seconds of ``invoke``."""
        shapes = [array.shape for array in values]
        if shapes != self._shapes:
            self._call.allocate(values)
            self._shapes = shapes
        self._interpreter.reset_all_variables()  # a sample's answer must not depend on the order
        self._call.fill(values)
        begin = time.perf_counter()
        self._call.invoke()
        seconds = time.perf_counter() - begin
        return self._call.outputs(), seconds


class _Run:
    """Runs all set-ups on one sample after another, and makes journal entries."""

    def __init__(self, hosts: Sequence[_Host], task: Task[Any], warmup_runs: int) -> None:
        self._hosts = hosts
        self._task = task
        self._warmup_runs = warmup_runs
        for host in hosts:
            try:
                task.require_model(host.inputs, host.outputs)
            except ArgumentError as error:
                raise ArgumentError(f"{host.setup}: {error}") from error

    def entry(self, sample: Sample) -> Entry:
        """Compute *sample* with all set-ups; return the entry for the journal."""
        entry: Entry = json.loads(json.dumps(self._entry(sample)))
        return entry

    def _entry(self, sample: Sample) -> Entry:
        """Return the journal entry of *sample*: results and times of all set-ups.

        For a sample that cannot be used, it has the reason.
        """
        digest = ""
        try:
            digest = sample.digest()
            begin = time.perf_counter()
            prepared = _Prepared(self._task, sample)
            prepared.inputs(self._hosts[0])
            prepare = time.perf_counter() - begin
            inputs = [prepared.inputs(host) for host in self._hosts]
        except ArgumentError as error:
            return {"key": sample.key, "digest": digest, "bad": str(error)}
        rows, times = [], []
        for host, values in zip(self._hosts, inputs, strict=True):
            for _ in range(self._warmup_runs):
                host.run(values)
            outputs, seconds = host.run(values)
            rows.append(self._task.judge(sample, outputs))
            times.append(seconds)
        self._warmup_runs = 0
        return {
            "key": sample.key,
            "digest": digest,
            "prepare": prepare,
            "rows": rows,
            "invoke": times,
            "threads": [host.threads() for host in self._hosts],
        }


class _Prepared:
    """Inputs of one sample, made once for all models with equal inputs."""

    def __init__(self, task: Task[Any], sample: Sample) -> None:
        self._task = task
        self._sample = sample
        self._made: dict[str, list[NDArray[Any]]] = {}

    def inputs(self, host: _Host) -> list[NDArray[Any]]:
        kind = repr([_kind(entry) for entry in host.inputs])
        if kind not in self._made:
            self._made[kind] = self._task.inputs(self._sample, host.inputs)
        return self._made[kind]


def _kind(details: Details) -> tuple[object, ...]:
    """Return name, dtype, shape and scale of the input *details*, on which its values depend."""
    shape = details["shape_signature"].tolist() or details["shape"].tolist()
    return details["name"], np.dtype(details["dtype"]).str, shape, details["quantization"]


def _require_samples(samples: Sequence[Sample]) -> None:
    keys = [sample.key for sample in samples]
    if not keys:
        raise ArgumentError("there is nothing to evaluate: the data set is empty")
    if len(set(keys)) < len(keys):
        twice = next(key for position, key in enumerate(keys) if key in keys[:position])
        raise ArgumentError(f"two samples of the data set are called {twice!r}")


def _require_unchanged(path: str, samples: Sequence[Sample], done: Mapping[str, Entry]) -> None:
    """Check that the samples in the journal *path* have not changed since it was written.

    *done* has the journal's entries by key.

    Raises:
        ArgumentError: a sample has changed; the message names it.
    """
    for sample in samples:
        if sample.key in done and _digest(sample) != done[sample.key]["digest"]:
            raise ArgumentError(
                f"journal {path!r} has results for {sample.key!r}, whose content or truth has "
                "changed since. Delete it to begin anew, or name another output"
            )


def _digest(sample: Sample) -> str:
    """Return the digest of a sample, or an empty text if it cannot be read."""
    try:
        return sample.digest()
    except ArgumentError:
        return ""


def _answers(setups: Sequence[Setup], entries: Sequence[Entry], resumed: int) -> Answers:
    good = [entry for entry in entries if "rows" in entry]
    bad = [BadSample(entry["key"], entry["bad"]) for entry in entries if "bad" in entry]
    if not good:
        first = bad[0]
        raise ArgumentError(f"none of {len(bad)} samples can be used; {first.key}: {first.reason}")
    rows: list[tuple[Row, ...]] = [tuple(e["rows"][i] for e in good) for i in range(len(setups))]
    return Answers(
        tuple(setups),
        tuple(entry["key"] for entry in good),
        tuple(rows),
        Latency.of([entry["prepare"] for entry in good]),
        tuple(Latency.of([entry["invoke"][i] for entry in good]) for i in range(len(setups))),
        tuple(good[-1]["threads"]),
        tuple(bad),
        resumed,
    )
