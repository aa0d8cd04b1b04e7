"""One case of a sweep: a model and its input arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Arrays = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class SweepCase:
    """A generated model with the inputs of a few invokes.

    Attributes:
        op: name of the operator that the case tests.
        content: bytes of the ``.tflite`` file.
        steps: arrays for the graph inputs at each of consecutive invokes. An array of another shape
            than the input's resizes the input first.
        is_random: whether outputs are random numbers, so that only shapes can be compared.
        tolerance: largest difference of floats from the official interpreter, as a share of the
            value and of the largest output.
        described: types, options and oddities (random changes) of the case, on one line.
        threads: number of threads of the tested side; the other side has one.
    """

    op: str
    content: bytes
    steps: tuple[Arrays, ...] = ((),)
    is_random: bool = False
    tolerance: float = 1e-5
    described: str = ""
    threads: int = 1


def named_arrays(steps: Sequence[Sequence[NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Arrays of consecutive invokes by their names in files, such as ``invoke0_input1``."""
    return {f"invoke{i}_input{j}": x for i, step in enumerate(steps) for j, x in enumerate(step)}


def feed(interpreter: Any, steps: tuple[Arrays, ...], step: int) -> None:
    """Set the inputs for invoke number *step*; resize and allocate if necessary."""
    details = interpreter.get_input_details()
    is_resized = False
    for detail, array in zip(details, steps[step], strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
            is_resized = True
    if is_resized or not step:
        interpreter.allocate_tensors()
    for detail, array in zip(details, steps[step], strict=True):
        interpreter.set_tensor(detail["index"], array)
