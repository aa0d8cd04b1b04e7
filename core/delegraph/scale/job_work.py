"""Work of a job's processes: each computes one piece of rows after another."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import PredictionError
from delegraph.json_records import JsonRecord
from delegraph.scale.classes import Classes
from delegraph.scale.computing import ERROR, OnError
from delegraph.scale.input_columns import Inputs
from delegraph.scale.job_folder import Record
from delegraph.scale.outputs import output_format
from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import (
    Columns,
    emptied,
    empty_column,
    joined,
    require_no_clash,
    spread,
)
from delegraph.scale.sources import Source
from delegraph.tools.quantizing import dequantized
from delegraph.tools.whole_file import whole_file

ROW = "row"
"""Column with the number of each row in the data."""


@dataclass(frozen=True, slots=True)
class Stored(JsonRecord):
    """Quantization of a written output: ``real value = scale x (stored - zero_point)``.

    Attributes:
        scale: real value of one step of the stored integers.
        zero_point: stored integer of the real value 0.
    """

    scale: float
    zero_point: int

    def real(self, values: NDArray[Any], is_bad: Sequence[bool]) -> NDArray[Any]:
        """Return the real values of a column of stored integers, float32; NaN or None in bad rows.

        >>> Stored(0.5, -128).real(np.array([[-128], [0]], np.int8), [False, True]).tolist()
        [[0.0], [nan]]
        """
        if values.dtype == object:
            column = np.full(len(values), None, object)
            for place in np.flatnonzero(np.logical_not(is_bad)):
                column[place] = self.real(values[place][np.newaxis], [False])[0]
            return column
        details = {"quantization": (self.scale, self.zero_point)}
        real = dequantized(values, details).astype(np.float32)
        real[np.array(is_bad, bool)] = np.nan
        return real


@dataclass(frozen=True)
class Work:
    """Description of a job, sent to every process.

    Attributes:
        predictor: predictor that computes the rows; for bad rows it returns a reason.
        source: source of the rows.
        on_error: treatment of bad rows in the output: an error, a column with reasons, or omission.
        piece_rows: number of rows in a piece.
        output: path of the job's output.
        classes: columns that replace class scores; None keeps the scores.
        real: mapping from the column of an output that is written as real values to the
            quantization of its stored integers.
    """

    predictor: Predictor
    source: Source
    on_error: OnError
    piece_rows: int
    output: str
    classes: Classes | None = None
    real: Mapping[str, Stored] = field(default_factory=dict)

    def start(self) -> None:
        """Load the model, before the first piece.

        Raises:
            DelegraphError: the model cannot be loaded.
        """
        self.predictor.warm_up()

    def compute(self, number: int, path: str) -> Record:
        """Compute piece *number* of the rows, write its outputs to *path*, and return its record.

        Raises:
            PredictionError: a row is bad and *on_error* is ``"raise"``.
            DelegraphError: the model cannot be loaded, or the data do not fit it.
        """
        begin = time.perf_counter()
        before = self.predictor.metrics.incidents, self.predictor.metrics.lost_processes
        start = number * self.piece_rows
        stop = min(start + self.piece_rows, len(self.source))
        step = self.predictor.max_batch
        parts, bad = [], {}
        made: Collection[str] = ()
        for first in range(start, stop, step):
            columns, made, errors = self._batch(first, min(first + step, stop))
            parts.append(columns)
            bad.update(errors)
        columns = joined(parts)
        form = output_format(self.output)
        if form.has_nulls and bad and self.on_error == "column":
            places = [row - start for row in bad]
            columns |= {name: emptied(columns[name], places) for name in made}
        with whole_file(path) as partial:
            form.write(partial, columns)
        return Record(
            start=start,
            rows=stop - start,
            written=len(columns[ROW]),
            bad={str(row): reason for row, reason in bad.items()},
            seconds=time.perf_counter() - begin,
            incidents=self.predictor.metrics.incidents - before[0],
            lost_processes=self.predictor.metrics.lost_processes - before[1],
        )

    def _batch(self, start: int, stop: int) -> tuple[Columns, Collection[str], dict[int, str]]:
        """Return columns of some rows, the names of the outputs, and the reason for each bad row.

        The rows are *start* up to, but not including, *stop*.
        """
        rows = self.source.read(start, stop)
        reasons = [rows.unread.get(place, "") for place in range(stop - start)]
        read = np.array([place for place, reason in enumerate(reasons) if not reason], np.intp)
        outputs = self._outputs(rows.given)
        errors = list(outputs.pop(ERROR))
        for place, reason in zip(read, errors, strict=True):
            reasons[place] = reason
        if self.classes is not None:
            outputs = self.classes.replaced(outputs, errors)
        for name, stored in self.real.items():
            outputs[name] = stored.real(outputs[name], [bool(error) for error in errors])
        passed = {
            f"data_{name}" if name in (ROW, ERROR) else name: values
            for name, values in rows.passed.items()
        }
        require_no_clash(passed, outputs)
        columns: Columns = {ROW: np.arange(start, stop), **passed}
        columns |= {name: spread(v, read, stop - start) for name, v in outputs.items()}
        bad = {start + place: reason for place, reason in enumerate(reasons) if reason}
        if self.on_error == "raise" and bad:
            row, reason = min(bad.items())
            raise PredictionError(f"row {row}: {reason}", row=row)
        if self.on_error == "column":
            return columns | {ERROR: np.array(reasons, object)}, outputs.keys(), bad
        good = np.array([not reason for reason in reasons], bool)
        return {name: values[good] for name, values in columns.items()}, outputs.keys(), bad

    def _outputs(self, given: Columns) -> Columns:
        """Return the outputs for the readable rows *given*; empty columns if no row is readable."""
        outputs = self.predictor(given or no_rows(self.source.inputs))
        return {name: values for name, values in outputs.items() if name not in self.source.inputs}


def no_rows(inputs: Inputs) -> Columns:
    """Return a batch without rows that has the columns of *inputs*."""
    return {column: empty_column(entry) for column, entry in inputs.items()}
