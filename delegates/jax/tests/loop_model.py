"""Models with loops, and running them in either host."""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph.schema.options import LessOptions, MulOptions, ReducerOptions, WhileOptions
from delegraph.testing import constant, subgraphs_model, tensor
from delegraph.testing.outputs import outputs_of

X = {"x": tensor((2,), shape_signature=(-1,)), "y": tensor((2,), shape_signature=(-1,))}
LIMIT = {
    "limit": constant(np.float32(9)),
    "axis": constant(np.int32([0]), "INT32"),
    "m": tensor(()),
    "holds": tensor((), "BOOL"),
}
SMALL = (
    [("REDUCE_MAX", "x axis", "m", ReducerOptions()), ("LESS", "m limit", "holds", LessOptions())],
    "x",
    "holds",
    X | LIMIT,
)
"""Whether all elements are below 9."""

TWO = {"two": constant(np.float32(2))}
DOUBLE = ([("MUL", "x two", "y", MulOptions())], "x", "y", X | TWO)


def loop(body: Any = DOUBLE) -> bytes:
    """Return a model that enlarges its input in a loop while it is small, and then negates it."""
    calls = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = [("WHILE", "x", "w", calls), ("NEG", "w", "y")]
    return subgraphs_model([(main, "x", "y", X | {"w": X["y"]}), SMALL, body])


def run(interpreter: Any, *inputs: Any) -> np.ndarray:
    types = [detail["dtype"] for detail in interpreter.get_input_details()]
    arrays = [np.asarray(array, dtype) for array, dtype in zip(inputs, types, strict=True)]
    return outputs_of(interpreter, arrays)[0]
