"""Computers: objects that compute rows with an interpreter, here or in a child process.

A bad row has no outputs, because the model fails on it, kills its process or takes too long.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from delegraph.errors import (
    ArgumentError,
    ArgumentTypeError,
    DelegraphError,
    PredictionError,
    in_words,
)
from delegraph.graph.model import Model
from delegraph.processes.ending import Death
from delegraph.processes.worker import Worker
from delegraph.quantities import plural
from delegraph.scale.batching import BatchedModel, Batching, empty_outputs
from delegraph.scale.rows import Columns, joined, row_count
from delegraph.tools.model_call import Details
from delegraph.tools.setup import Setup

OnError = Literal["raise", "column", "drop"]
"""Treatment of a row on which the model fails; see :class:`~.predictor.Predictor`."""

RowIsolation = Literal["none", "process"]
"""Whether rows are computed in a child process, so that a crash ends only the child."""

ERROR = "error"
"""Name of the column with the reason why a row has no outputs."""

RESTARTS = 100
"""Default number of times that a child process is started again after a row has killed it."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A picklable description of the computation: set-up, signature and batching.

    Attributes:
        setup: the model, and the runtime, delegates and threads that run it.
        signature: name of the signature to call; None means the only signature.
        batching: method by which rows become calls.
        max_batch: largest number of rows in a call.
    """

    setup: Setup
    signature: str | None
    batching: Batching
    max_batch: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties of a loaded model: inputs, outputs, method of batching.

    Attributes:
        inputs: details of each input.
        outputs: details of each output.
        batching: method by which rows become calls.
    """

    inputs: list[Details]
    outputs: list[Details]
    batching: Batching


@dataclass(frozen=True, slots=True)
class Computed:
    """Results of the rows of a batch: outputs and errors.

    Attributes:
        outputs: outputs of the good rows, in order.
        errors: mapping from the index of a bad row to the reason why it has no outputs.
        batching: method by which rows become calls; ``"auto"`` if it is not known yet.
        incidents: number of delegate failures so far after which Delegraph went on.
    """

    outputs: Columns
    errors: Mapping[int, str]
    batching: Batching
    incidents: int


class Computer(Protocol):
    """Interface of an object that computes rows with a loaded model, here or in a child process."""

    @property
    def lost(self) -> int:
        """Number of child processes that have died while they computed a row."""

    def load(self) -> Facts:
        """Load the model, unless it is loaded.

        Raises:
            DelegraphError: the model cannot be loaded.
        """

    def model(self) -> Model:
        """Return the content of the model's file."""

    def compute(self, given: Columns, stop: bool) -> Computed:
        """Compute the rows of a batch.

        Args:
            given: column of each input, by its name.
            stop: whether the first bad row raises an error. If False, the other rows are computed,
                and the result has the reason for each bad row.

        Raises:
            PredictionError: a row is bad, and *stop* is True.
            ArgumentError: the computation failed, but not because of a single row.
        """

    def placement(self) -> dict[str, Any]:
        """Return the placement of nodes as JSON data."""

    def close(self) -> None:
        """Release the model."""


class RowComputer:
    """Computes rows with an interpreter in this process."""

    lost = 0

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._model: BatchedModel | None = None

    def _loaded(self) -> BatchedModel:
        if self._model is None:
            recipe = self._recipe
            self._model = BatchedModel(
                recipe.setup, recipe.signature, recipe.batching, recipe.max_batch
            )
        return self._model

    def load(self) -> Facts:
        """Load the model, unless it is loaded."""
        model = self._loaded()
        return Facts(model.inputs, model.outputs, model.batching)

    def model(self) -> Model:
        """Return the content of the model's file."""
        return self._loaded().model()

    def placement(self) -> dict[str, Any]:
        """Return the placement of nodes as JSON data."""
        return self._loaded().placement()

    def compute(self, given: Columns, stop: bool) -> Computed:
        """Compute the rows of *given*, columns by input name, and find the bad rows.

        With *stop*, the first bad row ends the computation.

        A batch on which the model fails is halved again and again until each bad row is found.
        """
        model = self._loaded()
        errors: dict[int, str] = {}
        parts: list[Columns] = []
        waiting = [range(row_count(given))]
        while waiting:
            rows = waiting.pop()
            try:
                parts.append(model({name: v[rows.start : rows.stop] for name, v in given.items()}))
            except ArgumentError:  # the computation failed, but no single row is to blame
                raise
            except DelegraphError as error:
                if len(rows) > 1:
                    middle = (rows.start + rows.stop) // 2
                    waiting += [range(middle, rows.stop), range(rows.start, middle)]
                elif stop:
                    raise bad_row(rows.start, in_words(error)) from error
                else:
                    errors.update(dict.fromkeys(rows, in_words(error)))
        outputs = joined(parts) or empty_outputs(model.inputs, model.outputs, given)
        return Computed(outputs, errors, model.batching, model.incidents())

    def close(self) -> None:
        """Close the model's interpreters."""
        model, self._model = self._model, None
        if model is not None:
            model.close()


class IsolatedComputer:
    """Computes rows in a child process, which a row may kill or block for too long.

    When a batch kills or blocks the child, its rows are computed one by one in a new child. The row
    during which that child ends is bad.

    Args:
        recipe: description of the computation.
        timeout: seconds that ``max_batch`` rows may take; None means no limit.
        max_restarts: maximal number of restarts after a child has died.
    """

    def __init__(self, recipe: Recipe, timeout: float | None, max_restarts: int) -> None:
        self.lost = 0
        self._max_batch = recipe.max_batch
        self._max_restarts = max_restarts
        self._process = Worker(RowComputer, recipe, time_limit=timeout, records=(Facts, Computed))
        self._setup = recipe.setup
        self._model: Model | None = None
        self._facts: Facts | None = None
        self._batching = recipe.batching
        self._past_incidents = 0  # incidents of child processes that died
        self._incidents = 0

    def load(self) -> Facts:
        """Start the child process and load the model in it; there is no time limit."""
        if self._facts is None or not self._process.is_alive:
            self._facts = self._patiently("load")
        return self._facts

    def model(self) -> Model:
        """Return the content of the model's file, loaded in this process, too."""
        if self._model is None:
            self._model = self._setup.loaded_model()
        return self._model

    def placement(self) -> dict[str, Any]:
        """Return the placement of nodes as JSON data."""
        found: dict[str, Any] = self._patiently("placement")
        return found

    def _patiently(self, method: str) -> Any:
        answer = self._process.ask(method, patiently=True)
        if isinstance(answer, Death):
            raise PredictionError(f"while the model was loaded, {answer.text}")
        return answer

    def compute(self, given: Columns, stop: bool) -> Computed:
        """Compute the rows of *given* in the child process; if *stop*, a bad row is an error."""
        found: list[Computed] = []
        errors: dict[int, str] = {}
        for start in range(0, row_count(given), self._max_batch):
            piece = {name: v[start : start + self._max_batch] for name, v in given.items()}
            for place, answer in self._answers(piece):
                if isinstance(answer, Death):
                    errors[start + place] = answer.text
                else:
                    errors.update({start + place + i: text for i, text in answer.errors.items()})
                    found.append(answer)
                if stop and errors:
                    row = min(errors)
                    raise bad_row(row, errors[row])
        good = [one.outputs for one in found if row_count(one.outputs)]
        outputs = joined(good)
        if not outputs:
            facts = self.load()
            outputs = empty_outputs(facts.inputs, facts.outputs, given)
        batching = found[-1].batching if found else self._batching
        return Computed(outputs, errors, batching, self._past_incidents + self._incidents)

    def _answers(self, given: Columns) -> Iterator[tuple[int, Computed | Death]]:
        """Yield the results of *given* from the child process, each with its first row's index.

        If the whole batch ends the child, its rows are sent one by one, with a result for each. A
        result may be the description of the child's death.
        """
        answer = self._asked(given)
        if isinstance(answer, Computed) or row_count(given) == 1:
            yield 0, answer
            return
        for row in range(row_count(given)):
            yield row, self._asked({name: v[row : row + 1] for name, v in given.items()})

    def _asked(self, given: Columns) -> Computed | Death:
        """Return the child's results for the rows *given*; if it dies, a description instead."""
        self.load()
        answer: Computed | Death = self._process.ask("compute", given, False)
        if isinstance(answer, Computed):
            self._incidents = answer.incidents
        else:
            self._past_incidents += self._incidents
            self._incidents = 0
            self.lost += 1
            if self.lost > self._max_restarts:
                raise PredictionError(
                    f"{answer.text}; rows have ended {self.lost} processes, and none is started "
                    f"again: the limit is {plural(self._max_restarts, 'restart')}"
                )
        return answer

    def close(self) -> None:
        """End the child process."""
        self._process.close()


def bad_row(row: int, reason: str) -> PredictionError:
    """Return the error with the *reason* why the model cannot compute row *row* of a batch."""
    return PredictionError(f"row {row}: {reason}", row=row)


def require_one_of(name: str, value: str, choices: Sequence[str]) -> None:
    """Check that the argument *name* has one of its values.

    Raises:
        ArgumentError: it has another value.
    """
    if value not in choices:
        *others, last = map(repr, choices)
        raise ArgumentError(f"{name} is {value!r}, expected {', '.join(others)} or {last}")


def setup_of(
    model: str | os.PathLike[str] | Setup, delegates: Sequence[str] | None, num_threads: int | None
) -> Setup:
    """Set-up of a predictor: *model* itself if it is one.

    Args:
        model: path of the model file, or a set-up.
        delegates: names of installed delegates; None for the default.
        num_threads: threads of an interpreter.

    Raises:
        ArgumentError: an argument is of another type.
    """
    if isinstance(model, Setup):
        if delegates is not None:
            raise ArgumentError("a Setup includes its delegates; set them there")
        return model
    if not isinstance(model, str | os.PathLike):
        what = f"{len(model):,} bytes" if isinstance(model, bytes) else repr(model)
        raise ArgumentTypeError(f"model is the path of a model file, or a Setup, not {what}")
    if isinstance(delegates, str):
        raise ArgumentError(f"delegates is a list; write delegates=[{delegates!r}]")
    names = None if delegates is None else tuple(delegates)
    if not all(isinstance(name, str) for name in names or ()):
        raise ArgumentError(f"delegates are names, as objects are not pickled, not {names}")
    return Setup(os.fspath(model), delegates=names, threads=num_threads)


def columns_by_name(argument: str, given: Mapping[str, str] | None) -> dict[str, str]:
    """Copy of the mapping *given*, the value of *argument*, from tensors to columns.

    Raises:
        ArgumentError: *given* is no mapping.
    """
    if given is not None and not isinstance(given, Mapping):
        names = given if isinstance(given, list | tuple) else [given]
        example = ", ".join(f'"{name}": "column"' for name in names)
        raise ArgumentTypeError(
            f"{argument} maps names in the model to columns, not {given!r}; "
            f"write {argument}={{{example}}}"
        )
    return dict(given or {})


def require_own_columns(outputs: Mapping[str, str]) -> None:
    """Check that no two of *outputs*, a mapping from outputs to columns, have one column.

    Raises:
        ArgumentError: a column is given twice.
    """
    for column, count in Counter(outputs.values()).items():
        if count > 1:
            names = " and ".join(repr(name) for name in outputs if outputs[name] == column)
            raise ArgumentError(f"outputs: {names} have the same column {column!r}; give each one")
