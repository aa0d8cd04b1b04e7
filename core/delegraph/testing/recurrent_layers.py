"""Generates random recurrent layers: the input tensors of nodes, in the operators' order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delegraph.testing.one_op import TensorDef, constant, tensor

Maybe = TensorDef | None


class Weights:
    """Generator of random weights.

    Args:
        seed: seed of the random generator.
        hybrid: whether matrices are int8 with a scale; otherwise they are float32.
    """

    def __init__(self, seed: int = 0, *, hybrid: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self._hybrid = hybrid

    def matrix(self, *shape: int) -> TensorDef:
        """Return a random weight matrix of the layer's type."""
        values = self.rng.normal(0, 0.5, shape).astype(np.float32)
        if not self._hybrid:
            return constant(values)
        scale = float(np.abs(values).max() / 127)
        return constant(np.round(values / scale).astype(np.int8), scale=scale)

    def vector(self, n: int) -> TensorDef:
        """Return a vector of random float weights."""
        return constant(self.rng.normal(0, 0.5, n).astype(np.float32))

    def inputs(self, shape: tuple[int, ...], steps: int = 3) -> list[list[Any]]:
        """Return random arrays for the graph input at several invokes."""
        return [[self.rng.normal(0, 1, shape).astype(np.float32)] for _ in range(steps)]


def gates(make: Callable[[], TensorDef], *, cifg: bool) -> list[Maybe]:
    """Call *make* for each gate of an LSTM; return the tensors in the operator's order.

    With *cifg* (coupled input and forget gates), the input gate is None.
    """
    return [None if cifg else make(), make(), make(), make()]


def lstm_weights(
    weights: Weights,
    n_input: int,
    n_cell: int,
    n_output: int,
    *,
    cifg: bool = False,
    peephole: bool = False,
    projection: bool = False,
    projection_bias: bool = False,
    diagonal: bool = False,
) -> list[Maybe]:
    """Return inputs 1 to 17 of an LSTM node: weights, peepholes, biases and projection.

    Args:
        weights: generator of the weights.
        n_input: length of the input's last axis.
        n_cell: length of the cell state.
        n_output: length of the output state.
        cifg: whether input and forget gate are coupled.
        peephole: whether there are peephole weights.
        projection: whether there are projection weights.
        projection_bias: whether there is a bias of the projection.
        diagonal: whether recurrent weights are vectors, the diagonals of matrices.
    """
    recurrent = (
        (lambda: weights.vector(n_cell)) if diagonal else (lambda: weights.matrix(n_cell, n_output))
    )
    peepholes: list[Maybe] = [None] * 3
    if peephole:
        peepholes = [
            None if cifg else weights.matrix(n_cell),
            weights.matrix(n_cell),
            weights.matrix(n_cell),
        ]
    return [
        *gates(lambda: weights.matrix(n_cell, n_input), cifg=cifg),
        *gates(recurrent, cifg=cifg),
        *peepholes,
        *gates(lambda: weights.vector(n_cell), cifg=cifg),
        weights.matrix(n_output, n_cell) if projection else None,
        weights.vector(n_output) if projection_bias else None,
    ]


def state(*shape: int, type: str = "FLOAT32", **quantization: Any) -> TensorDef:
    """Return a variable tensor that holds a layer's state."""
    return tensor(shape, type, is_variable=True, **quantization)


class IntegerLstm:
    """Makes the tensors of a random LSTM layer in integers.

    Args:
        seed: seed of the random generator.
        batch: number of sequences.
        n_input: length of the input's last axis.
        n_cell: length of the cell state.
        n_output: length of the output state.
        cell_log2: exponent of the cell state's scale.
    """

    def __init__(
        self,
        seed: int = 0,
        batch: int = 2,
        n_input: int = 7,
        n_cell: int = 8,
        n_output: int = 8,
        cell_log2: int = -11,
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.sizes = batch, n_input, n_cell, n_output
        self.cell_log2 = cell_log2

    def weights(self, *shape: int) -> TensorDef:
        """Return a matrix of random int8 weights."""
        values = self.rng.integers(-127, 128, shape).astype(np.int8)
        return constant(values, scale=float(self.rng.uniform(0.005, 0.02)))

    def shorts(self, low: int, scale: float) -> TensorDef:
        """Return random int16 weights, one for each cell."""
        values = self.rng.integers(low, 32768, self.sizes[2]).astype(np.int16)
        return constant(values, scale=scale)

    def bias(self, n: int) -> TensorDef:
        """Return a vector of random int32 biases."""
        return constant(self.rng.integers(-3000, 3000, n).astype(np.int32), scale=2e-4)

    def input(self, shape: tuple[int, ...]) -> TensorDef:
        """Return the tensor of the layer's input."""
        return tensor(shape, "INT8", scale=0.02, zero_point=-5)

    def output(self, shape: tuple[int, ...]) -> TensorDef:
        """Return the tensor of the layer's output."""
        return tensor(shape, "INT8", scale=0.008, zero_point=4)

    def inputs(
        self,
        *,
        cifg: bool = False,
        peephole: bool = False,
        projection: bool = False,
        layer_norm: bool = False,
    ) -> list[Maybe]:
        """Return inputs 1 to 23 of an LSTM node; the flags choose which optional parts it has."""
        batch, n_input, n_cell, n_output = self.sizes
        peepholes: list[Maybe] = [None] * 3
        if peephole:
            peepholes = [
                None if cifg else self.shorts(-32767, 3e-5),
                self.shorts(-32767, 3e-5),
                self.shorts(-32767, 3e-5),
            ]
        norms: list[Maybe] = [None] * 4
        if layer_norm:
            norms = gates(lambda: self.shorts(5000, float(self.rng.uniform(1e-5, 4e-5))), cifg=cifg)
        return [
            *gates(lambda: self.weights(n_cell, n_input), cifg=cifg),
            *gates(lambda: self.weights(n_cell, n_output), cifg=cifg),
            *peepholes,
            *gates(lambda: self.bias(n_cell), cifg=cifg),
            self.weights(n_output, n_cell) if projection else None,
            self.bias(n_output) if projection else None,
            state(batch, n_output, type="INT8", scale=0.008, zero_point=4),
            state(batch, n_cell, type="INT16", scale=2.0**self.cell_log2),
            *norms,
        ]

    def intermediates(self) -> list[TensorDef]:
        """Return tensors without data that give the scales of values inside of the layer.

        They are the gates before normalisation, and the hidden vector.
        """
        scales = self.rng.uniform(1e-4, 4e-4, 4)
        before = [tensor((0,), "INT16", scale=float(scale)) for scale in scales]
        return [*before, tensor((0,), "INT8", scale=0.007, zero_point=3)]

    def steps(self, shape: tuple[int, ...], count: int = 3) -> list[list[Any]]:
        """Return random arrays for the graph input at several invokes."""
        return [[self.rng.integers(-128, 128, shape).astype(np.int8)] for _ in range(count)]
