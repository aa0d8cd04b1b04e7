"""The LSTM cell in integers: 8-bit activations and weights, 16-bit gates and cell state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.activation import quantized_clip
from delegraph.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    scale_exponent,
)
from delegraph.arithmetic.gemmlowp import inverse_sqrt, logistic_table, tanh_table
from delegraph.arithmetic.requantize import requantizer
from delegraph.errors import OperatorError
from delegraph.kernels.recurrent.layers import as_rows
from delegraph.kernels.recurrent.weights import IntegerMatrix
from delegraph.operators.lstm_node import LstmOptions, LstmTensors
from delegraph.operators.registration import OpContext
from delegraph.operators.tensor import Tensor

Ints = NDArray[np.signedinteger[Any]]

_GATE_INTEGER_BITS = 3  # gates are Q3.12 before their activation
_Q0_15 = 2.0**-15
_LEAST_CELL_LOG2 = -29  # products of two gates, Q0.30, are shifted right to this scale
_BEYOND_INT16 = (-(1 << 17), 1 << 17)  # an int16 added to either end still saturates


class IntegerLstmCell:
    """An LSTM cell with quantised weights, equal to TFLite's int8x8_16 kernel bit for bit.

    Gates are int16: Q3.12, or with an intermediate tensor's scale before layer normalisation. The
    cell state is int16 with a power of two as scale. For scales below 2**-15 the official kernel
    computes no tanh. The buffer for tanh still has the input gate, which is multiplied by the
    output gate.

    Args:
        context: context that provides working memory.
        tensors: the layer's tensors; its weights are constant.
        options: the layer's options; the activation is ignored, tanh is used.
        layer_input: input of the layer, int8.
        layer_output: output of the layer, int8; its scale is used for the projection's clip.
        intermediates: four tensors with the gates' scales before layer normalisation, and one with
            the quantization of the projected vector.
        whole_batch: whether the official kernel computes a step for all rows at once; otherwise it
            computes row by row.

    Raises:
        OperatorError: the cell state's scale is no power of two, or out of range; or it is below
            2**-15 and there is no input gate.

    Source:
        LstmStepInteger8x8_16, tflite/kernels/lstm_eval.cc; PopulateQuantizedLstmParams8x8_16,
        tflite/kernels/unidirectional_sequence_lstm.cc.
    """

    def __init__(
        self,
        context: OpContext,
        tensors: LstmTensors,
        options: LstmOptions,
        layer_input: Tensor,
        layer_output: Tensor,
        intermediates: Sequence[Tensor],
        whole_batch: bool,
    ) -> None:
        self._cifg = tensors.cifg
        self._n_cell = tensors.n_cell
        self._cell_log2 = scale_exponent(tensors.cell_state)
        least = -15 if tensors.cifg else _LEAST_CELL_LOG2
        if not least <= self._cell_log2 <= -9:
            raise OperatorError(
                f"cell state has scale 2**{self._cell_log2}, expected {least} to -9"
            )
        self._cell_tanh = tanh_table(15 + self._cell_log2) if self._cell_log2 >= -15 else None
        self._cell_limit = quantized_clip(options.cell_clip, tensors.cell_state, 32767)
        scales = tensors.gate_scales(intermediates)
        biases = () if tensors.layer_norm else tensors.biases
        state = tensors.output_state
        self._input = _gate_product(context, tensors.input_weights, biases, layer_input, scales)
        self._recurrent = _gate_product(context, tensors.recurrent_weights, (), state, scales)
        self._gates = _gates(tensors, self._cell_log2, scales, whole_batch)
        self._output = _Output(context, tensors, options, layer_output, intermediates[4])

    def project(self, x: NDArray[np.int8], aux: object = None) -> Ints:
        """Return the contribution of *x* to every gate: ``[T, B, gates, n_cell], int32``.

        *aux* is ignored: integer layers have no second input.
        """
        gates = _saturated(self._input.product(as_rows(x)))
        return gates.reshape(*x.shape[:2], len(self._gates), self._n_cell)

    def step(self, projected: Ints, *states: Ints) -> None:
        """Update the *states*: output ``[B, n_output], int8``, and cell ``[B, n_cell], int16``.

        *projected* is one time step of :meth:`project`'s result.
        """
        output_state, cell_state = states
        recurrent = self._recurrent.product(output_state).reshape(projected.shape)
        gates = _saturated(projected + recurrent)
        input_gate = self._update_cell(gates, cell_state)
        output_gate = self._gates[-1].activate(gates[:, -1], cell_state)
        tanh = self._cell_tanh
        squashed = input_gate if tanh is None else _look_up(tanh, cell_state)
        hidden = np.multiply(output_gate, squashed, dtype=np.int32)
        output_state[...] = self._output.quantize(hidden)

    def _update_cell(self, gates: Ints, cell_state: Ints) -> Ints:
        """Update *cell_state*, ``[B, n_cell], int16``, from *gates*, ``[B, gates, n_cell]``.

        Returns:
            Share of the new values that was added, ``[B, n_cell], int16``: the input gate if there
            is one, or else computed from the forget gate.
        """
        *input_gate, forget, new = (
            gate.activate(gates[:, k], cell_state) for k, gate in enumerate(self._gates[:-1])
        )
        share = 32767 - forget if self._cifg else input_gate[0]
        kept = _rounded_shift(np.multiply(forget, cell_state, dtype=np.int32), 15)
        added = np.multiply(share, new, dtype=np.int32)
        kept += _rounded_shift(added, 30 + self._cell_log2).astype(np.int16)
        limit = self._cell_limit
        np.clip(kept, -limit if limit else -32768, limit or 32767, out=kept)
        cell_state[...] = kept
        return share


class _IntegerProduct:
    """Computes ``(rows @ weights.T + bias) * multiplier + zero point``, within limits.

    Source:
        PortableMatrixBatchVectorMultiplyAccumulateImpl, reference/portable_tensor_utils.cc.
    """

    def __init__(
        self,
        context: OpContext,
        weights: NDArray[np.int8],
        bias: Ints,
        multipliers: NDArray[np.float64],
        zero_point: int,
        dtype: type[np.signedinteger[Any]],
        limits: tuple[int, int] | None = None,
    ) -> None:
        self._weights = IntegerMatrix(weights)
        self._dtype = dtype
        self._store = requantizer(
            context, multipliers, bias, self._weights.bound, zero_point, dtype, limits=limits
        )

    def product(self, rows: NDArray[np.int8]) -> Ints:
        """Return the product ``[R, O]`` of *rows*, ``[R, I], int8``, and the weights."""
        sums = self._weights.product(rows)
        y = np.empty(sums.shape, self._dtype)
        self._store(sums, y)
        return y


class _Gate:
    """Steps from a gate's sum to its value: peephole, layer normalisation, activation."""

    def __init__(
        self, table: NDArray[np.int16], peephole: _Peephole | None, norm: _LayerNorm | None
    ) -> None:
        self._table, self._peephole, self._norm = table, peephole, norm

    def activate(self, gate: Ints, cell_state: Ints) -> NDArray[np.int16]:
        """Return the value of *gate*, Q0.15, computed from its sum; both ``[B, n_cell]``.

        The peephole, if any, reads *cell_state*, ``[B, n_cell]``.
        """
        if self._peephole is not None:
            gate = self._peephole.add(gate, cell_state)
        if self._norm is not None:
            gate = self._norm.normalize(gate)
        return _look_up(self._table, gate.astype(np.int16))


class _Peephole:
    """Peephole of a gate: adds the weighted cell state.

    The official kernel uses the length of the output state in place of the cell state's length. So
    after a projection to fewer values, the last cells of a row have no peephole. If the whole batch
    is computed at once, the shorter rows are packed together, and the last cells of the batch have
    no peephole.
    """

    def __init__(self, weights: Tensor, scale: float, n_output: int, whole_batch: bool) -> None:
        self._weights = weights.data[:n_output].astype(np.int32)
        self._multiplier, self._shift = quantize_multiplier(scale)
        self._whole_batch = whole_batch

    def add(self, gate: Ints, cell_state: Ints) -> Ints:
        """Return the gate plus ``weights * cell_state``, rescaled: ``[B, n_cell], int32``."""
        result = gate.copy()
        seen = self._rows(result)
        product = self._weights * self._rows(cell_state)
        scaled = multiply_by_quantized_multiplier(product, self._multiplier, self._shift)
        seen[...] = _saturated(seen + scaled)
        return result

    def _rows(self, x: Ints) -> Ints:
        """Return the part of *x*, ``[B, n_cell]``, that is used as ``[B, n_output]``."""
        shape = len(x), len(self._weights)
        if self._whole_batch:
            return x.reshape(-1)[: math.prod(shape)].reshape(shape)
        return x[:, : shape[1]]


class _LayerNorm:
    """Layer normalisation of a gate. Source: PortableApplyLayerNorm, portable_tensor_utils.cc."""

    def __init__(self, coefficients: Tensor, bias: Tensor) -> None:
        scale = np.float32(coefficients.scale)
        self._weights = coefficients.data.astype(np.int64)
        self._bias = bias.data.astype(np.int64)
        self._multiplier, self._shift = quantize_multiplier(float(scale))
        self._least_variance = max(1, int(np.float32(10000) * scale))

    def normalize(self, gate: Ints) -> Ints:
        """Return the normalised gate in Q3.12: ``[B, n_cell], int32`` within int16."""
        values = gate.astype(np.int64)
        n = values.shape[1]
        mean = _divide(values.sum(axis=1) * 1024, n)  # 2**10 keeps some fraction
        # Exact only where n is a power of two; the official kernel has the same error.
        variance = np.square(values).sum(axis=1) * ((1 << 20) // n) - np.square(mean)
        variance = _divide(variance, 1 << 20).astype(np.int32)
        variance[variance < 1] = self._least_variance
        multiplier, shift = inverse_sqrt(variance)
        centred = 1024 * values - mean[:, None]
        rescaled = multiply_by_quantized_multiplier(centred, multiplier[:, None], shift[:, None])
        y = rescaled * self._weights + self._bias
        y = _divide(y + np.where(y > 0, 512, -512), 1024)
        return _saturated(multiply_by_quantized_multiplier(y, self._multiplier, self._shift + 12))


class _Output:
    """Converts output gate times cell activation, Q0.30, to the output state.

    With a projection, the hidden vector's zero point has the wrong sign here and in the
    projection's bias, as in the official kernel. The two errors cancel unless values saturate.
    """

    def __init__(
        self,
        context: OpContext,
        tensors: LstmTensors,
        options: LstmOptions,
        output: Tensor,
        hidden: Tensor,
    ) -> None:
        scale = np.float32(_Q0_15 / hidden.scale * _Q0_15)
        self._multiplier, self._shift = quantize_multiplier(float(scale))
        self._projection = _projection(context, tensors, hidden)
        is_projected = self._projection is not None
        self._zero_point = -hidden.zero_point if is_projected else hidden.zero_point
        self._limit = quantized_clip(options.proj_clip, output, 127)

    def quantize(self, hidden: NDArray[np.int32]) -> NDArray[np.int8]:
        """Return the output state, ``[B, n_output], int8``, of *hidden*, ``[B, n_cell], int32``."""
        scaled = multiply_by_quantized_multiplier(hidden, self._multiplier, self._shift)
        y: NDArray[np.int8] = np.clip(scaled + self._zero_point, -128, 127).astype(np.int8)
        if self._projection is not None:
            y = self._projection.product(y).astype(np.int8, copy=False)
            if self._limit:
                np.clip(y, -self._limit, self._limit, out=y)
        return y


def _gate_product(
    context: OpContext,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    x: Tensor,
    scales: Sequence[float],
) -> _IntegerProduct:
    """Return the product of *x* with all gates' weights, each sum in its gate's scale.

    *weights*, *biases* (maybe empty) and *scales* have an element for each gate.
    """
    stacked = np.concatenate([t.data for t in weights])
    multipliers = [
        float(np.float32(w.scale) * np.float32(x.scale) / np.float32(scale))
        for w, scale in zip(weights, scales, strict=True)
    ]
    bias = -x.zero_point * stacked.sum(axis=1, dtype=np.int32)
    if biases:
        bias += np.concatenate([t.data for t in biases])
    per_row = np.repeat(multipliers, len(weights[0].data))
    return _IntegerProduct(context, stacked, bias, per_row, 0, np.int32, _BEYOND_INT16)


def _projection(context: OpContext, tensors: LstmTensors, hidden: Tensor) -> _IntegerProduct | None:
    """Return the product of *hidden* and the projection's weights, or None if there are none."""
    weights, bias = tensors.projection_weights, tensors.projection_bias
    if weights is None:
        return None
    ratio = np.float32(weights.scale) * np.float32(hidden.scale)
    multiplier = float(ratio / np.float32(tensors.output_state.scale))
    sums: Ints = hidden.zero_point * weights.data.sum(axis=1, dtype=np.int32)
    if bias is not None:
        sums = sums + bias.data
    multipliers = np.full(len(sums), multiplier)
    zero_point = tensors.output_state.zero_point
    return _IntegerProduct(context, weights.data, sums, multipliers, zero_point, np.int8)


def _gates(
    tensors: LstmTensors, cell_log2: int, scales: Sequence[float], whole_batch: bool
) -> list[_Gate]:
    """Return the gates of a layer: input (unless coupled), forget, cell, output.

    Args:
        tensors: tensors of the layer.
        cell_log2: binary logarithm of the cell state's scale.
        scales: scale of each gate's sum.
        whole_batch: whether a step is computed for all rows at once; see :class:`_Peephole`.
    """
    count = len(scales)
    peepholes: list[_Peephole | None] = [None] * count
    if tensors.peephole:
        with_peephole = [k for k in range(count) if k != count - 2]  # not the cell gate
        for k, weights in zip(with_peephole, tensors.peephole, strict=True):
            effective = np.float32(2.0**cell_log2 * weights.scale / scales[k])
            peepholes[k] = _Peephole(weights, float(effective), tensors.n_output, whole_batch)
    norms: list[_LayerNorm | None] = [None] * count
    if tensors.layer_norm:
        norms = [_LayerNorm(c, b) for c, b in zip(tensors.layer_norm, tensors.biases, strict=True)]
    tables = [logistic_table(_GATE_INTEGER_BITS)] * count
    tables[-2] = tanh_table(_GATE_INTEGER_BITS)
    return [_Gate(*parts) for parts in zip(tables, peepholes, norms, strict=True)]


def _look_up(table: NDArray[np.int16], x: Ints) -> NDArray[np.int16]:
    """Return the entries for *x*, int16, of a table of all int16 values."""
    return table.take(x.view(np.uint16))


def _saturated(x: Ints) -> Ints:
    """Clamp *x* to the range of int16, without changing its dtype."""
    return np.minimum(np.maximum(x, -32768), 32767)  # half the time of np.clip on short arrays


def _rounded_shift(x: NDArray[np.int32], exponent: int) -> NDArray[np.int32]:
    """Return ``x / 2**exponent`` rounded to nearest, halves away from zero; *x* is within 2**30."""
    return (x + (1 << (exponent - 1)) + (x >> 31)) >> exponent


def _divide(x: NDArray[np.int64], divisor: int) -> NDArray[np.int64]:
    """Return ``x / divisor`` rounded towards zero, as C divides."""
    return np.asarray(np.sign(x) * (np.abs(x) // divisor))
