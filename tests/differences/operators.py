"""Checks of the section Operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import (
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    DepthwiseConv2DOptions,
    ReducerOptions,
    Rfft2dOptions,
)
from delegraph.schema.table import Table
from delegraph.testing import constant, one_op_model, tensor
from delegraph.testing.operator_case import Given, fed, operator_case
from delegraph.testing.recurrent_layers import Weights, lstm_weights, state
from differences.difference import Sides, both, difference

RNG = np.random.default_rng(0)


def of_one(
    op: str,
    inputs: Sequence[Given],
    outputs: Sequence[Any],
    options: Table | None = None,
    *,
    numerics: str = "builtin",
    **given: Any,
) -> Sides:
    """Return both sides of a model of one operator; arguments as of :func:`operator_case`."""
    case = operator_case(op, inputs, outputs, options, **given)
    return both(case.model(), *case.steps, numerics=numerics)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


@difference("rfft2d-of-width-1")
def _() -> Sides:
    inputs = [fed(floats(4, 6)), constant(np.int32([2, 1]))]
    return of_one("RFFT2D", inputs, ["COMPLEX64"], Rfft2dOptions())


@difference("atan2-of-two-sizes")
def _() -> Sides:
    return of_one("ATAN2", [fed(floats(3, 4)), fed(floats(1, 4))], [tensor((3, 4))])


@difference("depthwise-conv-without-bias")
def _() -> Sides:
    inputs = [fed(floats(1, 5, 5, 3)), constant(floats(1, 3, 3, 3))]
    options = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    return of_one("DEPTHWISE_CONV_2D", inputs, ["FLOAT32"], options)


@difference("broadcast-args-that-do-not-fit")
def _() -> Sides:
    return of_one("BROADCAST_ARGS", [fed(np.int32([2])), fed(np.int32([3]))], ["INT32"])


@difference("shift-left-with-too-few-amounts")
def _() -> Sides:
    inputs = [fed(np.ones((2, 6), np.int8)), fed(np.ones(6, np.int8))]
    return of_one("STABLEHLO_SHIFT_LEFT", inputs, ["INT8"])


@difference("reference-sum-of-int8")
def _() -> Sides:
    x = fed(RNG.integers(-128, 128, (3, 8)).astype(np.int8), scale=0.1, zero_point=2)
    y = tensor((3,), "INT8", scale=0.5, zero_point=-29)
    axis = constant(np.int32([1]))
    return of_one("SUM", [x, axis], [y], ReducerOptions(), numerics="reference")


@difference("bidirectional-lstm-batch-first")
def _() -> Sides:
    weights, n = Weights(4), 4
    inputs = [tensor((2, 3, 3))]
    inputs += lstm_weights(weights, 3, n, n) + lstm_weights(weights, 3, n, n)
    inputs += [state(2, n) for _ in range(4)] + [None] * 9
    options = BidirectionalSequenceLSTMOptions(
        fused_activation_function=Act.TANH, merge_outputs=True, time_major=False
    )
    outputs = [tensor((2, 3, 2 * n))]
    model = one_op_model("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs, options)
    return both(model, *weights.inputs((2, 3, 3)))


def bidirectional_rnn(
    *, hybrid: bool, time_major: bool, merge: bool = False, aux: int = 0, cross: bool = False
) -> Sides:
    """Return both sides of two RNN layers over 4 times of 2 sequences of 3 numbers.

    Args:
        hybrid: whether weights are int8.
        time_major: whether the input is ``[time, batch, input]``.
        merge: whether both outputs are one.
        aux: numbers of the auxiliary input at a time, 0 for none.
        cross: whether the auxiliary input has weights of its own.
    """
    weights, leading = Weights(3, hybrid=hybrid), (4, 2) if time_major else (2, 4)
    inputs: list[Any] = [tensor((*leading, 3))]
    for units in (5, 6):
        inputs += [weights.matrix(units, 3), weights.matrix(units, units)]
        inputs += [weights.vector(units), state(2, units)]
    inputs.append(tensor((*leading, aux)) if aux else None)
    inputs += [weights.matrix(units, aux) if cross else None for units in (5, 6)]
    options = BidirectionalSequenceRNNOptions(
        time_major=time_major, merge_outputs=merge, fused_activation_function=Act.TANH
    )
    outputs = [tensor((*leading, n)) for n in ([11] if merge else [5, 6])]
    model = one_op_model("BIDIRECTIONAL_SEQUENCE_RNN", inputs, outputs, options, version=3)
    steps = weights.inputs((*leading, 3))
    if aux:
        steps = [x + y for x, y in zip(steps, weights.inputs((*leading, aux)), strict=True)]
    return both(model, *steps)


@difference("bidirectional-rnn-aux-without-weights")
def _() -> list[Sides]:
    return [
        bidirectional_rnn(hybrid=hybrid, time_major=False, merge=merge, aux=3)
        for hybrid in (False, True)
        for merge in (False, True)
    ]


@difference("bidirectional-rnn-aux-of-another-length")
def _() -> Sides:
    return bidirectional_rnn(hybrid=False, time_major=True, aux=5, cross=True)


@difference("bidirectional-rnn-hybrid-time-major")
def _() -> list[Sides]:
    return [bidirectional_rnn(hybrid=True, time_major=True, merge=m) for m in (False, True)]
