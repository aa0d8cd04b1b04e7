"""Cases of the operators that compute each element by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from flex_cases import Case, one


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for type in (DataType.FLOAT32, DataType.INT64):
        x, y = (rng.normal(0, 9, shape).astype(type.dtype) for shape in ((2, 3), (3,)))
        yield one("Sub", x, y, T=type)
