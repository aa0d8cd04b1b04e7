"""Answers of set-ups for the samples of a data set."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord
from delegraph.tools.evaluation.task import Row
from delegraph.tools.latency import Latency
from delegraph.tools.setup import Setup


@dataclass(frozen=True, slots=True)
class BadSample(JsonRecord):
    """A sample that could not be used, with the reason.

    Attributes:
        key: name of the sample.
        reason: why the sample could not be used.
    """

    key: str
    reason: str


def write_csv(path: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write *rows*, the headings first, to the file *path* as CSV.

    Raises:
        ArgumentError: the file cannot be written.
    """
    try:
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    except OSError as error:
        raise ArgumentError(f"{path!r} cannot be written: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class Answers:
    """Outputs of each set-up for each sample of a data set, with times.

    Attributes:
        setups: the set-ups in the order given; the others are compared with the first.
        keys: names of the used samples, in the order of the data set.
        rows: for each set-up, the task's records of its outputs, one for each sample in the order
            of *keys*.
        prepare: statistics of the time to make a sample's inputs: reading, decoding, resizing.
        invoke: statistics of the time of each set-up's ``invoke``, without warm-up.
        threads: largest number of threads on which each set-up runs; None if a delegate chooses it
            and does not tell.
        bad: samples that could not be used.
        resumed: number of samples that an earlier, interrupted run had finished.
    """

    setups: tuple[Setup, ...]
    keys: tuple[str, ...]
    rows: tuple[tuple[Row, ...], ...]
    prepare: Latency
    invoke: tuple[Latency, ...]
    threads: tuple[int | None, ...]
    bad: tuple[BadSample, ...]
    resumed: int

    def to_json(self) -> dict[str, Any]:
        """Return all fields except the rows, which each task formats itself."""
        return {
            "samples": len(self.keys),
            "resumed": self.resumed,
            "bad": [sample.to_json() for sample in self.bad],
            "prepare": self.prepare.to_json(),
            "setups": [
                {**setup.to_json(), "threads": threads, "invoke": latency.to_json()}
                for setup, latency, threads in zip(
                    self.setups, self.invoke, self.threads, strict=True
                )
            ],
        }
