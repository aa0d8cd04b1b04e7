"""Answers of the set-ups for the samples of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delegraph.json_records import JsonRecord
from delegraph.tools.evaluation.task import Row
from delegraph.tools.latency import Latency
from delegraph.tools.setup import Setup


@dataclass(frozen=True, slots=True)
class BadSample(JsonRecord):
    """A sample that could not be used, with the reason.

    Attributes:
        key: its name.
        reason: why.
    """

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of every set-up for every sample.

    Attributes:
        setups: in the order given; the first is what the others are compared with.
        keys: of the samples that were used, in the order of the data set.
        rows: for each set-up, what the task made of its outputs, in the order of *keys*.
        prepare: times of making inputs of a sample: reading, decoding, resizing.
        invoke: times of each set-up's ``invoke``, warm-up not counted.
        bad: samples that could not be used.
        resumed: how many samples an earlier, interrupted run had done.
    """

    setups: tuple[Setup, ...]
    keys: tuple[str, ...]
    rows: tuple[tuple[Row, ...], ...]
    prepare: Latency
    invoke: tuple[Latency, ...]
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
                {**setup.to_json(), "invoke": latency.to_json()}
                for setup, latency in zip(self.setups, self.invoke, strict=True)
            ],
        }
