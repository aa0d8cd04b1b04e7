"""One case of a sweep: a model with its input arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Arrays = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class SweepCase:
    """A generated model with the inputs of a few invokes.

    Attributes:
        op: name of the operator that the case is about; a custom operator's own name.
        content: the ``.tflite`` file.
        steps: arrays for the graph inputs at each of consecutive invokes. An array of another shape
            than the input has resizes the input first.
        is_random: whether outputs are random numbers: only their shapes can be compared.
        tolerance: largest difference of floats to the official interpreter, relative and beside the
            largest output.
        described: types, options and oddities, on one line.
        threads: of the delegate's side; the other side has one.
    """

    op: str
    content: bytes
    steps: tuple[Arrays, ...] = ((),)
    is_random: bool = False
    tolerance: float = 1e-5
    described: str = ""
    threads: int = 1
