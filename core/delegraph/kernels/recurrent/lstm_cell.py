"""The LSTM cell on float activations; weights are float or 8-bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.activation import apply_activation
from delegraph.arithmetic.weights import dequantized_weights
from delegraph.kernels.recurrent.layers import as_rows
from delegraph.kernels.recurrent.weights import Matrix, recurrent_weights
from delegraph.operators.lstm_node import LstmOptions, LstmTensors
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType

Floats = NDArray[np.float32]


class FloatLstmCell:
    """An LSTM cell in float32, bound to its weights.

    Each gate is ``sigmoid(W_x x + W_h h + w_c * c + b)``. The cell gate has the layer's activation
    and no peephole (``w_c * c``); the output gate uses the new cell state. The new states are::

        c = forget * c + input * cell        (input = 1 - forget, if coupled)
        h = W_p (output * activation(c)) + b_p

    Without an activation, ``h = W_p (output * cell) + b_p``, as in the official kernel: there the
    activation overwrites the cell gate with ``activation(c)``, and without one the gate remains.

    Source:
        LstmStepFloat and LstmStepHybrid, tflite/kernels/lstm_eval.cc. Where weights are 8-bit, the
        rounding of activations is the same; sums are rounded in another order.
    """

    def __init__(self, tensors: LstmTensors, options: LstmOptions) -> None:
        self._options = options
        self._cifg = tensors.cifg
        self._input = self._matrix(tensors.input_weights)
        self._recurrent = self._matrix(tensors.recurrent_weights)
        self._aux = self._matrix(tensors.aux_weights) if tensors.aux_weights else None
        self._bias: Floats = np.stack([t.data for t in tensors.biases])  # [gates, n_cell]
        self._peephole = [dequantized_weights(t) for t in tensors.peephole]
        self._layer_norm = [t.data for t in tensors.layer_norm]
        weights, bias = tensors.projection_weights, tensors.projection_bias
        self._projection = None if weights is None else self._matrix([weights])
        self._projection_bias = 0 if bias is None else bias.data

    def _matrix(self, weights: Sequence[Tensor]) -> Matrix:
        return recurrent_weights(weights, asymmetric=self._options.asymmetric)

    def project(self, x: Floats, aux: Floats | None) -> Floats:
        """Return the part of every gate that comes from the inputs: ``[T, B, gates, n_cell]``.

        *x* and the second input *aux*, if any, are ``[T, B, features]``.
        """
        gates = self._input.product(as_rows(x))
        if self._aux is not None and aux is not None:
            gates += self._aux.product(as_rows(aux))
        gates = gates.reshape(*x.shape[:2], *self._bias.shape)
        if not self._layer_norm:
            gates += self._bias
        return gates

    def step(self, projected: Floats, *states: Floats) -> None:
        """Update both *states* in place: output ``[B, n_output]`` and cell ``[B, n_cell]``.

        *projected* is one time step of :meth:`project`'s result, and is overwritten.
        """
        output_state, cell_state = states
        projected += self._recurrent.product(output_state).reshape(projected.shape)
        self._update_cell(projected[:, :-1], cell_state)
        gate = projected[:, -1]
        if self._peephole:
            gate += self._peephole[-1] * cell_state
        self._finish(gate, -1)
        hidden = sigmoid(gate)
        hidden *= self._activated(cell_state, projected[:, -2])
        self._update_output(hidden, output_state)

    def _activated(self, cell_state: Floats, cell_gate: Floats) -> Floats:
        if self._options.activation == ActivationFunctionType.NONE:
            return cell_gate
        activated = cell_state.copy()
        apply_activation(self._options.activation, activated)
        return activated

    def _update_cell(self, gates: Floats, cell_state: Floats) -> None:
        """Update *cell_state* from all *gates*, ``[B, gates, n_cell]``, except the output gate."""
        cell = gates.shape[1] - 1
        for k in range(cell if self._peephole else 0):
            gates[:, k] += self._peephole[k] * cell_state
        for k in range(cell + 1 if self._layer_norm else 0):
            self._finish(gates[:, k], k)
        shares = sigmoid(gates[:, :cell])
        new = gates[:, cell]
        apply_activation(self._options.activation, new)
        forget = shares[:, -1]
        cell_state *= forget
        cell_state += (1 - forget if self._cifg else shares[:, 0]) * new
        _clip(cell_state, self._options.cell_clip)

    def _finish(self, gate: Floats, k: int) -> None:
        """Normalise gate *k*, ``[B, n_cell]``, in place, and add its bias.

        Without layer normalisation, nothing is done: the bias is in the gate already.
        """
        if self._layer_norm:
            gate -= gate.mean(axis=1, keepdims=True)
            gate /= np.sqrt(np.square(gate).mean(axis=1, keepdims=True) + np.float32(1e-8))
            gate *= self._layer_norm[k]
            gate += self._bias[k]

    def _update_output(self, hidden: Floats, output_state: Floats) -> None:
        if self._projection is None:
            output_state[...] = hidden
        else:
            np.add(self._projection.product(hidden), self._projection_bias, out=output_state)
            _clip(output_state, self._options.proj_clip)


def sigmoid(x: Floats) -> Floats:
    """Return the logistic function of *x*, float32."""
    y: Floats = np.exp(-x)  # for a large number it is inf, and 1 / inf is right
    y += 1
    np.reciprocal(y, out=y)
    return y


def _clip(x: NDArray[Any], limit: float) -> None:
    if limit > 0:
        np.clip(x, -limit, limit, out=x)
