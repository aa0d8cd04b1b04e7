"""Cases of operators that convert between floats and integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from delegraph.schema import tables
from delegraph.schema.enums import DimensionType, TensorType
from delegraph.schema.options import DensifyOptions, DequantizeOptions, QuantizeOptions
from delegraph.testing.one_op import TensorDef, constant, tensor, tensor_record
from delegraph.testing.operator_case import Fed, OperatorCase, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import PLAIN, QUANTIZED, RandomOperands
from delegraph.testing.registered_operators import BUILTIN_VERSIONS


@cases_of("QUANTIZE")
def quantize(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* from every type to every integer, per tensor and per channel."""
    sources = ("FLOAT32", *QUANTIZED)
    pairs = [
        (source, target) for source in PLAIN for target in (*QUANTIZED, "INT32", "INT4", "FLOAT32")
    ]
    pairs += [(random.pick(sources), random.pick(QUANTIZED)) for _ in range(random.count * 3)]
    for source, target in pairs:
        x = random.fed(source, random.shape(1, 4))  # what infinity gives depends on the processor
        output = quantized_output(random, target, x.array.shape, source)
        version = random.number(1, BUILTIN_VERSIONS[op][1])
        yield operator_case(op, [x], [output], QuantizeOptions(), version=version)


def quantized_output(
    random: RandomOperands, type: str, shape: tuple[int, ...], source: str
) -> TensorDef:
    """Return an output of *type* with one scale, or one per channel if *source* is FLOAT32."""
    if source == "FLOAT32" and random.chance(0.3) and all(shape):
        axis = random.number(0, len(shape) - 1)
        scales = random.rng.uniform(0.01, 0.2, shape[axis]).tolist()
        return tensor(shape, type, scale=scales, zero_point=0, axis=axis)
    if type in ("INT32", "INT4"):
        return tensor((), type, scale=0.25, zero_point=0)
    return random.output(type)


@cases_of("DEQUANTIZE")
def dequantize(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every stored type, per tensor and per channel."""
    sources = ("INT8", "UINT8", "INT16", "INT4", "FLOAT16")
    types = [*PLAIN, *["INT2", "UINT4"], *(random.pick(sources) for _ in range(random.count * 3))]
    for type in types:
        shape = random.shape(1, 4)
        quantization = {"scale": 0.3, "zero_point": 0} if "4" in type else random.quantization(type)
        if type in ("INT8", "UINT8", "INT4") and random.chance(0.3) and all(shape):
            axis = random.number(0, len(shape) - 1)
            scales = random.rng.uniform(0.01, 0.2, shape[axis]).tolist()
            quantization = {"scale": scales, "zero_point": 0, "axis": axis}
        if type in ("FLOAT16", "FLOAT32"):
            quantization = {}
        values = random.values(type, shape)
        if type == "INT2" or random.chance(0.3):
            x: Any = constant(values, type, **quantization)
        else:
            x = Fed(values, tensor(shape, type, **quantization))
        output = random.pick(["FLOAT32"] * 9 + ["FLOAT16"])
        version = random.number(1, BUILTIN_VERSIONS[op][1])
        yield operator_case(op, [x], [output], DequantizeOptions(), version=version)


@cases_of("DEQUANTIZE")
def dequantize_blocks(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: constants with a scale for each 32 elements of a row.

    LiteRT returns zeros for these constants.
    """
    for type in ("INT4", "INT8"):
        values = random.rng.integers(-8, 8, (3, 64)).astype(np.int8)
        scales = random.rng.uniform(0.1, 1, (3, 2)).astype(np.float16)
        case = operator_case(
            op, [constant(values, type)], [tensor((3, 64))], DequantizeOptions(), version=6,
            differs=True,
        )  # fmt: skip
        yield replace(case, records=with_blocks(case.records, 0, scales, 32))


def with_blocks(records: tables.Model, index: int, scales: NDArray[Any], size: int) -> tables.Model:
    """Return a model in which a tensor of the main graph has a scale for each block of a row.

    *scales* are ``[rows, blocks]``, float16 or float32.
    """
    (graph, *others), buffers = records.subgraphs or (), records.buffers or ()
    tensors = list(graph.tensors or ())
    blocks = tables.BlockwiseQuantization(scales=len(tensors), block_size=size)
    quantization = tables.QuantizationParameters(details=blocks)
    tensors[index] = tensors[index].replace(quantization=quantization)
    tensors.append(tensor_record(constant(scales), "scales", len(buffers)))
    data = np.frombuffer(scales.tobytes(), np.uint8)
    return records.replace(
        buffers=(*buffers, tables.Buffer(data=data)),
        subgraphs=(graph.replace(tensors=tuple(tensors)), *others),
    )


@cases_of("NumericVerify")
def numeric_verify(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: stored integers with the floats that they stand for."""
    for type in [
        "INT8",
        "UINT8",
        "INT16",
        "FLOAT16",
        "FLOAT32",
        *["INT8", "UINT8"] * (random.count // 2),
    ]:
        shape = random.shape(1, 4, empty=0)
        x = random.fed(type, shape)
        options = {"tolerance": 5.0, "log_if_failed": random.chance(0.5)}
        yield operator_case(
            op,
            [x, random.fed("FLOAT32", shape)],
            [random.pick(["FLOAT32"] * 9 + ["INT8"])],
            custom_options=bytes(flexbuffers.Dumps(options)),
        )


@cases_of("DENSIFY")
def densify(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: sparse matrices by rows, of each type."""
    for type in [*PLAIN[:8], *["FLOAT32", "FLOAT16", "INT8"] * (random.count // 3)]:
        rows, columns = random.number(1, 6), random.number(1, 6)
        kept = random.rng.random((rows, columns)) < 0.4
        values = random.values(type, (int(kept.sum()),))
        yield operator_case(op, [sparse_rows(type, kept, values)], [type], DensifyOptions())


def sparse_rows(type: str, kept: Any, values: Any) -> TensorDef:
    """Return a sparse matrix that stores *values* where the bool matrix *kept* is True."""
    starts = np.concatenate([[0], kept.sum(1).cumsum()]).astype(np.int32)
    columns = np.nonzero(kept)[1].astype(np.int32)
    sparsity = tables.SparsityParameters(
        traversal_order=(0, 1),
        block_map=(),
        dim_metadata=(
            tables.DimensionMetadata(dense_size=kept.shape[0]),
            tables.DimensionMetadata(
                format=DimensionType.SPARSE_CSR,
                array_segments=tables.Int32Vector(values=starts),
                array_indices=tables.Int32Vector(values=columns),
            ),
        ),
    )
    data = np.frombuffer(values.tobytes(), np.uint8)
    return TensorDef(kept.shape, TensorType[type], None, data, sparsity=sparsity)
