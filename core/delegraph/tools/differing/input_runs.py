"""What a model is fed, run after run: random values, files, or a folder of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.loader import load_model
from delegraph.tools.called_inputs import called_metadata, require_room_for, signature_names
from delegraph.tools.given_inputs import given_inputs
from delegraph.tools.input_distributions import Distribution, distributed_inputs
from delegraph.tools.model_call import Details
from delegraph.tools.model_inputs import input_values
from delegraph.tools.setup import Setup

RUNS = 50
"""Runs on random inputs, as ``inference_diff`` has them."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Where the values of one or more runs come from.

    Attributes:
        inputs: what the user gives, as ``delegraph run --input`` takes it: ``[NAME=]VALUE``. A
            folder stands for each of its files in turn, by name. What is not given is random.
        distribution: how random values are spread.
        seed: of the first run's random values; each run after it has the next one.
        runs: how many; None for one a file, one where nothing is random, else :data:`RUNS`.
        sample_rate: of sounds, in hertz, when the metadata is wrong or does not say.
    """

    inputs: tuple[str, ...] = ()
    distribution: Distribution = "inference_diff"
    seed: int = 0
    runs: int | None = None
    sample_rate: int | None = None


@dataclass(frozen=True, slots=True)
class FedRun:
    """The values of one run.

    Attributes:
        values: one array for each input, in the order of the model or of the signature.
        words: what the user gave for this run.
        seed: of its random values; None where nothing is random.
    """

    values: tuple[NDArray[Any], ...]
    words: tuple[str, ...]
    seed: int | None

    def __str__(self) -> str:
        return ", ".join([*self.words, *([] if self.seed is None else [f"seed {self.seed}"])])


class InputRuns:
    """The values of all runs; each is made when it is asked for, the same each time.

    Args:
        setup: whose model is fed.
        signature: what is called; None for the whole model.
        details: of the inputs, as ``ModelCall.input_details`` gives them.
        feed: where the values come from.

    Raises:
        ArgumentError: folders of different sizes, or one without files.
        OperatorError: an input takes more memory than the set-up allows.
    """

    def __init__(
        self, setup: Setup, signature: str | None, details: Sequence[Details], feed: Feed
    ) -> None:
        model = load_model(setup.model, setup.table_limit)
        require_room_for(setup, model, details)
        self._details = details
        self._metadata = called_metadata(model, signature)
        self._names = signature_names(model, signature, details)
        self._feed = feed
        self._words = _words_of_runs(feed.inputs)
        self._count = feed.runs or len(self._words)
        if feed.runs is None and len(self._words) == 1 and self.run(0).seed is not None:
            self._count = RUNS

    def __len__(self) -> int:
        return self._count

    def run(self, number: int) -> FedRun:
        """Return the values of a run, counted from 0.

        Raises:
            ArgumentError: values that an input cannot take, or a name that none has.
        """
        words = self._words[number % len(self._words)]
        seed = self._feed.seed + number
        random = distributed_inputs(self._details, self._feed.distribution, seed)
        position = {id(entry): i for i, entry in enumerate(self._details)}
        taken: list[str] = []

        def values_of(text: str, entry: Details, note: Callable[[str], object]) -> NDArray[Any]:
            if text == "random":
                taken.append(text)
                return random[position[id(entry)]]
            described = self._metadata.tensor(int(entry["index"]))
            rate, rng = self._feed.sample_rate, np.random.default_rng(seed)
            return input_values(text, entry, rng, described=described, sample_rate=rate, note=note)

        given = given_inputs(words, self._details, self._names, values_of)
        return FedRun(tuple(g.values for g in given), words, seed if taken else None)


def _words_of_runs(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what is given in each run, where folders stand for their files in turn."""
    files = [_files(word) for word in words]
    counts = sorted({len(found) for found in files if found is not None})
    if len(counts) > 1:
        raise ArgumentError(f"the folders given as inputs hold {counts[0]} and {counts[-1]} files")
    return [
        tuple(w if f is None else f[run] for w, f in zip(words, files, strict=True))
        for run in range(counts[0] if counts else 1)
    ]


def _files(word: str) -> list[str] | None:
    """Return ``[NAME=]FILE`` for each file of the folder that a word ends in; None without one."""
    name, folder = "", word
    if not Path(word).is_dir():
        name, _, folder = word.rpartition("=")
        name += "="
        if name == "=" or not Path(folder).is_dir():
            return None
    found = sorted(p.name for p in Path(folder).iterdir() if p.is_file())
    names = [n for n in found if not n.startswith(".")]
    if not names:
        raise ArgumentError(f"the folder {folder!r} holds no files to give as inputs")
    return [name + os.path.join(folder, n) for n in names]
