"""Cases of connectionist classification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, (8, 4))
    scores = np.eye(3)[labels] + rng.uniform(0, 0.5, (8, 4, 3))
    for type in (DataType.FLOAT32, DataType.FLOAT64):
        for merge in (False, True):
            for blank in (-1, 0, 1):
                for lengths in ([8, 5, 0, 1], [0, 0, 0, 0]):
                    attrs: dict[str, Any] = {"merge_repeated": merge, "blank_index": blank}
                    sizes = np.array(lengths, np.int32)
                    out = (*[TensorType.INT64] * 3, TensorType[type.name])
                    inputs = (scores.astype(type.dtype), sizes)
                    tolerance = 3e-7 if type is DataType.FLOAT32 else 1e-15
                    yield one(
                        "CTCGreedyDecoder", *inputs, T=type, **attrs, out=out, tolerance=tolerance
                    )
