"""Lifetimes of tensors: when each tensor of a plan is first written and last read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol


class Step(Protocol):
    """Interface of a node in an execution plan: its input and output tensors."""

    @property
    def inputs(self) -> Sequence[int]:
        """Indices of the input tensors; -1 for an absent input."""

    @property
    def outputs(self) -> Sequence[int]:
        """Indices of the output tensors; -1 for an absent output."""


class Lifetime(NamedTuple):
    """Plan positions between which a tensor holds a value that is still needed.

    Attributes:
        first: position that writes the tensor; -1 if it has a value before the plan starts.
        last: last position that writes or reads the tensor; the plan's length for a graph output.
    """

    first: int
    last: int


def tensor_lifetimes(
    steps: Sequence[Step], inputs: Iterable[int], outputs: Iterable[int]
) -> dict[int, Lifetime]:
    """Return the lifetime of every tensor in *steps*, *inputs* and *outputs*.

    A tensor that is read but never written (a constant, a variable) has a value from the start.

    Args:
        steps: in execution order.
        inputs: tensor indices of the graph inputs.
        outputs: tensor indices of the graph outputs.

    >>> from types import SimpleNamespace as Step
    >>> steps = [Step(inputs=[0], outputs=[1]), Step(inputs=[1, 0], outputs=[2])]
    >>> tensor_lifetimes(steps, inputs=[0], outputs=[2])
    {0: Lifetime(first=-1, last=1), 1: Lifetime(first=0, last=1), 2: Lifetime(first=1, last=2)}
    """
    first = dict.fromkeys((t for t in inputs if t >= 0), -1)
    last = dict(first)
    for position, step in enumerate(steps):
        for tensor in step.inputs:
            first.setdefault(tensor, -1)
            last[tensor] = position
        for tensor in step.outputs:
            first.setdefault(tensor, position)
            last[tensor] = position
    for tensor in outputs:
        first.setdefault(tensor, -1)
        last[tensor] = len(steps)
    return {t: Lifetime(first[t], last[t]) for t in sorted(first) if t >= 0}


def first_uses(steps: Iterable[Step]) -> dict[int, int]:
    """Return a number for each tensor, to sort tensors by their first use.

    If the step at position p uses the tensor first, the number is 2 p for a read, 2 p + 1 for a
    write.

    Args:
        steps: steps in execution order.
    """
    found: dict[int, int] = {}
    for position, step in enumerate(steps):
        for index in step.inputs:
            found.setdefault(index, 2 * position)
        for index in step.outputs:
            found.setdefault(index, 2 * position + 1)
    return found
