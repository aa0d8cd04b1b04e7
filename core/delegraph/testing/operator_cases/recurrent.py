"""Cases of recurrent layers: several invokes of float, hybrid and integer layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import LSTMKernelType
from delegraph.schema.options import (
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    LSTMOptions,
    RNNOptions,
    SequenceRNNOptions,
    SVDFOptions,
    UnidirectionalSequenceLSTMOptions,
)
from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.operator_case import Fed, Given, OperatorCase, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import RandomOperands
from delegraph.testing.recurrent_layers import (
    IntegerLstm,
    Maybe,
    Weights,
    gates,
    lstm_weights,
    state,
)

KINDS = ((False, False), (True, False), (True, True))
"""Kinds of layers: whether weights are int8, and whether inputs have zero points."""

STEPS = 3


def stepped(
    op: str,
    weights: Weights,
    shapes: Sequence[tuple[int, ...]],
    rest: Sequence[Maybe],
    outputs: Sequence[TensorDef],
    options: Any,
    version: int,
) -> OperatorCase:
    """Return a case of several invokes whose first inputs are random floats of *shapes*.

    *rest* are the node's other inputs; *weights* generates the random numbers.
    """
    steps = [
        [weights.rng.normal(0, 1, shape).astype(np.float32) for shape in shapes]
        for _ in range(STEPS)
    ]
    x = [Fed(array, tensor(array.shape)) for array in steps[0]]
    inputs = [x[0], *rest, *x[1:]]
    return operator_case(op, inputs, outputs, options, version=version, later=steps[1:])


def layer(random: RandomOperands) -> dict[str, Any]:
    """Return random choices of an LSTM layer's optional parts: peepholes, projection and so on."""
    projection = random.chance(0.4)
    return {
        "cifg": random.chance(0.3),
        "peephole": random.chance(0.3),
        "projection": projection,
        "projection_bias": projection and random.chance(0.5),
    }


@cases_of("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
def float_lstm(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: peepholes, projection, normalisation, coupled gates and clipping."""
    for _, (hybrid, asymmetric) in product(range(random.count), KINDS):
        weights = Weights(random.number(0, 9999), hybrid=hybrid)
        n_input, n_cell, batch = random.number(1, 9), random.number(1, 9), random.number(1, 3)
        given = layer(random)
        norm = n_cell > 2 and random.chance(0.3)  # norms of two cells may be mere rounding
        n_output = random.number(1, 6) if given["projection"] else n_cell
        table: Any = UnidirectionalSequenceLSTMOptions
        leading: tuple[int, ...] = (batch, random.number(1, 5))
        options = {
            "fused_activation_function": random.pick([Act.TANH, Act.TANH, Act.RELU, Act.RELU6]),
            "cell_clip": random.pick([0.0, 0.0, 0.5]),
            "proj_clip": random.pick([0.0, 0.0, 0.3]),
            "asymmetric_quantize_inputs": asymmetric,
        }
        if op == "LSTM":
            table, leading = LSTMOptions, (batch,)
        elif random.chance(0.4):
            options["time_major"], leading = True, leading[::-1]
        rest = [
            *lstm_weights(weights, n_input, n_cell, n_output, **given),
            state(batch, n_output),
            state(batch, n_cell),
        ]
        if norm:
            rest += gates(partial(weights.vector, n_cell), cifg=given["cifg"])
        elif random.chance(0.5):
            rest += [None] * 4
        outputs = [tensor((*leading, n_output))]
        yield stepped(op, weights, [(*leading, n_input)], rest, outputs, table(**options), 4)


@cases_of("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
def integer_lstm(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: layers in int8 with an int16 cell."""
    for _ in range(random.count):
        given = {key: value for key, value in layer(random).items() if key != "projection_bias"}
        n_cell, batch = random.number(1, 9), random.number(1, 3)
        lstm = IntegerLstm(
            random.number(0, 9999),
            batch=batch,
            n_input=random.number(1, 9),
            n_cell=n_cell,
            n_output=random.number(1, n_cell) if given["projection"] else n_cell,
            cell_log2=random.number(-15 if given["cifg"] else -18, -9),
        )
        leading = (batch,) if op == "LSTM" else (batch, random.number(1, 4))
        clips: dict[str, Any] = {
            "cell_clip": random.pick([0.0, 0.4]),
            "proj_clip": random.pick([0.0, 0.4]),
        }
        table = LSTMOptions if op == "LSTM" else UnidirectionalSequenceLSTMOptions
        shape = (*leading, lstm.sizes[1])
        first, *later = lstm.steps(shape)
        yield operator_case(
            op,
            [Fed(first[0], lstm.input(shape)),
             *lstm.inputs(layer_norm=random.chance(0.4), **given)],
            [lstm.output((*leading, lstm.sizes[3]))],
            table(fused_activation_function=Act.TANH, **clips),
            version=4,
            intermediates=lstm.intermediates(),
            later=later,
        )  # fmt: skip


@cases_of("LSTM")
def basic_lstm(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: the LSTM kernel with five inputs, in floats and in uint8."""
    options = LSTMOptions(fused_activation_function=Act.TANH, kernel_type=LSTMKernelType.BASIC)
    for _ in range(random.count):
        batch, n_input, n_cell = random.number(1, 3), random.number(1, 9), random.number(1, 9)
        depth = n_input + n_cell
        shapes = [(batch, n_cell), (batch, n_cell), (batch, depth), (batch, 4 * n_cell)]
        weights = Weights(random.number(0, 9999))
        rest = [state(batch, n_cell), weights.matrix(4 * n_cell, depth),
                weights.vector(4 * n_cell), state(batch, n_cell)]  # fmt: skip
        outputs = [tensor(shape) for shape in shapes]
        yield stepped(op, weights, [(batch, n_input)], rest, outputs, options, 2)
        yield quantized_basic(op, random, options, batch, n_input, n_cell)


def quantized_basic(
    op: str, random: RandomOperands, options: Any, batch: int, n_input: int, n_cell: int
) -> OperatorCase:
    """Return a case of the basic LSTM kernel in uint8, which needs multiples of eight.

    Args:
        op: name of the operator.
        random: source of random values.
        options: options of the operator.
        batch: number of rows.
        n_input: number of the layer's inputs, divided by 8.
        n_cell: number of the layer's cells, divided by 8.
    """
    n_input, n_cell = 8 * n_input, 8 * n_cell
    unit: dict[str, Any] = {"scale": 1 / 128, "zero_point": 128}
    cell: dict[str, Any] = {"scale": 2.0**-11}
    rows = (4 * n_cell, n_input + n_cell)
    matrix = random.rng.integers(0, 256, rows).astype(np.uint8)
    bias = random.rng.integers(-9000, 9000, 4 * n_cell).astype(np.int32)
    steps = [random.values("UINT8", (batch, n_input)) for _ in range(STEPS)]
    inputs: list[Given] = [
        Fed(steps[0], tensor((batch, n_input), "UINT8", **unit)),
        state(batch, n_cell, type="UINT8", **unit),
        constant(matrix, scale=0.01, zero_point=120),
        constant(bias, scale=0.01 / 128),
        state(batch, n_cell, type="INT16", **cell),
    ]
    outputs = [
        tensor((batch, n_cell), "UINT8", **unit),
        tensor((batch, n_cell), "INT16", **cell),
        tensor((batch, n_input + n_cell), "UINT8", **unit),
        tensor((batch, 4 * n_cell), "INT16", scale=2.0**-12),
    ]
    later = [[step] for step in steps[1:]]
    return operator_case(op, inputs, outputs, options, version=2, later=later)


@cases_of("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_lstm(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: merged and separate directions, with and without auxiliary input."""
    for _, (hybrid, asymmetric) in product(range(random.count // 2), KINDS):
        weights = Weights(random.number(0, 9999), hybrid=hybrid)
        n_input, n_cell, batch = random.number(1, 6), random.number(1, 6), random.number(1, 3)
        given = layer(random)
        n_output = random.number(1, 6) if given["projection"] else n_cell
        time_major, merge = random.chance(0.5), random.chance(0.5)
        if merge and not time_major:
            batch = 1  # the official kernel mixes up the sequences of a batch
        steps = random.number(1, 4)
        leading = (steps, batch) if time_major else (batch, steps)
        rest = [
            *lstm_weights(weights, n_input, n_cell, n_output, **given),
            *lstm_weights(weights, n_input, n_cell, n_output, **given),
            *(state(batch, n) for n in (n_output, n_cell, n_output, n_cell)),
            *[None] * 9,
        ]
        options = BidirectionalSequenceLSTMOptions(
            fused_activation_function=Act.TANH,
            cell_clip=random.pick([0.0, 0.5]),
            merge_outputs=merge,
            time_major=time_major,
            asymmetric_quantize_inputs=asymmetric,
        )
        widths = [2 * n_output] if merge else [n_output] * 2
        outputs = [tensor((*leading, n)) for n in widths]
        yield stepped(op, weights, [(*leading, n_input)], rest, outputs, options, 3)


def simple_layer(weights: Weights, batch: int, n_input: int, units: int) -> list[Maybe]:
    """Return random tensors of a simple recurrent layer: weights, bias and state."""
    return [
        weights.matrix(units, n_input),
        weights.matrix(units, units),
        weights.vector(units),
        state(batch, units),
    ]


@cases_of("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN")
def simple(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: simple layers with any activation, batch or time first."""
    for _, (hybrid, asymmetric) in product(range(random.count), KINDS):
        weights = Weights(random.number(0, 9999), hybrid=hybrid)
        batch, n_input, units = random.number(1, 3), random.number(1, 8), random.number(1, 8)
        activation = random.pick([Act.TANH, Act.RELU, Act.NONE, Act.RELU6, Act.RELU_N1_TO_1])
        given: dict[str, Any] = {
            "fused_activation_function": activation,
            "asymmetric_quantize_inputs": asymmetric,
        }
        rest = simple_layer(weights, batch, n_input, units)
        leading: tuple[int, ...] = (batch, random.number(1, 4))
        widths = [units]
        if op == "RNN":
            options: Any = RNNOptions(**given)
            leading = (batch,)
        else:
            time_major = random.chance(0.5)
            leading = leading[::-1] if time_major else leading
            options = SequenceRNNOptions(time_major=time_major, **given)
        if op == "BIDIRECTIONAL_SEQUENCE_RNN":
            # The official kernel crashes on merged outputs of hybrid layers with time first.
            merge = not (hybrid and time_major) and random.chance(0.5)
            second = random.number(1, 8)
            rest += [*simple_layer(weights, batch, n_input, second), None, None, None]
            widths = [units + second] if merge else [units, second]
            options = BidirectionalSequenceRNNOptions(
                time_major=time_major, merge_outputs=merge, **given
            )
        outputs = [tensor((*leading, n)) for n in widths]
        yield stepped(op, weights, [(*leading, n_input)], rest, outputs, options, 3)


@cases_of("SVDF")
def svdf(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: ranks, memories and activations, in floats and hybrid."""
    for _, (hybrid, asymmetric) in product(range(random.count), KINDS):
        weights = Weights(random.number(0, 9999), hybrid=hybrid)
        batch, n_input, rank = random.number(1, 3), random.number(1, 9), random.number(1, 4)
        units, memory = random.number(1, 5), random.number(1, 6)
        options = SVDFOptions(
            rank=rank,
            fused_activation_function=random.pick([Act.NONE, Act.RELU, Act.TANH, Act.RELU6]),
            asymmetric_quantize_inputs=asymmetric,
        )
        rest = [
            weights.matrix(units * rank, n_input),
            weights.matrix(units * rank, memory),
            weights.vector(units) if random.chance(0.7) else None,
            state(batch, units * rank * memory),
        ]
        yield stepped(op, weights, [(batch, n_input)], rest, [tensor((batch, units))], options, 4)


@cases_of("SVDF")
def integer_svdf(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: layers in int8 with int16 weights over time."""
    for _ in range(random.count):
        batch, n_input, rank = random.number(1, 3), random.number(1, 20), random.number(1, 4)
        units, memory = random.number(1, 5), random.number(1, 6)
        filters = units * rank
        steps = [random.values("INT8", (batch, n_input)) for _ in range(STEPS)]
        biases = random.rng.integers(-5000, 5000, units).astype(np.int32)
        inputs: list[Given] = [
            Fed(steps[0], tensor((batch, n_input), "INT8", scale=0.02, zero_point=-7)),
            constant(random.values("INT8", (filters, n_input)), scale=0.01),
            constant(random.values("INT16", (filters, memory)), scale=2e-5),
            constant(biases, scale=1e-5),
            state(batch, filters * memory, type="INT16", scale=5e-4),
        ]
        output = tensor((batch, units), "INT8", scale=0.05, zero_point=-20)
        options = SVDFOptions(rank=rank, fused_activation_function=Act.RELU)
        later = [[step] for step in steps[1:]]
        yield operator_case(op, inputs, [output], options, version=4, later=later)
