"""Makes the input values of each run: random values, files, or all files of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.log import Logger
from delegraph.tools.called_inputs import require_room_for
from delegraph.tools.model_call import Details
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

OFFICIAL = InputRequest(distribution="inference_diff")
"""The random inputs of ``inference_diff``."""

logger = Logger(__name__)

PATIENCE = 10.0
"""Seconds of runs after which a random integer scalar is named as a possible cause."""

_WIDE = (np.dtype(np.int32), np.dtype(np.int64))

RUNS = 50
"""Number of runs on random inputs, as in ``inference_diff``."""


@dataclass(frozen=True, slots=True)
class FedRun:
    """Input values of one run.

    Attributes:
        values: one array for each input, in the order of the model or of the signature.
        words: the user's text for each given input of this run.
        seed: seed of the random values; None if no value is random.
    """

    values: tuple[NDArray[Any], ...]
    words: tuple[str, ...]
    seed: int | None

    def __str__(self) -> str:
        return ", ".join([*self.words, *([] if self.seed is None else [f"seed {self.seed}"])])


class InputRuns:
    """Input values of all runs; they are made on request, and equal at each request.

    Args:
        setup: the set-up whose model gets the values.
        signature: name of the signature to call; None means the whole model.
        details: details of the inputs, as ``ModelCall.input_details`` returns them.
        request: requested values. For a folder, each of its files, sorted by name, is used in one
            run. The first run has the seed of the request, each later run the next seed.
        runs: number of runs. None means one run per file of a folder, one run if no value is
            random, and otherwise *random_runs*.
        random_runs: number of runs if values are random.

    Attributes:
        notes: a text if a single run is enough because no value is random; otherwise empty.

    Raises:
        ArgumentError: folders have different numbers of files, or no files.
        OperatorError: an input takes more memory than the set-up allows.
    """

    def __init__(
        self,
        setup: Setup,
        signature: str | None,
        details: Sequence[Details],
        request: InputRequest,
        runs: int | None,
        random_runs: int = RUNS,
    ) -> None:
        self._model = setup.loaded_model()
        require_room_for(setup, self._model, details)
        self._signature = signature
        self._details = details
        self._request = request
        self._words = _words_of_runs(request.values)
        self._random_scalar = ""  # name of an input
        self._last: tuple[int, FedRun] | None = None  # random values take longer than a small model
        self._count = runs or len(self._words)
        self.notes: tuple[str, ...] = ()
        if runs is None and len(self._words) == 1 and random_runs > 1:
            if self.run(0).seed is None:
                self.notes = ("no input is random, so one run is enough",)
            else:
                self._count = random_runs

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Log advice once if this block runs long and an input is a random integer scalar."""
        self.run(0)
        if not self._random_scalar:
            yield
            return
        text = (
            "random integers are of any size here: if %r counts the iterations of a loop, "
            "--distribution run draws a small one"
        )
        with logger.warning_when_slow(PATIENCE, text, self._random_scalar):
            yield

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Add advice about the input values to errors raised in this block."""
        try:
            yield
        except RuntimeError as error:
            wide = [e["name"] for e in self._details if np.dtype(e["dtype"]) in _WIDE]
            is_missing = "unresolved" in str(error)  # both runtimes use this word
            if wide and self._request.distribution == "inference_diff" and not is_missing:
                error.args = (
                    f"{error}; random integers are of any size here: if {wide[0]!r} holds indexes, "
                    "--distribution run draws small ones",
                )
            raise

    def run(self, number: int) -> FedRun:
        """Return the input values of run *number*, counted from 0.

        Raises:
            ArgumentError: an input cannot take a value, or no input has a given name.
        """
        if self._last is None or self._last[0] != number:
            self._last = number, self._run(number)
        return self._last[1]

    def _run(self, number: int) -> FedRun:
        words = self._words[number % len(self._words)]
        seed = self._request.seed + number
        request = replace(self._request, values=words, seed=seed)
        given = request.arrays(self._details, self._model, self._signature)
        random = [one for one in given if one.source == "random"]
        if self._request.distribution == "inference_diff":
            scalars = [one for one in random if one.values.dtype in _WIDE and one.values.size == 1]
            self._random_scalar = scalars[0].details["name"] if scalars else ""
        return FedRun(tuple(one.values for one in given), words, seed if random else None)


def _words_of_runs(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the user's texts for each run, in which folders are replaced by their files."""
    files = [_files(word) for word in words]
    counts = sorted({len(found) for found in files if found is not None})
    if len(counts) > 1:
        raise ArgumentError(f"the folders given as inputs hold {counts[0]} and {counts[-1]} files")
    return [
        tuple(w if f is None else f[run] for w, f in zip(words, files, strict=True))
        for run in range(counts[0] if counts else 1)
    ]


def _files(word: str) -> list[str] | None:
    """Return ``[NAME=]FILE`` for each file of the folder in *word*; None if it has no folder."""
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
