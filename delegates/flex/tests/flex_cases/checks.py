"""Cases of operators that compute nothing, where they have nothing to object to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import FLOATS
from flex_cases import Case, one


def cases() -> Iterator[Case]:
    for type in sorted(FLOATS):
        x = np.array([[1, -2, 0]], type.dtype)
        yield one("CheckNumerics", x, T=type, message=b"so far")
        yield one("CheckNumericsV2", x, T=type, message=b"so far")
    yield one("NoOp", out=())
    yield one("ControlTrigger", out=())
    x = np.float32([1, 2])
    yield one("Assert", np.bool_(True), x, out=(), T=[DataType.FLOAT32], summarize=1)
