"""A model with delegates as a picklable object that computes batches."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from delegraph.errors import ArgumentError
from delegraph.graph.model import Model
from delegraph.locks import Lock
from delegraph.runtime.arguments import suggesting_keywords
from delegraph.scale.batching import Batching
from delegraph.scale.computing import (
    ERROR,
    RESTARTS,
    Computer,
    Facts,
    IsolatedComputer,
    OnError,
    Recipe,
    RowComputer,
    RowIsolation,
    columns_by_name,
    require_one_of,
    require_own_columns,
    setup_of,
)
from delegraph.scale.metrics import Metrics
from delegraph.scale.rows import (
    Columns,
    Given,
    column_for,
    columns_of,
    fitted_columns,
    require_no_clash,
    row_count,
    spread,
)
from delegraph.tools.evaluation.identity import setup_identity, versions
from delegraph.tools.model_call import Details
from delegraph.tools.setup import Setup
from delegraph.tools.tensor_names import by_own_names, names_by_any_name, with_tensor_names

_Value = TypeVar("_Value")


class Predictor:
    """Computes batches of rows by a model with delegates, in any process.

    A pickled predictor holds only its arguments; each process creates its own interpreter at the
    first call. So delegates are given by name, because delegate objects cannot be pickled.

    Columns with the names of inputs go to the model. The result has all other columns unchanged,
    and a column for each output. Rows keep their order. Input arrays are never changed.

    >>> import numpy as np
    >>> predictor = Predictor("docs/demo/models/sines.tflite", delegates=["sin"])
    >>> batch = predictor({"id": np.arange(3), "x": np.array([[0], [1], [2]], np.float32)})
    >>> sorted(batch)
    ['id', 'x', 'y']

    Attributes:
        setup: the model, and the runtime, delegates and threads that run it.
        on_error: treatment of rows on which the model fails.
        metrics: counts and times in this process.
    """

    @suggesting_keywords
    def __init__(
        self,
        model: str | os.PathLike[str] | Setup,
        *,
        delegates: Sequence[str] | None = None,
        signature: str | None = None,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        batching: Batching = "auto",
        max_batch: int = 32,
        num_threads: int | None = 1,
        on_error: OnError = "raise",
        isolation: RowIsolation = "none",
        timeout: float | None = None,
        max_restarts: int = RESTARTS,
    ) -> None:
        """Store the description of a model; it is loaded at the first call.

        Args:
            model: path of the model file, or a set-up with further arguments of ``Interpreter``.
            delegates: names of installed delegates, ``"name:option=value"``.
            signature: name of the signature to call; by default the model's only one, if any.
            inputs: mapping from an input to its column; by default the column of the same name. The
                name is that of the signature, or of the tensor in the file.
            outputs: mapping from an output to its column; other outputs are omitted. By default,
                all outputs have columns of their names.
            batching: method by which rows become calls. ``"resize"`` computes several rows together
                by resizing the inputs. ``"pad"`` pads to the batch size that the model declares.
                ``"rows"`` computes each row alone. ``"auto"`` means ``"pad"`` if the model declares
                a batch size. Otherwise it means ``"resize"`` if the first batch shows that the
                results are the same, else ``"rows"``.
            max_batch: largest number of rows in a call; >= 1.
            num_threads: threads of an interpreter; 1 by default, as jobs use a process per core.
            on_error: treatment of rows on which the model fails. ``"raise"`` ends the batch with an
                error. ``"column"`` gives the reason in the column ``error`` (``""`` for good rows)
                and zeros or NaN as outputs. ``"drop"`` omits these rows.
            isolation: ``"process"`` computes in a child process. A row that kills the child, or
                takes too long, is treated like a row on which the model fails.
            timeout: seconds that ``max_batch`` rows may take in the child; the first batch of a
                size also prepares the model in this time.
            max_restarts: maximal number of restarts after a child has died; >= 0. A bad row in a
                batch needs two restarts.

        Raises:
            ArgumentError: an argument has an invalid value.
        """
        if max_batch < 1:
            raise ArgumentError(f"max_batch is {max_batch}, expected 1 or more")
        require_one_of("batching", batching, ("auto", "resize", "pad", "rows"))
        require_one_of("on_error", on_error, ("raise", "column", "drop"))
        require_one_of("isolation", isolation, ("none", "process"))
        if timeout is not None and isolation == "none":
            raise ArgumentError("timeout needs isolation='process': a call cannot end here")
        self.setup = setup_of(model, delegates, num_threads)
        self._recipe = Recipe(self.setup, signature, batching, max_batch)
        self._inputs = columns_by_name("inputs", inputs)
        self._outputs = None if outputs is None else columns_by_name("outputs", outputs)
        require_own_columns(self._outputs or {})
        self.on_error: OnError = on_error
        self._isolation = isolation
        self._timeout = timeout
        self._max_restarts = max_restarts
        self._forget()

    def _forget(self) -> None:
        """Reset to the state of a new process, without a loaded model."""
        self.metrics = Metrics()
        self._facts: Facts | None = None
        self._batching = self._recipe.batching
        self._process = os.getpid()
        self._lock = Lock()
        self._computer: Computer = RowComputer(self._recipe)
        if self._isolation == "process":
            self._computer = IsolatedComputer(self._recipe, self._timeout, self._max_restarts)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling: the arguments without the loaded model."""
        loaded = ("metrics", "_facts", "_batching", "_process", "_lock", "_computer")
        return {name: value for name, value in vars(self).items() if name not in loaded}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the arguments from *state*, with nothing loaded."""
        vars(self).update(state)
        self._forget()

    def __call__(self, batch: Mapping[str, ArrayLike]) -> Columns:
        """Return a batch with the outputs of each row.

        Args:
            batch: mapping from a column to its values of shape ``[rows, ...]``. A row of an input's
                column has the input's declared shape, with or without its first dimension.

        Returns:
            Mapping from a column to its values of shape ``[rows, ...]``. An output whose shape
            differs between rows is a column of arrays.

        Raises:
            ArgumentError: a column is missing, or its rows have another dtype or shape. With
                ``on_error="column"`` or ``"drop"``, single rows that do not fit are bad rows.
            DelegraphError: the model cannot be loaded, or fails on a row with ``on_error="raise"``.
        """
        with self._ready() as facts:
            columns = columns_of(batch, map(self._column_of, facts.inputs))
            given, errors = fitted_columns(
                self._given(columns, facts.inputs), omits_misfits=self.on_error != "raise"
            )
            start = time.perf_counter()
            found = self._computer.compute(given, self.on_error == "raise")
            good = [row for row in range(row_count(columns)) if row not in errors]
            errors |= {good[row]: reason for row, reason in found.errors.items()}
            self.metrics.add(row_count(columns), len(errors), time.perf_counter() - start)
            self._batching = found.batching
            self.metrics.incidents = found.incidents
            self.metrics.lost_processes = self._computer.lost
            passed = columns.keys() - {self._column_of(entry) for entry in facts.inputs}
        outputs = self._renamed(found.outputs)
        require_no_clash(passed, outputs)
        return self._answer(columns, outputs, errors)

    @property
    def batching(self) -> Batching:
        """Method of batching: ``"resize"``, ``"pad"`` or ``"rows"``, or ``"auto"`` at first."""
        return self._batching

    def replaced(
        self,
        *,
        model: str | None = None,
        batching: Batching | None = None,
        on_error: OnError | None = None,
    ) -> Predictor:
        """Return a copy of the predictor with the given arguments changed, and no model loaded."""
        other = copy(self)
        if on_error is not None:
            other.on_error = on_error
        if model is not None:
            other.setup = replace(self.setup, model=model)
        batching = batching or self._recipe.batching
        other._recipe = replace(self._recipe, setup=other.setup, batching=batching)
        other._forget()
        return other

    @property
    def signature(self) -> str | None:
        """Name of the signature to call; None means the model's only one."""
        return self._recipe.signature

    @property
    def max_batch(self) -> int:
        """Largest number of rows in a call."""
        return self._recipe.max_batch

    @property
    def names_outputs(self) -> bool:
        """Whether the argument *outputs* lists the outputs."""
        return self._outputs is not None

    def input_columns(self) -> dict[str, Details]:
        """Return a mapping from each input's column to the details of the input.

        Raises:
            DelegraphError: the model cannot be loaded.
        """
        with self._ready() as facts:
            inputs = with_tensor_names(facts.inputs, self._computer.model(), self.signature)
            return {self._column_of(entry): entry for entry in inputs}

    def output_columns(self) -> dict[str, Details]:
        """Return a mapping from each output's column to the details of the output.

        Raises:
            DelegraphError: the model cannot be loaded.
        """
        with self._ready() as facts:
            return self._renamed({entry["name"]: entry for entry in facts.outputs})

    def loaded_model(self) -> Model:
        """Return the content of the model's file, which is loaded only once.

        Raises:
            DelegraphError: the model cannot be loaded.
        """
        with self._ready():
            return self._computer.model()

    def try_batching(self, batch: Columns) -> None:
        """Decide by the good rows of *batch* how rows become calls; see :attr:`batching`.

        Raises:
            DelegraphError: the model cannot be loaded, or does not fit the columns.
        """
        with self._ready() as facts:
            given, _ = fitted_columns(self._given(batch, facts.inputs), omits_misfits=True)
            found = self._computer.compute(given, stop=False)
            if found.errors:  # bad rows prevented a batch of the good ones
                given = {name: np.delete(v, list(found.errors), 0) for name, v in given.items()}
                found = self._computer.compute(given, stop=False)
            self._batching = found.batching

    def warm_up(self) -> None:
        """Load the model and its delegates now, before the first call.

        Raises:
            DelegraphError: the model cannot be loaded.
        """
        with self._ready():
            pass

    def close(self) -> None:
        """Close the interpreter or the child process; the next call creates a new one.

        Metrics are kept.
        """
        if os.getpid() == self._process:
            self._computer.close()
        metrics = self.metrics
        self._forget()
        self.metrics = metrics

    def __repr__(self) -> str:
        return f"<Predictor {self.setup}>"

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def identity(self) -> dict[str, Any]:
        """Return JSON data of each part that determines the results, by the part's name.

        Raises:
            DelegraphError: the model cannot be loaded.
        """
        with self._ready():
            placement, model = self._computer.placement(), self._computer.model()
        recipe = self._recipe
        parts = {
            "model and set-up": setup_identity(self.setup, model),
            "versions": versions(),
            "placement": placement,
            "arguments": {
                "signature": recipe.signature,
                "inputs": self._inputs,
                "outputs": self._outputs,
                "batching": recipe.batching,
                "max_batch": recipe.max_batch,
                "on_error": self.on_error,
            },
        }
        return dict(json.loads(json.dumps(parts, default=str)))

    def fingerprint(self) -> str:
        """Return a digest of :meth:`identity`, 64 hexadecimal digits.

        The digest covers the model's bytes, the versions of Delegraph and of the delegates, the
        delegates' options, the placement, and the predictor's arguments. Predictors with equal
        fingerprints may share a job's results.

        Raises:
            DelegraphError: the model cannot be loaded.
        """
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()

    @contextmanager
    def _ready(self) -> Iterator[Facts]:
        """Load the model if necessary; during the block, no other thread uses it."""
        if os.getpid() != self._process:  # a forked process lacks the parent's threads
            self._forget()
        with self._lock:
            if self._facts is None:
                start = time.perf_counter()
                self._facts = self._loaded()
                self.metrics.load_seconds = time.perf_counter() - start
            yield self._facts

    def _loaded(self) -> Facts:
        facts = self._computer.load()
        self._inputs = self._by_name("input", self._inputs, facts.inputs)
        if self._outputs is not None:
            self._outputs = self._by_name("output", self._outputs, facts.outputs)
        self._batching = facts.batching
        return facts

    def _by_name(
        self, kind: str, columns: Mapping[str, str], details: Sequence[Details]
    ) -> dict[str, str]:
        """Return *columns* by the names in *details*, from any names of the tensors."""
        if not columns:
            return {}
        known = names_by_any_name(details, self._computer.model(), self.signature)
        return by_own_names(kind, columns, known)

    def _column_of(self, entry: Details) -> str:
        return str(self._inputs.get(entry["name"], entry["name"]))

    def _given(self, columns: Columns, inputs: Sequence[Details]) -> Given:
        """Return the columns for the model's inputs."""
        named = [(entry, self._column_of(entry)) for entry in inputs]
        return [(column_for(entry, columns, name), entry, name) for entry, name in named]

    def _renamed(self, outputs: dict[str, _Value]) -> dict[str, _Value]:
        """Return the values of the selected outputs, by column name."""
        if self._outputs is None:
            return outputs
        return {column: outputs[name] for name, column in self._outputs.items()}

    def _answer(self, columns: Columns, made: Columns, errors: Mapping[int, str]) -> Columns:
        """Return a batch's result: *columns*, good rows' outputs *made*, and *errors* by row."""
        rows = row_count(columns)
        good = np.array([row for row in range(rows) if row not in errors], np.intp)
        if self.on_error == "drop":
            return {**{name: values[good] for name, values in columns.items()}, **made}
        if errors:
            made = {name: spread(values, good, rows) for name, values in made.items()}
        if self.on_error == "column":
            made[ERROR] = np.array([errors.get(row, "") for row in range(rows)], object)
        return {**columns, **made}
