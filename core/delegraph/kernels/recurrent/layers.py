"""Parts that all recurrent operators share: the loop over time, the states and the checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import option, require_shape
from delegraph.operators.registration import Eval, Node, OpContext, output_tensor
from delegraph.operators.tensor import Tensor

Array = NDArray[Any]


class Cell(Protocol):
    """Arithmetic of one layer for one time step, with the layer's weights."""

    def project(self, x: Array, aux: Array | None) -> Array:
        """Return the products of inputs and input weights, for all time steps at once.

        Args:
            x: the inputs of all time steps, ``[T, B, I]``.
            aux: a second input, ``[T, B, A]``; None if there is none.

        Returns:
            ``[T, B, ...]``, a new array; each time step gets its part ``[B, ...]`` and may
            overwrite it.
        """

    def step(self, projected: Array, *states: Array) -> None:
        """Compute one time step and update the *states* in place; the first state is the output.

        *projected* is one time step of :meth:`project`'s result.
        """


class Sequence3D(Protocol):
    """The sequence that a layer reads: a tensor, or a view of a tensor's elements."""

    @property
    def data(self) -> Array:
        """Elements of the sequence at the current invoke: ``[T, B, I]`` or ``[B, T, I]``."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Reads a sequence forwards or backwards with a cell, and writes the outputs.

    Attributes:
        cell: function that returns the cell; called at each invoke.
        input: sequence of inputs, ``[T, B, I]``, ``[B, T, I]`` or ``[B, I]``.
        aux_input: a second input of the same layout; None if there is none.
        states: variable tensors of ``B * n`` elements; the first is the output state.
        output: sequence of outputs, laid out like the input, with the output state in its last
            axis.
        offset: position at which the output state starts in the output's last axis.
        reverse: whether time runs backwards.
    """

    cell: Callable[[], Cell]
    input: Sequence3D
    aux_input: Sequence3D | None
    states: tuple[Tensor, ...]
    output: Tensor
    offset: int = 0
    reverse: bool = False

    def run(self, time_major: bool) -> None:
        """Run the cell over the whole sequence, and update the states.

        *time_major* says whether time is the first axis of inputs and output.
        """
        x = time_first(self.input.data, time_major)
        if not x.shape[1]:
            return
        aux = None if self.aux_input is None else time_first(self.aux_input.data, time_major)
        states = [state.data.reshape(x.shape[1], -1) for state in self.states]
        y = time_first(self.output.data, time_major)
        y = y[..., self.offset : self.offset + states[0].shape[1]]
        cell = self.cell()
        projected = cell.project(x, aux)
        for t in reversed(range(len(x))) if self.reverse else range(len(x)):
            cell.step(projected[t], *states)
            y[t] = states[0]


def sequence_eval(directions: Sequence[Direction], time_major: bool) -> Eval:
    """Return the evaluation that runs all *directions*, one after the other.

    *time_major* says whether time is the first axis of inputs and outputs.
    """

    def run() -> None:
        for direction in directions:
            direction.run(time_major)

    return run


@dataclass(frozen=True, slots=True)
class Pass:
    """The cell, states and output length of one direction of a bidirectional layer.

    Attributes:
        cell: function that returns the cell; called at each invoke.
        states: variable tensors; the first is the output state.
        n_output: length of the output state.
    """

    cell: Callable[[], Cell]
    states: tuple[Tensor, ...]
    n_output: int


def bidirectional_eval(
    context: OpContext,
    node: Node,
    x: Tensor,
    inputs: tuple[Sequence3D, Sequence3D | None],
    passes: tuple[Pass, Pass],
    rounds: int = 1,
) -> Eval:
    """Set the output shapes of a bidirectional layer, and return its evaluation.

    Args:
        context: context of the subgraph.
        node: the node, whose options say whether outputs are merged and whether time is the first
            axis.
        x: the input of the forward pass.
        inputs: the input of the backward pass, and the auxiliary input of both passes.
        passes: the forward pass and the backward pass.
        rounds: number of runs over the whole sequence; each run begins with the states of the
            previous run.
    """
    x_backward, aux = inputs
    forward, backward = passes
    time_major = bool(option(node, "time_major", False))
    y = output_tensor(context, node, 0)
    if option(node, "merge_outputs", False):
        context.resize_tensor(y, (*x.shape[:2], forward.n_output + backward.n_output))
        y_backward, offset = y, forward.n_output
    else:
        y_backward, offset = output_tensor(context, node, 1), 0
        context.resize_tensor(y, (*x.shape[:2], forward.n_output))
        context.resize_tensor(y_backward, (*x.shape[:2], backward.n_output))
    directions = (
        Direction(forward.cell, x, aux, forward.states, y),
        Direction(backward.cell, x_backward, aux, backward.states, y_backward, offset, True),
    )
    return sequence_eval(directions * rounds, time_major)


def stacked_inputs(
    x: Tensor, aux_input: Tensor | None, *, has_aux_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the backward input and the auxiliary input of a stacked bidirectional layer.

    *x* is the layer's input; *aux_input* is its second input, if any. Layers are stacked in one of
    two ways. With *has_aux_weights*, both passes read both inputs. Otherwise the backward pass
    reads the second input in place of *x*.

    Raises:
        OperatorError: the inputs differ in batch or time.
    """
    if aux_input is None:
        return x, None
    require_shape(aux_input, (*x.shape[:2], *aux_input.shape[2:]))
    return (x, aux_input) if has_aux_weights else (aux_input, None)


def as_rows(x: Array) -> Array:
    """Return *x*, ``[T, B, I]``, as ``[T * B, I]``."""
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])


def time_first(array: Array, time_major: bool) -> Array:
    """Return a view ``[T, B, N]`` of a sequence; a single step ``[B, N]`` has T = 1.

    *time_major* says whether time already is the first axis of *array*.
    """
    if array.ndim == 2:
        return array[None]
    return array if time_major else array.swapaxes(0, 1)
