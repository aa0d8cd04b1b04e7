"""Cases of matrix products, fully connected layers and embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from delegraph.schema.enums import CombinerType, FullyConnectedOptionsWeightsFormat, TensorType
from delegraph.schema.options import (
    BatchMatMulOptions,
    EmbeddingLookupSparseOptions,
    FullyConnectedOptions,
)
from delegraph.testing.convolution_operands import Operands, operands
from delegraph.testing.one_op import constant, tensor
from delegraph.testing.operator_case import Fed, Given, OperatorCase, fed, operator_case
from delegraph.testing.operator_cases.convolutions import CLAMPED, KINDS, activation, bias
from delegraph.testing.operator_cases.quantizing import with_blocks
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import PLAIN, RandomOperands
from delegraph.testing.registered_operators import BUILTIN_VERSIONS


@cases_of("FULLY_CONNECTED")
def fully_connected(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every kind of weights, with inputs of any rank."""
    for kind in KINDS:
        for _ in range(random.count):
            depth, units = random.pick([1, 3, 8, 16, 33, 100]), random.pick([1, 3, 4, 8, 17])
            shape = (*random.shape(0, 3, empty=0.05), depth)
            found = operands(kind, shape, (units, depth), seed=random.number(0, 9999))
            options = FullyConnectedOptions(
                fused_activation_function=activation(random),
                keep_num_dims=random.chance(0.4),
                asymmetric_quantize_inputs=random.chance(0.4),
                quantized_bias_type=TensorType[kind.bias],
            )
            version = random.number(1, BUILTIN_VERSIONS[op][1])
            inputs = [found.x, random_weights(random, found), bias(random, found)]
            yield operator_case(op, inputs, [found.y], options, version=version, tolerance=CLAMPED)
    for form in FullyConnectedOptionsWeightsFormat:
        for kind in KINDS:
            found = operands(kind, (4, 16), (8, 16))
            options = FullyConnectedOptions(weights_format=form)
            inputs = [found.x, found.weight, found.bias]
            yield operator_case(op, inputs, [found.y], options, version=2)


@cases_of("FULLY_CONNECTED")
def shuffled(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* with shuffled weights: blocks of 4 rows and 16 columns."""
    for _ in range(random.count // 2 + 1):
        rows, depth, units = random.pick([1, 4]), 16 * random.number(1, 6), 4 * random.number(1, 6)
        x, weight = (random.values("UINT8", shape) for shape in ((rows, depth), (units, depth)))
        bias = random.rng.integers(-9000, 9000, units).astype(np.int32)
        inputs: list[Given] = [
            fed(x, scale=0.5, zero_point=128),
            constant(weight, scale=0.25, zero_point=128),
            constant(bias, scale=0.125),
        ]
        y = tensor((rows, units), "INT16", scale=float(2.0 ** random.rng.uniform(-3, 8)))
        options = FullyConnectedOptions(
            weights_format=FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8,
            fused_activation_function=activation(random),
        )
        workspace = tensor((rows, depth), "UINT8")
        yield operator_case(op, inputs, [y, workspace], options, version=2)


@cases_of("FULLY_CONNECTED")
def weights_by_blocks(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: 4-bit weights with a scale for each 32 or 64 elements of a row.

    LiteRT needs at least four rows.
    """
    for _ in range(random.count // 2 + 1):
        size, blocks, units = random.pick([32, 64]), random.number(1, 4), random.pick([1, 4, 7, 32])
        depth = size * blocks
        weight = constant(random.rng.integers(-7, 8, (units, depth)), "INT4")
        inputs: list[Given] = [random.fed("FLOAT32", (random.number(1, 5), depth)), weight]
        options = FullyConnectedOptions(fused_activation_function=activation(random))
        scales = random.rng.uniform(0.01, 0.1, (units, blocks)).astype(np.float16)
        case = operator_case(
            op, inputs, ["FLOAT32"], options, version=13, tolerance=CLAMPED, differs=units < 4
        )
        yield replace(case, records=with_blocks(case.records, 1, scales, size))


def random_weights(random: RandomOperands, found: Operands) -> Any:
    """Return the weights of *found*: constants, or for floats sometimes a graph input."""
    weight = found.weight
    if weight.type.name != "FLOAT32" or random.chance(0.8):
        return weight
    return random.fed("FLOAT32", weight.shape, spread=1)


@cases_of("BATCH_MATMUL")
def batch_matmul(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: broadcast batches and adjoints, of plain and quantized types."""
    kinds = ("FLOAT32", "INT8", "INT16", "HYBRID", "INT32", random.pick(PLAIN))
    picked = (random.pick(kinds) for _ in range(random.count * 4))
    for kind in (*PLAIN, *picked, *["INT16_BY_INT8"] * random.count):
        yield matmul(op, kind, random)


def matmul(op: str, kind: str, random: RandomOperands) -> OperatorCase:
    """Return a random case of *op* for one kind of types."""
    rows, inner, columns = (random.pick([1, 2, 3, 8, 17]) for _ in range(3))
    left, right = random.broadcast_shapes(2, 3, empty=0.02)
    adj_x, adj_y = random.chance(0.3), random.chance(0.3)
    x_shape = (*left, *((inner, rows) if adj_x else (rows, inner)))
    y_shape = (*right, *((columns, inner) if adj_y else (inner, columns)))
    options = BatchMatMulOptions(
        adj_x=adj_x, adj_y=adj_y, asymmetric_quantize_inputs=random.chance(0.3)
    )
    x: Given
    y: Given
    scale: dict[str, Any] = {"quantization": {"scale": 0.02}}
    if kind == "HYBRID":
        x, y, result = (
            random.fed("FLOAT32", x_shape),
            random.constant("INT8", y_shape, **scale),
            "FLOAT32",
        )
    elif kind == "INT16_BY_INT8":
        x, y = random.fed("INT16", x_shape), random.constant("INT8", y_shape, **scale)
        result = "INT16"
    else:
        x, y, result = random.fed(kind, x_shape), random.operand(kind, y_shape), kind
    output = random.output(result)
    size = {"INT8": 60, "INT16": 15000, "INT16_BY_INT8": 100}.get(kind)
    if size is not None:
        a, b = (z.definition if isinstance(z, Fed) else z for z in (x, y))
        product = float(a.quantization.scale[0] * b.quantization.scale[0])  # type: ignore[union-attr, index] # both are quantized
        output = tensor(
            (), result, scale=product * size * inner**0.5, zero_point=3 * (kind == "INT8")
        )
    if kind == "INT8" and random.chance(0.2):
        output = tensor((), "INT32", scale=1.0)
    version = random.number(1, BUILTIN_VERSIONS[op][1])
    return operator_case(op, [x, y], [output], options, version=version)


@cases_of("EMBEDDING_LOOKUP")
def embeddings(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: rows looked up by number, as floats or quantized integers."""
    for type in (*PLAIN, *["FLOAT32", "INT8", "UINT8", "INT4"] * random.count):
        rows = random.number(1, 9)
        shape = (rows, *random.shape(1, 3, empty=0))
        if type == "INT4":
            shape = (*shape[:-1], 2 * shape[-1])  # rows are copied as whole bytes
        ids = random.rng.integers(0, rows, random.number(type == "INT4", 5)).astype(np.int32)
        if random.chance(0.1):
            ids = np.append(ids, np.int32(random.pick([-1, rows])))
        quantization: dict[str, Any] = {}
        if type in ("INT8", "UINT8", "INT4"):
            scales = random.rng.uniform(0.01, 0.1, random.pick([1, rows])).tolist()
            quantization = {"scale": scales, "zero_point": 0}
        value = constant(random.values(type, shape), type, **quantization)
        output = "FLOAT32" if quantization and random.chance(0.8) else type
        version = random.number(1, BUILTIN_VERSIONS[op][1])
        yield operator_case(op, [fed(ids), value], [output], version=version)


@cases_of("EMBEDDING_LOOKUP_SPARSE")
def sparse_embeddings(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: sums, means and norms of rows."""
    for _ in range(random.count):
        rows, count, outer = random.number(1, 6), random.number(1, 6), random.number(1, 4)
        ids = random.rng.integers(0, rows, count).astype(np.int32)
        places = np.sort(random.rng.integers(0, outer, count)).astype(np.int32)[:, None]
        params = random.constant("FLOAT32", (rows, *random.shape(1, 2, empty=0)))
        combiner = random.pick(tuple(CombinerType))
        yield operator_case(
            op,
            [
                fed(ids),
                fed(places),
                fed(np.array([outer], np.int32)),
                random.fed("FLOAT32", (count,)),
                params,
            ],
            ["FLOAT32"],
            EmbeddingLookupSparseOptions(combiner=combiner),
        )
