"""Models with loops, and running them in either host."""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph.schema.options import LessOptions, MulOptions, ReducerOptions, WhileOptions
from delegraph.testing import constant, subgraphs_model, tensor

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
    """Return a model that makes its input larger while it is small, and negates it then."""
    calls = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = [("WHILE", "x", "w", calls), ("NEG", "w", "y")]
    return subgraphs_model([(main, "x", "y", X | {"w": X["y"]}), SMALL, body])


def run(interpreter: Any, *inputs: Any) -> np.ndarray:
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        if tuple(detail["shape"]) != np.shape(array):
            interpreter.resize_tensor_input(detail["index"], np.shape(array))
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], np.asarray(array, detail["dtype"]))
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
