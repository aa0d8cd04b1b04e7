"""Integer UNIDIRECTIONAL_SEQUENCE_LSTM, rounded as in TensorFlow Lite for Microcontrollers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_int64,
    quantize_multiplier,
    scale_exponent,
)
from delegraph.arithmetic.sigmoid_int16 import logistic_table, tanh_table
from delegraph.errors import OperatorError
from delegraph.kernels.recurrent.layers import time_first
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import (
    option,
    require_counts,
    require_same_type,
    require_scales,
    require_shape,
    require_type,
)
from delegraph.operators.lstm_node import LstmInput, LstmOptions
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    optional_input,
    output_tensor,
    variable_input,
)
from delegraph.operators.tensor import Tensor, element_count
from delegraph.schema.enums import ActivationFunctionType, TensorType

Ints = NDArray[Any]

_GATE_SCALE = 2.0**-12
_UNIT_SCALE = 2.0**-15
_BIAS = {TensorType.INT8: TensorType.INT32, TensorType.INT16: TensorType.INT64}
_UNUSED = (
    *range(LstmInput.CELL_TO_INPUT_WEIGHTS, LstmInput.CELL_TO_OUTPUT_WEIGHTS + 1),
    *(LstmInput.PROJECTION_WEIGHTS, LstmInput.PROJECTION_BIAS),
    *range(LstmInput.INPUT_LAYER_NORM_COEFFICIENTS, LstmInput.OUTPUT_LAYER_NORM_COEFFICIENTS + 1),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """Tensors and options of an LSTM node that has been checked.

    Attributes:
        x: input, ``[B, T, n_input]`` or ``[T, B, n_input]``, int8 or int16.
        hidden: hidden state, a variable of ``B * n`` elements of the same type.
        cell: cell state, a variable of ``B * n`` elements of int16.
        y: output, laid out like *x*, with ``n`` numbers per step.
        n: length of the states.
        batch: number of sequences.
        time_major: whether time comes first.
        options: options of the layer.
    """

    x: Tensor
    hidden: Tensor
    cell: Tensor
    y: Tensor
    n: int
    batch: int
    time_major: bool
    options: LstmOptions


def prepare_micro(context: OpContext, node: Node) -> Eval:
    """Prepare an LSTM layer of int8 or int16 activations and int8 weights, as in TFLM.

    The cell state is int16. A gate is the sum of two FULLY_CONNECTED, each of which is rounded;
    LiteRT's kernel has other roundings and tables. Peepholes, projections, normalisation and
    coupled gates are not supported.

    Raises:
        OperatorError: a tensor does not fit, or is unknown to TFLM.

    Source:
        tflite-micro/micro/kernels/lstm_eval.h, lstm_eval.cc and lstm_eval_common.cc.
    """
    layer = _checked(context, node)
    gates = [_Gate.of(context, node, layer, k) for k in range(4)]
    sigmoid = logistic_table(_GATE_SCALE, "micro").astype(np.int16)
    cell_tanh = tanh_table(2.0 ** scale_exponent(layer.cell), "micro").astype(np.int16)
    is_tanh = layer.options.activation == ActivationFunctionType.TANH
    new_table = tanh_table(_GATE_SCALE, "micro").astype(np.int16) if is_tanh else None
    keep = _product(_UNIT_SCALE * layer.cell.scale / layer.cell.scale, 0, np.int16)
    add = _product(_UNIT_SCALE * _UNIT_SCALE / layer.cell.scale, 0, np.int16)
    scale = _UNIT_SCALE * _UNIT_SCALE / layer.hidden.scale
    show = _product(scale, layer.hidden.zero_point, layer.x.dtype)
    limit = int(min(float(np.float32(layer.options.cell_clip)) / layer.cell.scale, 32767))

    def step(projected: list[Ints], t: int, hidden: Ints, cell: Ints) -> None:
        sums = [
            _saturated(part[t] + gate.recur(hidden))
            for part, gate in zip(projected, gates, strict=True)
        ]
        into, forget, out = (_look_up(sigmoid, sums[k]) for k in (0, 1, 3))
        new = sums[2] if new_table is None else _look_up(new_table, sums[2])
        total = _saturated(keep(forget, cell).astype(np.int32) + add(into, new))
        cell[...] = total if not limit else np.clip(total, -limit, limit)
        hidden[...] = show(_look_up(cell_tanh, cell), out)

    def run() -> None:
        x, y = (time_first(tensor.data, layer.time_major) for tensor in (layer.x, layer.y))
        hidden, cell = (t.data.reshape(layer.batch, layer.n) for t in (layer.hidden, layer.cell))
        projected = [gate.project(x) for gate in gates]
        for t in range(len(x)):
            step(projected, t, hidden, cell)
            y[t] = hidden

    return run


def _checked(context: OpContext, node: Node) -> _Layer:
    require_counts(node, 24)
    for i in _UNUSED:
        if optional_input(context, node, i) is not None:
            raise OperatorError(f"TFLM has no LSTM with an input {LstmInput(i).name}")
    x, y = input_tensor(context, node, LstmInput.INPUT), output_tensor(context, node)
    hidden = variable_input(context, node, LstmInput.OUTPUT_STATE)
    cell = variable_input(context, node, LstmInput.CELL_STATE)
    for tensor in (y, hidden):
        require_same_type(x, tensor)
    require_type(cell, {TensorType.INT16})
    require_scales(x, hidden, cell, y)
    time_major = bool(option(node, "time_major", False))
    batch = x.shape[1] if time_major else x.shape[0]
    n = input_tensor(context, node, LstmInput.INPUT_TO_FORGET_WEIGHTS).shape[0]
    for state in (hidden, cell):
        if element_count(state.shape) != batch * n:
            raise OperatorError(f"{state!r} has another size than {batch} states of {n}")
    context.resize_tensor(y, (*x.shape[:2], n))
    return _Layer(x, hidden, cell, y, n, batch, time_major, LstmOptions.of(node))


@dataclass(frozen=True, slots=True, eq=False)
class _Gate:
    """The two products of a gate.

    Attributes:
        project: function from inputs ``[T, B, n_input]`` to ``[T, B, n]``, int32 within int16.
        recur: function from the hidden state ``[B, n]`` to an array of the same shape and range.
    """

    project: Callable[[Ints], Ints]
    recur: Callable[[Ints], Ints]

    @classmethod
    def of(cls, context: OpContext, node: Node, layer: _Layer, k: int) -> _Gate:
        """Return gate *k* of *layer*: 0 input, 1 forget, 2 cell, 3 output gate."""
        bias = input_tensor(context, node, LstmInput.INPUT_GATE_BIAS + k)
        require_type(bias, {_BIAS[layer.x.type]})
        require_shape(bias, (layer.n,))
        inner = input_tensor(context, node, LstmInput.INPUT_TO_INPUT_WEIGHTS + k)
        outer = input_tensor(context, node, LstmInput.RECURRENT_TO_INPUT_WEIGHTS + k)
        require_shape(inner, (layer.n, layer.x.shape[2]))
        require_shape(outer, (layer.n, layer.n))
        return cls(_fully_connected(layer.x, inner, bias), _fully_connected(layer.hidden, outer))


def _fully_connected(
    x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Callable[[Ints], Ints]:
    """Return the function from rows of *x* to ``rows @ weight.T + bias`` in the gates' scale.

    Results are int32 within the range of int16.
    """
    require_type(weight, {TensorType.INT8})
    require_scales(weight)
    ratio = float(np.float32(x.scale) * np.float32(weight.scale)) / _GATE_SCALE
    multiplier, shift = quantize_multiplier(ratio)
    is_wide = x.type == TensorType.INT16
    rescaled = multiply_by_quantized_multiplier_int64 if is_wide else _rescaled

    def product(rows: Ints) -> Ints:
        matrix = (weight.data.astype(np.int64) - weight.zero_point).T
        sums = (rows.astype(np.int64) - x.zero_point) @ matrix
        if bias is not None:
            sums = sums + bias.data
        return _saturated(rescaled(sums, multiplier, shift))

    return product


def _rescaled(sums: Ints, multiplier: int, shift: int) -> Ints:
    return multiply_by_quantized_multiplier(sums.astype(np.int32), multiplier, shift)


def _product(scale: float, zero_point: int, dtype: Any) -> Callable[[Ints, Ints], Ints]:
    """Return the function that multiplies two int16 arrays and rescales the product.

    The product times *scale*, plus *zero_point*, is clamped to the range of *dtype*.
    """
    multiplier, shift = quantize_multiplier(scale)
    limits = np.iinfo(dtype)

    def product(a: Ints, b: Ints) -> Ints:
        wide = np.multiply(a, b, dtype=np.int32)
        scaled = multiply_by_quantized_multiplier(wide, multiplier, shift) + zero_point
        return np.clip(scaled, limits.min, limits.max).astype(dtype)

    return product


def _saturated(x: Ints) -> Ints:
    return np.clip(x, -32768, 32767)


def _look_up(table: NDArray[np.int16], x: Ints) -> Ints:
    """Return the entries for *x* of a table of all int16 values."""
    return np.take(table, x.astype(np.int16).view(np.uint16))
