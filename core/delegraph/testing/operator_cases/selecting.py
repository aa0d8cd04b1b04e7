"""Cases of operators that select, gather and scatter elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph.schema.enums import LSHProjectionType, TensorType
from delegraph.schema.options import (
    BucketizeOptions,
    GatherOptions,
    LSHProjectionOptions,
    OneHotOptions,
    SparseToDenseOptions,
    UniqueOptions,
)
from delegraph.testing.one_op import constant, tensor
from delegraph.testing.operator_case import OperatorCase, fed, operator_case, texts
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.operator_cases.shaping import (
    any_version,
    given_or_fed,
    plain_options,
    quantization_of,
    same_quantization,
    types_of,
)
from delegraph.testing.random_operands import RandomOperands

INDICES = ("INT32", "INT32", "INT64", "INT16")


@cases_of("GATHER")
def gather(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: any axis and number of batch axes; indices are rarely out of range."""
    for type in types_of(random, 2):
        shape = random.shape(1, 4)
        rank = len(shape)
        batch = random.number(0, rank - 1) if random.chance(0.3) else 0
        axis = random.number(batch, rank - 1)
        inner = (*shape[:batch], *random.shape(0, 2))
        high = max(shape[axis], 1)
        numbers = random.rng.integers(0, high, inner)
        if numbers.size and random.chance(0.05):
            numbers.reshape(-1)[0] = random.pick([-1, high])
        x, y = same_quantization(random, type, shape)
        options = GatherOptions(axis=axis - rank * random.chance(0.3), batch_dims=batch)
        inputs = [x, given_or_fed(random, numbers, random.pick(INDICES))]
        yield operator_case(op, inputs, [y], options, version=any_version(op, random))


@cases_of("GATHER_ND")
def gather_nd(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: index tuples that cover one axis, several axes or all axes."""
    for type in types_of(random):
        shape = random.shape(1, 4, empty=0)
        depth = random.number(1, len(shape))
        outer = random.shape(0, 3)
        points = np.stack([random.rng.integers(0, n, outer) for n in shape[:depth]], axis=-1)
        if points.size and random.chance(0.05):
            points.reshape(-1)[0] = random.pick([-1, 99])
        x, y = same_quantization(random, type, shape)
        inputs = [x, given_or_fed(random, points, random.pick(INDICES))]
        yield operator_case(op, inputs, [y], plain_options(op), version=any_version(op, random))


@cases_of("SCATTER_ND")
def scatter_nd(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: index tuples for one axis to all axes, some tuples repeated."""
    for type in types_of(random):
        shape = random.shape(1, 4, empty=0)
        depth = random.number(1, len(shape))
        count = random.number(1, 5)
        points = np.stack([random.rng.integers(0, n, count) for n in shape[:depth]], axis=-1)
        if random.chance(0.05):
            points[0, 0] = random.pick([-1, 99])
        updates, y = same_quantization(random, type, (count, *shape[depth:]))
        inputs = [given_or_fed(random, points), updates, given_or_fed(random, shape)]
        yield operator_case(op, inputs, [y], plain_options(op))


@cases_of("SELECT", "SELECT_V2")
def select(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: conditions by element, by row and as a scalar."""
    for type in types_of(random, 2):
        shapes = random.broadcast_shapes(3, 5)
        if op == "SELECT" or random.chance(0.3):
            full = shapes[1]
            shapes = [random.pick([full, full[:1], ()]), full, full]
        same = random.quantization(type)
        inputs = [random.operand("BOOL", shapes[0])]
        inputs += [random.operand(type, shape, quantization=same) for shape in shapes[1:]]
        output = tensor((), type, **same)
        options = plain_options(op)
        yield operator_case(op, inputs, [output], options, version=any_version(op, random))


@cases_of("WHERE")
def where(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every type, mostly BOOL, with some elements zero."""
    for type in [*types_of(random, 0.5), *["BOOL"] * random.count]:
        x = random.operand(type, random.shape(0, 5), spread=0.5)
        version = any_version(op, random)
        yield operator_case(op, [x], ["INT64"], plain_options(op), version=version)


@cases_of("ONE_HOT")
def one_hot(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: any axis; some indices are out of range, which gives the off value."""
    for type in types_of(random):
        shape = random.shape(0, 3)
        depth = random.number(0, 6)
        kind = random.pick(["INT32", "INT64"])
        numbers = random.rng.integers(-1, depth + 1, shape, endpoint=True)
        same = random.quantization(type)
        values = [random.operand(type, (), quantization=same) for _ in range(2)]
        indices = given_or_fed(random, numbers, kind)
        inputs = [indices, given_or_fed(random, depth), *values]
        options = OneHotOptions(axis=random.number(-1, len(shape)))
        yield operator_case(op, inputs, [tensor((), type, **same)], options)


@cases_of("TOPK_V2")
def topk(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: rows with many ties; k up to the row's length and beyond."""
    for type in [*types_of(random, 0.5), *["FLOAT32", "INT8", "INT32"] * (random.count // 2)]:
        x, y = same_quantization(random, type, random.shape(1, 4, largest=12))
        k = random.number(0, x.array.shape[-1] + random.chance(0.05))
        kind = random.pick(["INT32", "INT32", "INT16"])
        inputs = [x, given_or_fed(random, k, kind)]
        outputs: list[Any] = [y, random.pick(["INT32", "INT32", "INT16"])]
        version = any_version(op, random)
        yield operator_case(op, inputs, outputs, plain_options(op), version=version)


@cases_of("UNIQUE")
def unique(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: vectors with repeated elements."""
    for type in types_of(random):
        shape = random.shape(1, 1, largest=20) if random.chance(0.9) else random.shape(0, 2)
        result = random.pick(["INT32", "INT64"])
        x = random.operand(type, shape, spread=1.5, quantization={})
        options = UniqueOptions(idx_out_type=TensorType[result])
        yield operator_case(op, [x], [type, result], options)


@cases_of("SEGMENT_SUM")
def segment_sum(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: ascending segment ids, rarely with gaps."""
    for type in types_of(random):
        shape = random.shape(1, 3)
        numbers = np.cumsum(random.rng.integers(0, 2, shape[0]))
        if len(numbers):
            numbers -= numbers[0]
        if random.chance(0.1):
            numbers = random.pick([-numbers, 2 * numbers])
        inputs = [random.fed(type, shape, quantization={}), given_or_fed(random, numbers)]
        yield operator_case(op, inputs, [type], plain_options(op))


@cases_of(
    "UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN"
)
def unsorted_segments(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: segment ids in any order; negative ids are skipped by the operator."""
    for type in types_of(random):
        shape = random.shape(1, 3)
        inner = shape[: random.number(1, len(shape))]
        count = random.number(1, 6)
        numbers = random.rng.integers(-1, count, inner)
        if numbers.size and random.chance(0.05):
            numbers.reshape(-1)[0] = count
        inputs = [random.fed(type, shape, quantization={}), given_or_fed(random, numbers)]
        yield operator_case(op, [*inputs, given_or_fed(random, count)], [type], plain_options(op))


@cases_of("SPARSE_TO_DENSE")
def sparse_to_dense(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: scalar, vector and tuple indices, with one value or one per index."""
    for type in types_of(random):
        shape = random.shape(1, 4, empty=0)
        count = random.number(1, 5)
        if len(shape) == 1:
            count = min(count, shape[0])
        places = np.sort(random.rng.permutation(int(np.prod(shape)))[:count])
        points = np.stack(np.unravel_index(places, shape), axis=-1)
        if len(shape) == 1 and random.chance(0.5):
            points = points[:, 0]
        same = random.quantization(type)
        kind = random.pick(["INT32", "INT64"])
        values = random.operand(
            type, (len(points),) if random.chance(0.6) else (), quantization=same
        )
        inputs = [
            given_or_fed(random, points, kind),
            given_or_fed(random, shape, kind),
            values,
            random.operand(type, (), quantization=same),
        ]
        options = SparseToDenseOptions(validate_indices=False)
        output = tensor((), type, **same)
        yield operator_case(op, inputs, [output], options, version=any_version(op, random))


@cases_of("MATRIX_DIAG", "MATRIX_SET_DIAG")
def diagonals(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: matrices of any proportions; LiteRT reads other types as FLOAT32."""
    taken = ["FLOAT32", "INT32", "INT64", "INT16", "INT8", "UINT8"]
    others = ["BOOL", "FLOAT16", "BFLOAT16", "UINT16", "UINT64", "COMPLEX64"]
    for type in [*taken * (random.count // 4 + 1), *others]:
        differs = type in others
        outer = random.shape(0, 2)
        rows, columns = random.number(1, 5), random.number(1, 5)
        if op == "MATRIX_DIAG":
            x, y = same_quantization(random, type, (*outer, columns))
            yield operator_case(op, [x], [y], plain_options(op), differs=differs)
            continue
        x, y = same_quantization(random, type, (*outer, rows, columns))
        diagonal = random.operand(
            type, (*outer, min(rows, columns)), quantization=quantization_of(x)
        )
        yield operator_case(op, [x, diagonal], [y], plain_options(op), differs=differs)


@cases_of("BUCKETIZE")
def bucketize(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: values on, between and beyond the boundaries."""
    for type in [*types_of(random, 0.3), *["FLOAT32", "INT32"] * (random.count // 3)]:
        edges = np.sort(np.round(random.rng.normal(0, 4, random.number(0, 6)))).astype(np.float32)
        if len(edges) > 1 and random.chance(0.05):
            edges = edges[::-1].copy()
        x = random.fed(type, random.shape(), special=random.pick([0, 0.2]), quantization={})
        yield operator_case(op, [x], ["INT32"], BucketizeOptions(boundaries=edges))


@cases_of("HASHTABLE_LOOKUP")
def table_lookup(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: existing and missing keys, of all types but packed integers."""
    for type in types_of(random):
        if type == "INT4":
            continue
        keys = np.unique(random.rng.integers(-5, 9, random.number(1, 6))).astype(np.int32)
        values, y = same_quantization(random, type, (len(keys), *random.shape(0, 2, empty=0)))
        wanted = random.rng.integers(-6, 9, random.number(0, 5)).astype(np.int32)
        inputs: list[Any] = [fed(wanted), constant(keys), values]
        yield operator_case(op, inputs, [y, "UINT8"])


@cases_of("LSH_PROJECTION")
def projections(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: dense and sparse signatures, for every type of row."""
    for type in ["INT64", "BOOL", "INT8", *["INT32", "FLOAT32", "UINT8"] * (random.count // 3)]:
        x = random.fed(type, random.shape(1, 3, empty=0), quantization={})
        seeds = random.constant("FLOAT32", (random.number(1, 5), random.number(1, 32)))
        weights = [random.fed("FLOAT32", x.array.shape[:1])] if random.chance(0.3) else []
        kind = random.pick(tuple(LSHProjectionType))
        yield operator_case(op, [seeds, x, *weights], ["INT32"], LSHProjectionOptions(type=kind))


@cases_of("SKIP_GRAM")
def skip_grams(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: sentences with all n-gram and skip sizes."""
    sentences = (b"", b"one", b"The quick\t brown fox\n jumps over the lazy dog!", b"a b c d e")
    for sentence in sentences:
        for size in range(4):
            for skip in range(3):
                options = plain_options(
                    op, ngram_size=size, max_skip_size=skip, include_all_ngrams=random.chance(0.5)
                )
                yield operator_case(op, [fed(texts(sentence))], ["STRING"], options)


@cases_of("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def suppression(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: overlapping boxes with ties, with hard and soft suppression."""
    for _ in range(random.count * 2):
        count = random.number(0, 20)
        corners = random.rng.integers(0, 8, (count, 4)).astype(np.float32)
        scores = (random.rng.integers(0, 12, count) / 11).astype(np.float32)
        numbers: list[Any] = [
            np.float32(random.pick([0.1, 0.5, 0.9])),
            np.float32(random.pick([0, 0.3])),
        ]
        if op.endswith("V5"):
            numbers.append(np.float32(random.pick([0, 0.5, 1.0])))
        size = np.array(random.number(0, 9), np.int32)
        inputs: list[Any] = [fed(corners), fed(scores)]
        inputs.append(constant(size) if random.chance(0.7) else fed(size))
        inputs += [constant(number) for number in numbers]
        outputs = ["INT32", "FLOAT32", "INT32"] if op.endswith("V5") else ["INT32", "INT32"]
        yield operator_case(op, inputs, outputs, plain_options(op))
