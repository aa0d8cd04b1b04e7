"""User-defined metrics: a user's function judges each row, and figures summarise all rows.

A metric is a function, or an object with two methods::

    def absolute_error(outputs, labels):
        return {"error": abs(outputs["y"] - labels["truth"]).mean()}

    class F1:
        def row(self, outputs, labels):        # anything that JSON has
            return [bool(outputs["y"] > 0.5), bool(labels["truth"])]

        def total(self, rows):                 # of all rows, or of as many drawn from them
            hits = sum(found and true for found, true in rows)
            return {"f1": 2 * hits / max(1, sum(found + true for found, true in rows))}

A function returns a number, or a mapping from names to numbers, for one row. The means over all
rows are the figures.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.tools.evaluation.task import content_digest
from delegraph.tools.user_code import last_place

Values = Mapping[str, NDArray[Any]]
Figures = dict[str, float]


class Metric(Protocol):
    """A metric of a data set, computed from one record per row."""

    def row(self, outputs: Values, labels: Values) -> Any:
        """Return the record of one row: any value that JSON can hold.

        Args:
            outputs: mapping from an output's name to its real numbers.
            labels: mapping from names to the row's arrays that are not inputs.
        """

    def total(self, rows: Sequence[Any]) -> Mapping[str, float]:
        """Return a mapping from each figure's name to its value, from the records of all rows."""


@dataclass(frozen=True, slots=True)
class MeanOfRows:
    """Metric made from a function: the means over all rows of the numbers that it returns.

    Attributes:
        name: name for a number that the function returns without a name.
        function: function that returns a number, or a mapping from names to numbers, for a row.
    """

    name: str
    function: Any

    def row(self, outputs: Values, labels: Values) -> Figures:
        """Return the function's numbers for a row: the model's *outputs* and the row's *labels*."""
        found = self.function(outputs, labels)
        if found is None:
            raise TypeError("it returned None, expected a number, or numbers by name")
        numbers = found if isinstance(found, Mapping) else {self.name: found}
        return {str(name): float(number) for name, number in numbers.items()}

    def total(self, rows: Sequence[Figures]) -> Figures:
        """Return the mean of each number over all rows."""
        return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


@dataclass(frozen=True, slots=True)
class NamedMetric:
    """A metric with its name and a description of its source.

    Attributes:
        name: ``package:function``.
        metric: the metric.
        source: digest of the file that defines the metric; empty if there is no file.
    """

    name: str
    metric: Metric
    source: str

    def row(self, outputs: Values, labels: Values, key: str) -> Any:
        """Return the record of the row *key*, from the model's *outputs* and the row's *labels*.

        Raises:
            ArgumentError: the metric failed; the message names the metric and the row.
        """
        try:
            return _plain(self.metric.row(outputs, labels))
        except Exception as error:
            raise ArgumentError(
                f"metric {self.name!r} failed on {key!r}: {_told(error)}; it got "
                f"outputs {_described(outputs)} and labels {_described(labels)}"
            ) from error

    def total(self, rows: Sequence[Any]) -> Figures:
        """Return the figures from the records of all rows.

        Raises:
            ArgumentError: the metric failed.
        """
        try:
            return {str(name): float(value) for name, value in self.metric.total(rows).items()}
        except Exception as error:
            raise ArgumentError(
                f"metric {self.name!r} failed on {len(rows)} rows: {_told(error)}"
            ) from error


def load_metric(name: str) -> NamedMetric:
    """Return the metric ``package:function`` in *name*; the current folder is searched, too.

    Raises:
        ArgumentError: the metric cannot be imported, or is neither a function nor an object with
            methods ``row`` and ``total``.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ArgumentError(f"metric {name!r}: expected package:function, as my_metrics:accuracy")
    if module_name.endswith(".py"):
        stem = Path(module_name).stem
        raise ArgumentError(
            f"metric {name!r} names a file: write {stem}:{attribute} in the folder of {stem}.py"
        )
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = getattr(import_module(module_name), attribute)
    except Exception as error:
        module = sys.modules.get(module_name)
        close = did_you_mean(attribute, [] if module is None else dir(module))
        raise ArgumentError(
            f"metric {name!r} cannot be imported: {type(error).__name__}: {error}{close}"
        ) from error
    return named_metric(found, name)


def named_metric(metric: Any, name: str | None = None) -> NamedMetric:
    """Return the metric for a function, an object with ``row`` and ``total``, or a class.

    Raises:
        ArgumentError: *metric* is none of these.
    """
    shown = name or str(getattr(metric, "__name__", type(metric).__name__))
    made = metric() if inspect.isclass(metric) else metric
    if not (hasattr(made, "row") and hasattr(made, "total")):
        if not callable(made):
            raise ArgumentError(
                f"metric {shown!r} is {type(made).__name__}, expected a function of outputs and "
                "labels, or an object with the methods row and total"
            )
        made = MeanOfRows(shown.rpartition(":")[2], made)
    return NamedMetric(shown, cast(Metric, made), _source_digest(metric))


def _source_digest(metric: Any) -> str:
    kind = metric if inspect.isclass(metric) or inspect.isroutine(metric) else type(metric)
    try:
        path = inspect.getsourcefile(kind)
    except TypeError:
        return ""
    return content_digest(Path(path).read_bytes()) if path and os.path.isfile(path) else ""


def _plain(value: Any) -> Any:
    """Convert NumPy's numbers and arrays in *value* to Python's, for JSON."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _told(error: Exception) -> str:
    """Text of the error of a metric, with the line of the user's code that raised it."""
    place = last_place(error)
    return f"{type(error).__name__}: {error}{f', at {place}' if place else ''}"


def _described(values: Values) -> str:
    kinds = (f"{name!r} {array.dtype.name} {list(array.shape)}" for name, array in values.items())
    return ", ".join(kinds) or "none"
