"""What all recurrent operators share: the loop over time, states, and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.kernels.registration import Eval, Node, OpContext, input_tensor
from delegraph.kernels.tensor import Tensor

Array = NDArray[Any]


class Cell(Protocol):
    """One layer's arithmetic, bound to its weights."""

    def project(self, x: Array, aux: Array | None) -> Array:
        """Return what the inputs contribute at every time step.

        Args:
            x: ``[T, B, I]``.
            aux: a second input, ``[T, B, A]``, or None.

        Returns:
            ``[T, B, ...]``, a new array; each step gets its ``[B, ...]`` and may overwrite it.
        """

    def step(self, projected: Array, *states: Array) -> None:
        """Move the states on by one time step, in place; the first state is the output."""


@dataclass(frozen=True, slots=True)
class Direction:
    """One pass over a sequence.

    Attributes:
        cell: returns the cell; called at each invoke.
        input: ``[T, B, I]``, ``[B, T, I]`` or ``[B, I]``.
        aux_input: a second input of the same layout, or None.
        states: variable tensors of ``B * n`` elements; the first is the output state.
        output: like the input, with the output state in its last axis.
        offset: where the output state starts in the output's last axis.
        reverse: whether time runs backwards.
    """

    cell: Callable[[], Cell]
    input: Tensor
    aux_input: Tensor | None
    states: tuple[Tensor, ...]
    output: Tensor
    offset: int = 0
    reverse: bool = False

    def run(self, time_major: bool) -> None:
        """Run the whole sequence; reads and writes the states."""
        cell = self.cell()
        x = _time_first(self.input.data, time_major)
        aux = None if self.aux_input is None else _time_first(self.aux_input.data, time_major)
        states = [state.data.reshape(x.shape[1], -1) for state in self.states]
        y = _time_first(self.output.data, time_major)
        y = y[..., self.offset : self.offset + states[0].shape[1]]
        projected = cell.project(x, aux)
        for t in reversed(range(len(x))) if self.reverse else range(len(x)):
            cell.step(projected[t], *states)
            y[t] = states[0]


def sequence_eval(directions: Sequence[Direction], time_major: bool) -> Eval:
    """Return the function that runs all *directions*."""

    def run() -> None:
        for direction in directions:
            direction.run(time_major)

    return run


def bound_cell(make: Callable[[], Cell], weights: Iterable[Tensor]) -> Callable[[], Cell]:
    """Return a function that returns the cell: made once if all *weights* are constant."""
    if all(tensor.is_constant for tensor in weights):
        cell = make()
        return lambda: cell
    return make


def variable_input(context: OpContext, node: Node, i: int) -> Tensor:
    """Return input *i*, which the node also writes.

    Raises:
        OperatorError: it is absent or no variable.
    """
    tensor = input_tensor(context, node, i)
    if not tensor.is_variable:
        raise OperatorError(f"state {tensor.name!r} (input {i}) is not a variable tensor")
    return tensor


def require_shape(tensor: Tensor, shape: Sequence[int]) -> None:
    """Check a tensor's shape.

    Raises:
        OperatorError: it has another shape.
    """
    if tensor.shape != tuple(shape):
        raise OperatorError(
            f"tensor {tensor.name!r} has shape {list(tensor.shape)}, expected {list(shape)}"
        )


def require_rank(tensor: Tensor, rank: int) -> None:
    """Check a tensor's number of dimensions.

    Raises:
        OperatorError: it has another number.
    """
    if len(tensor.shape) != rank:
        raise OperatorError(
            f"tensor {tensor.name!r} has shape {list(tensor.shape)}, expected {rank} dimensions"
        )


def _time_first(array: Array, time_major: bool) -> Array:
    """Return a view of a sequence, ``[T, B, N]``; a single step ``[B, N]`` has T = 1."""
    if array.ndim == 2:
        return array[None]
    return array if time_major else array.swapaxes(0, 1)
