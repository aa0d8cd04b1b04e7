"""CTC decoding (connectionist temporal classification): labels from a network's scores.

Source:
    core/kernels/ctc_decoder_ops.cc; core/util/ctc/ctc_decoder.h.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.registry import operator
from delegraph_flex.numpy_executor.sparse_parts import within_rows

Array = NDArray[Any]


@operator("CTCGreedyDecoder", types=(DataType.FLOAT32, DataType.FLOAT64))
def ctc_greedy_decoder(node: FlexNode) -> Step:
    """Return a function that finds the best label per time: indices, values, shape, negative score.

    Blanks are removed.
    """
    merges = node.bool("merge_repeated", False)
    blank = node.int("blank_index", -1)

    def run(scores: Array, lengths: Array) -> list[Array]:
        if scores.ndim != 3 or lengths.shape != scores.shape[1:2] or not scores.shape[2]:
            shapes = f"{list(scores.shape)} and {list(lengths.shape)}"
            raise ValueError(f"scores and lengths have shapes {shapes}, expected [time, rows, n]")
        times, rows, classes = scores.shape
        if rows and not 0 <= lengths.min() <= lengths.max() <= times:
            raise ValueError(f"lengths are {lengths.tolist()}, expected at most {times}")
        nothing = blank + classes if blank < 0 else blank
        if not 0 <= nothing < classes:
            raise ValueError(f"blank is label {blank}, expected below {classes}")
        best = scores.argmax(axis=2)  # [time, rows]
        is_inside = np.arange(times)[:, np.newaxis] < lengths
        is_kept = is_inside & (best != nothing)
        if merges:
            is_kept[1:] &= best[1:] != best[:-1]
        row, time = np.nonzero(is_kept.T)
        counts = np.count_nonzero(is_kept, axis=0)
        column = within_rows(counts)
        longest = int(counts.max(initial=0))
        total = np.where(is_inside, scores.max(axis=2), scores.dtype.type(0)).sum(axis=0)
        return [
            np.stack([row, column], axis=1).astype(np.int64),
            best[time, row].astype(np.int64),
            np.array([rows, longest], np.int64),
            -total[:, np.newaxis],
        ]

    return run
