"""Checks of the section Interpreter."""

from __future__ import annotations

import numpy as np

from delegraph import Interpreter
from delegraph.schema.options import AddOptions
from delegraph.testing import constant, one_op_model, tensor
from differences.difference import Sides, attempt, both, difference


@difference("axis-of-a-list-of-scales")
def _() -> Sides:
    bias = constant(np.ones(3, np.int32), scale=[1.0, 1.0, 1.0], axis=3)
    x = tensor((1, 3), "INT32")
    model = one_op_model("ADD", [x, bias], [tensor((1, 3), "INT32")], AddOptions())
    return both(model, [np.zeros((1, 3), np.int32)])


@difference("memory-limit")
def _() -> Sides:
    from ai_edge_litert.interpreter import Interpreter as LiteRt

    large = [tensor((1 << 30,), "INT8") for _ in range(2)]
    model = one_op_model("EXPAND_DIMS", [large[0], constant(np.int32(0))], [large[1]])
    sides = Interpreter(model_content=model), LiteRt(model_content=model)
    ours, theirs = (attempt(side.allocate_tensors) for side in sides)
    return ours, theirs
