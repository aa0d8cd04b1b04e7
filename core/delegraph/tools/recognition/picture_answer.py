"""A model's outputs for a picture, with the data that recognition needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.metadata import ModelMetadata
from delegraph.graph.model import SubgraphSpec
from delegraph.tools.model_call import Details
from delegraph.tools.quantizing import dequantized

DEFAULT_THRESHOLD = 0.3
"""Score below which boxes and poses are left out by default."""

TensorValues = tuple[int, NDArray[np.float64]]
"""Index of a tensor, and its values as real numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A model's outputs for a picture, with the data needed to find boxes or classes in them.

    Attributes:
        graph: the subgraph that ran.
        outputs: details and values of each output, as ``get_tensor`` returned them.
        metadata: the author's metadata of the model.
        labels: the user's names of the classes; empty means the names in the metadata.
        threshold: the user's score threshold; None means the threshold in the metadata.
        size: width and height of the input that takes a picture; None if there is none.
    """

    graph: SubgraphSpec
    outputs: Sequence[tuple[Details, NDArray[Any]]]
    metadata: ModelMetadata
    labels: Sequence[str]
    threshold: float | None
    size: tuple[int, int] | None

    def made_by(self, op: str) -> list[TensorValues]:
        """Return the outputs that the operator *op* writes.

        The result is empty unless there is exactly one such operator, and all its results are
        outputs.
        """
        found = [operator for operator in self.graph.operators if operator.name == op]
        made = dict(self.real()) if len(found) == 1 else {}
        if len(found) != 1 or any(index not in made for index in found[0].outputs):
            return []
        return [(index, made[index]) for index in found[0].outputs]

    def real(self) -> list[TensorValues]:
        """Return the numeric outputs as real numbers (dequantized), with their details."""
        return [
            (int(details["index"]), dequantized(values, details))
            for details, values in self.outputs
            if values.dtype.kind in "fiu"
        ]

    def least_score(self, *tensors: int) -> float:
        """Return the score below which findings are omitted: the user's, or the metadata's, or 0.3.

        Args:
            tensors: indices of the outputs whose metadata may have a threshold.
        """
        said = [self.metadata.tensor(index).score_threshold for index in tensors]
        chosen = [self.threshold, *said, DEFAULT_THRESHOLD]
        return next(value for value in chosen if value is not None)


def stated_count(values: NDArray[np.float64]) -> int:
    """Return the number of results that a one-element output states; 0 if it is invalid.

    >>> stated_count(np.array([2.0])), stated_count(np.array([np.nan])), stated_count(np.zeros(0))
    (2, 0, 0)
    """
    first = values.reshape(-1)[:1]
    return max(0, int(first[0])) if len(first) and np.isfinite(first[0]) else 0


def picture_size(values: NDArray[Any]) -> tuple[int, int] | None:
    """Return width and height of an input if it is a single picture, else None.

    >>> picture_size(np.zeros((1, 4, 6, 3))), picture_size(np.zeros((1, 10)))
    ((6, 4), None)
    >>> picture_size(np.zeros((1, 3, 4, 6)))
    (6, 4)
    """
    shape = values.shape[-3:]
    if len(shape) == 3 and shape[2] not in (1, 3, 4):
        shape = (*shape[1:], shape[0])
    is_one = len(shape) == 3 and shape[2] in (1, 3, 4) and values.size == math.prod(shape)
    return (shape[1], shape[0]) if is_one and values.size else None
