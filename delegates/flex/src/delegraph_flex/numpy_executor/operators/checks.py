"""Operators that compute nothing: they check values, print values, or wait."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.registry import FLOATS, functions, operator

Array = NDArray[Any]
_log = logging.getLogger(__name__)


functions({"NoOp": lambda: (), "ControlTrigger": lambda: ()})  # they only order other operators
functions({"Timestamp": lambda: np.float64(time.time())})  # seconds since 1970


@operator("Assert")
def assert_(node: FlexNode) -> Step:
    """Return a function that raises an error unless its condition is true; it has no output."""
    count = node.int("summarize", 3)

    def run(condition: Array, *data: Array) -> tuple[()]:
        if not condition.item():
            raise ValueError(f"assertion failed: {_summary(data, count)}")
        return ()

    return run


@operator("CheckNumerics", "CheckNumericsV2", types=FLOATS)
def check_numerics(node: FlexNode) -> Step:
    """Return a function that returns its input; infinity or NaN in the input is an error."""
    message = node.bytes("message").decode(errors="replace")

    def run(x: Array) -> Array:
        if not np.isfinite(x).all():
            found = ["Inf"] * bool(np.isinf(x).any()) + ["NaN"] * bool(np.isnan(x).any())
            raise ValueError(f"{message} : tensor has {' and '.join(found)} values")
        return x

    return run


@operator("Print")
def print_(node: FlexNode) -> Step:
    """Return a function that returns its first input, and logs the others ``first_n`` times."""
    message = node.bytes("message", b"").decode(errors="replace")
    count, calls_left = node.int("summarize", 3), [node.int("first_n", -1)]

    def run(x: Array, *data: Array) -> Array:
        if calls_left[0]:
            calls_left[0] -= 1
            _log.warning("%s%s", message, _summary(data, count))
        return x

    return run


@operator("PrintV2")
def print_text(node: FlexNode) -> Step:
    """Return a function that logs its text; an ``output_stream`` that names a file is rejected."""
    streams = {"stdout": 20, "stderr": 30, "log(info)": 20, "log(warning)": 30, "log(error)": 40}
    level = streams[node.choice("output_stream", sorted(streams), "stderr")]

    def run(text: Array) -> tuple[()]:
        _log.log(level, "%s", np.asarray(text).item().decode(errors="replace"))
        return ()

    return run


def _summary(data: tuple[Array, ...], count: int) -> str:
    """Return the first *count* elements of arrays *data* as text; all if *count* is negative."""
    parts = []
    for array in data:
        values = array.ravel().tolist()
        shown = values if count < 0 else values[:count]
        parts.append("[" + " ".join(map(str, shown)) + "..." * (len(shown) < len(values)) + "]")
    return " ".join(parts)
