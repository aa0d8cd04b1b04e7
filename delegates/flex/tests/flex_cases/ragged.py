"""Cases of operators on ragged tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings, type_of

FLOAT, INT, LONG = DataType.FLOAT32, DataType.INT32, DataType.INT64
OUTER, INNER = [0, 2, 2, 3, 5], [0, 3, 3, 4, 8, 9]


def cases() -> Iterator[Case]:
    yield from _ranges()
    values = np.arange(9, dtype=np.float32)
    words = strings([b"a", b"b", b"c", b"", b"e", b"f", b"gg", b"h", b"i"])
    for x in (values, np.stack([values, -values], 1), words):
        type, kind = DataType.of(type_of(x)), type_of(x)
        for splits_type in (LONG, INT):
            split = TensorType[splits_type.name]
            outer, inner = (np.array(s, splits_type.dtype) for s in (OUTER, INNER))
            for indices in ([2, 0], [], [[3, 3], [1, 0]], [[[0]], [[4]]]):
                where = np.array(indices, np.int32)
                nested = [inner]
                if where.size and where.max() < 4:
                    nested = [outer, inner]
                rank = len(nested) + where.ndim - 1
                yield one(
                    "RaggedGather", *nested, x, where, Tvalues=type, Tindices=INT,
                    Tsplits=splits_type, PARAMS_RAGGED_RANK=len(nested), OUTPUT_RAGGED_RANK=rank,
                    out=(split,) * rank + (kind,),
                )  # fmt: skip
            for nested in ([inner], [outer, inner]):
                out = (TensorType.INT64, kind, TensorType.INT64)
                yield one(
                    "RaggedTensorToSparse", *nested, x, T=type, Tsplits=splits_type,
                    RAGGED_RANK=len(nested), out=out,
                )  # fmt: skip
        yield from _dense(x, type)


def _ranges() -> Iterator[Case]:
    for type in (INT, LONG, FLOAT, DataType.FLOAT64):
        for starts, limits, deltas in (
            ([0, 5, 8], [3, 5, 2], [1, 1, 1]), ([5, 5, 2], 0, [-1, -2, 1]), (0, [4, 0, 9], 3),
            (1, 4, 1), ([], [], []), ([1, 2], [10, 3], [4, 4]),
        ):  # fmt: skip
            bounds = [np.array(part, type.dtype) for part in (starts, limits, deltas)]
            for splits in (INT, LONG):
                yield one(
                    "RaggedRange", *bounds, T=type, Tsplits=splits,
                    out=(TensorType[splits.name], TensorType[type.name]),
                )  # fmt: skip


def _dense(x: Any, type: DataType) -> Iterator[Case]:
    rows = np.repeat(np.arange(5), np.diff(INNER))
    outer_rows = np.repeat(np.arange(4), np.diff(OUTER))
    default = np.full((), b"?", object) if type is DataType.STRING else np.float32(-1)
    width = x.shape[1:]
    partitions: list[tuple[list[bytes], list[Any], list[list[int]]]] = [
        ([b"ROW_SPLITS"], [INNER], [[-1, -1], [5, 2], [3, 6], [7, -1]]),
        ([b"FIRST_DIM_SIZE", b"VALUE_ROWIDS"], [5, rows], [[-1, -1], [4, 3]]),
        ([b"ROW_SPLITS"] * 2, [OUTER, INNER], [[-1, -1, -1], [2, 1, 2], [5, 3, 5]]),
        (
            [b"FIRST_DIM_SIZE", b"VALUE_ROWIDS", b"VALUE_ROWIDS"], [4, outer_rows, rows],
            [[-1, -1, -1], [4, 3, 1]],
        ),
        ([b"FIRST_DIM_SIZE", b"VALUE_ROWIDS", b"ROW_SPLITS"], [4, outer_rows, INNER], [[-1] * 3]),
    ]  # fmt: skip
    for kinds, parts, shapes in partitions:
        for index in (LONG, INT):
            tensors = [np.array(part, index.dtype) for part in parts]
            for shape in [np.array([*dims, *width]) for dims in shapes] + [np.array(-1)]:
                yield one(
                    "RaggedTensorToTensor", shape, x, default, *tensors, T=type, Tindex=index,
                    Tshape=LONG, num_row_partition_tensors=len(parts), row_partition_types=kinds,
                    out=type_of(x),
                )  # fmt: skip
    if width:
        row = np.array([7, 8], np.float32)
        yield one(
            "RaggedTensorToTensor", np.array([-1, -1, 2]), x, row, np.array(INNER), T=type,
            Tindex=LONG, Tshape=LONG, num_row_partition_tensors=1,
            row_partition_types=[b"ROW_SPLITS"], out=type_of(x),
        )  # fmt: skip
