"""Columns with the best classes of each row, which replace a classifier's scores."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.scale.predictor import Predictor
from delegraph.scale.rows import Columns
from delegraph.tools.called_inputs import called_metadata
from delegraph.tools.model_call import Details, declared_shape
from delegraph.tools.model_outputs import MIN_CLASSES, best_classes, holds_scores

ASKED_CLASSES = 2
"""Least number of scores in an output without labels if the user asks for best classes."""


@dataclass(frozen=True)
class ClassColumns:
    """Columns with the best classes of one output.

    Attributes:
        details: details of the output that holds the scores.
        labels: names of the classes by index; if empty, classes are numbers.
        names: names of the columns of a class and of its score, best first.
    """

    details: Details
    labels: Sequence[str]
    names: Sequence[tuple[str, str]]

    def of(self, values: NDArray[Any], errors: Sequence[str]) -> Columns:
        """Return the columns with best classes and their scores, for the scores *values* of rows.

        A row whose text in *errors* is not empty gets None as class and NaN as score.
        """
        classes = np.full((len(self.names), len(values)), None, object)
        scores = np.full((len(self.names), len(values)), np.nan, self._score_dtype())
        for row, error in enumerate(errors):
            if error:
                continue
            best = best_classes(values[row], self.details, self.labels, len(self.names))
            for place, found in enumerate(best):
                number = str(found.index) if self.labels else found.index
                classes[place, row] = found.label or number
                scores[place, row] = found.score
        columns: Columns = {}
        for place, (name, score) in enumerate(self.names):
            columns |= {name: classes[place], score: scores[place]}
        return columns

    def _score_dtype(self) -> type[np.floating[Any]]:
        """Type of scores: float32, also for quantized ones, unless that would round the output."""
        dtype: np.dtype[Any] = np.dtype(self.details["dtype"])
        is_wide = dtype.itemsize > (4 if dtype.kind == "f" else 2)
        is_quantized = dtype.kind in "iu" and self.details["quantization"][0]
        return np.float64 if is_wide and not is_quantized else np.float32


@dataclass(frozen=True)
class Classes:
    """Columns with the best classes, by the column of the output that they replace.

    Attributes:
        outputs: the columns, by output.
        keeps_scores: whether the scores are written as well, because the user selected their
            columns.
    """

    outputs: Mapping[str, ClassColumns]
    keeps_scores: bool

    def identity(self) -> str:
        """Return a digest of labels and column names, which determine the written classes."""
        parts = [(column, each.labels, each.names) for column, each in self.outputs.items()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def replaced(self, outputs: Columns, errors: Sequence[str]) -> Columns:
        """Return *outputs* in which columns of best classes replace a classifier's scores."""
        found: Columns = {}
        for column, values in outputs.items():
            if column in self.outputs:
                found |= self.outputs[column].of(values, errors)
            if column not in self.outputs or self.keeps_scores:
                found[column] = values
        return found


def classes_of(
    predictor: Predictor, labels: Sequence[str], top: int, taken: Container[str]
) -> Classes:
    """Return the columns of best classes for all outputs that are class scores.

    If no output without labels has :data:`MIN_CLASSES` scores, :data:`ASKED_CLASSES` are enough.

    Args:
        predictor: predictor that computes the outputs.
        labels: names of the classes; empty means the names in the model's metadata, if any.
        top: number of classes; >= 1.
        taken: names of the data's columns.

    Raises:
        ArgumentError: no output has as many class scores as there are labels, or as *top* is.
    """
    scored = dict(_scored(predictor, labels)) or dict(_scored(predictor, labels, ASKED_CLASSES))
    labelled = {column: each for column, each in scored.items() if each[1]}
    scored = labelled or scored  # with labels, a vector of features does not count as scores
    if not scored:
        classes = f"{len(labels):,} classes, as there are labels" if labels else "classes"
        found = {name: declared_shape(each) for name, each in predictor.output_columns().items()}
        shapes = ", ".join(f"{name!r} {shape}" for name, shape in found.items())
        inputs = _input_shapes(predictor)
        if not labels and any(shape[1:] in inputs for shape in found.values()):
            shapes += "; without labels, no output of an input's shape counts"
        raise ArgumentError(f"no output holds scores of {classes}; outputs are {shapes}")
    sizes = {column: _size(details) for column, (details, _) in scored.items()}
    if top > max(sizes.values()):
        raise ArgumentError(f"top={top}: the model has {max(sizes.values())} classes")
    outputs = {}
    for column, (details, known) in scored.items():
        prefix = f"{column}_" if len(scored) > 1 else ""
        if not prefix and ("class" in taken or "score" in taken):
            prefix = "predicted_"
        ends = [""] if top == 1 else [f"_{place + 1}" for place in range(min(top, sizes[column]))]
        names = [(f"{prefix}class{end}", f"{prefix}score{end}") for end in ends]
        outputs[column] = ClassColumns(details, known, names)
    return Classes(outputs, predictor.names_outputs)


def has_labels(predictor: Predictor) -> bool:
    """Whether the metadata of *predictor*'s model names the classes of an output."""
    return any(labels for _, (_, labels) in _scored(predictor, ()))


def score_sizes(predictor: Predictor) -> dict[str, int]:
    """Number of classes of each output that holds scores, by column.

    It has no outputs that the predictor's arguments name.
    """
    if predictor.names_outputs:
        return {}
    return {column: _size(details) for column, (details, _) in _scored(predictor, ())}


def _size(details: Details) -> int:
    """Number of classes of an output."""
    return math.prod(map(abs, declared_shape(details)[1:]))


def _input_shapes(predictor: Predictor) -> list[list[int]]:
    """Dimensions of a row of each input."""
    return [declared_shape(details)[1:] for details in predictor.input_columns().values()]


def _scored(
    predictor: Predictor, labels: Sequence[str], least: int = MIN_CLASSES
) -> Iterator[tuple[str, tuple[Details, Sequence[str]]]]:
    """Yield each output that holds scores: its column, its details and the labels of its classes.

    *labels* are the user's names of the classes; if empty, the model's metadata names the classes.
    An output without labels has at least *least* scores, and not the shape of an input, as the
    outputs of autoencoders and states have.
    """
    metadata = called_metadata(predictor.loaded_model(), predictor.signature)
    inputs = _input_shapes(predictor)
    for column, details in predictor.output_columns().items():
        known = labels or metadata.tensor(int(details["index"])).axis_labels
        shape = declared_shape(details)
        row = np.broadcast_to(np.zeros((), details["dtype"]), [1, *map(abs, shape[1:])])
        if len(shape) < 2 or (not known and shape[1:] in inputs):
            continue
        if holds_scores(row, known, least):
            yield column, (details, known)
