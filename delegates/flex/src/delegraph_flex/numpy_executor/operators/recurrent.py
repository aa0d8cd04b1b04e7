"""Cells of recurrent networks, and an LSTM over a whole sequence.

Source:
    core/kernels/rnn/lstm_ops.cc, lstm_ops.h, gru_ops.cc, gru_ops.h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.operators.elementwise import through_float32
from delegraph_flex.numpy_executor.operators.matmul import product
from delegraph_flex.numpy_executor.registry import operator, step_of

Array = NDArray[Any]
Weights = tuple[Array, Array, Array, Array, Array]
"""Weights of an LSTM: matrix, peepholes of input, forget and output gate, bias."""

Cell = Callable[[Array, Array, Array, Weights], list[Array]]
"""Function that computes one LSTM step from x, the cell state cs, the output h, and weights.

It returns the input gate i, cs, forget gate f, output gate o, cell input ci, cell output co and h.
"""

_TYPES = frozenset({DataType.FLOAT16, DataType.FLOAT32})


@operator("LSTMBlockCell", types=_TYPES)
def lstm_cell(node: FlexNode) -> Step:
    """Function for one time step of an LSTM: gates, states and outputs, ``[batch, cell]`` each."""
    cell = _lstm_cell(node)

    def run(x: Array, cs: Array, h: Array, *weights: Any) -> list[Array]:
        _check_lstm(x, 2, cs, h, weights)
        return cell(x, cs, h, weights)

    return run


@operator("BlockLSTM", "BlockLSTMV2", types=_TYPES)
def block_lstm(node: FlexNode) -> Step:
    """Function for an LSTM over a sequence: seven outputs, ``[time, batch, cell]`` each.

    Times after ``seq_len_max`` give zeros.
    """
    cell = _lstm_cell(node)

    def run(count: Array, x: Array, cs: Array, h: Array, *weights: Any) -> list[Array]:
        _check_lstm(x, 3, cs, h, weights)
        if count.ndim or not 0 <= count <= len(x):
            raise ValueError(f"seq_len_max is {count.tolist()}, expected a number up to {len(x)}")
        shape = (len(x), *cs.shape)
        require(shape, x.dtype)
        results = [np.zeros(shape, x.dtype) for _ in range(7)]
        steps = zip(x[: int(count)], *results, strict=False) if results[0].size else ()
        for x_now, *places in steps:
            values = cell(x_now, cs, h, weights)
            for place, value in zip(places, values, strict=True):
                place[...] = value
            cs, h = values[1], values[6]
        return results

    return run


def _lstm_cell(node: FlexNode) -> Cell:
    """Return the function that computes one time step of an LSTM.

    Version 2 has another order of the gates in matrix and bias, and no forget bias. By default it
    does not clip the cells.
    """
    order, clip = ("IFCO", 0.0) if node.op.endswith("V2") else ("ICFO", 3.0)
    type = node.type("T")
    multiply, sigmoid = product(type), through_float32(special.expit, type)
    bias = type.dtype.type(0 if node.op.endswith("V2") else node.float("forget_bias", 1.0))
    limit = type.dtype.type(node.float("cell_clip", clip))
    peeps = node.bool("use_peephole", False)

    def run(x: Array, cs_before: Array, h: Array, weights: Weights) -> list[Array]:
        w, wci, wcf, wco, b = weights
        sums = multiply(np.concatenate([x, h], 1), w) + b
        gates: Mapping[str, Array] = dict(zip(order, np.split(sums, 4, 1), strict=True))
        i_sum, f_sum, o_sum = gates["I"], gates["F"] + bias, gates["O"]
        if peeps:
            i_sum, f_sum = i_sum + cs_before * wci, f_sum + cs_before * wcf
        i, f, ci = sigmoid(i_sum), sigmoid(f_sum), np.tanh(gates["C"])
        cs = i * ci + f * cs_before
        if limit > 0:
            cs = np.clip(cs, -limit, limit)
        co = np.tanh(cs)
        o = sigmoid(o_sum + cs * wco if peeps else o_sum)
        return [i, cs, f, o, ci, co, o * co]

    return run


def _check_lstm(x: Array, rank: int, cs: Array, h: Array, weights: tuple[Array, ...]) -> None:
    """Check that the shapes of an LSTM's inputs fit each other, as TensorFlow does.

    *x* is the input of *rank* axes, *cs* the cell state, and *h* the output before.
    """
    w = weights[0]
    if x.ndim != rank or w.ndim != 2 or w.shape[1] % 4:
        shapes = f"{list(x.shape)} and {list(w.shape)}"
        raise ValueError(f"x and w have shapes {shapes}, expected {rank} and 2 dimensions, 4 gates")
    cell = w.shape[1] // 4
    state = (x.shape[-2], cell)
    expected = [state, state, (x.shape[-1] + cell, 4 * cell), *[(cell,)] * 3, (4 * cell,)]
    _check_shapes("cs_prev h_prev w wci wcf wco b", [cs, h, *weights], expected)


def _check_shapes(names: str, arrays: list[Array], expected: list[tuple[int, ...]]) -> None:
    for name, array, shape in zip(names.split(), arrays, expected, strict=True):
        if array.shape != shape:
            raise ValueError(f"{name} has shape {list(array.shape)}, expected {list(shape)}")


@step_of("GRUBlockCell", types=[DataType.FLOAT32])
def gru_cell(x: Array, h: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array) -> list[Array]:
    """Return one time step of a GRU: reset, update, candidate, state, ``[batch, cell]`` each."""
    if x.ndim != 2 or h.ndim != 2:
        raise ValueError(f"x and h_prev are {list(x.shape)}, {list(h.shape)}, expected matrices")
    cell = h.shape[1]
    inputs = x.shape[1] + cell
    expected = [(len(x), cell), (inputs, 2 * cell), (inputs, cell), (2 * cell,), (cell,)]
    _check_shapes("h_prev w_ru w_c b_ru b_c", [h, w_ru, w_c, b_ru, b_c], expected)
    r, u = np.split(special.expit(np.concatenate([x, h], 1) @ w_ru + b_ru), 2, 1)
    c = np.tanh(np.concatenate([x, h * r], 1) @ w_c + b_c)
    return [r, u, c, u * (h - c) + c]
