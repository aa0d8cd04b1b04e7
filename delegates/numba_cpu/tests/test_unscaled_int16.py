"""Operators on int16 without scales: the core's integers, or its refusal in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegated import delegate, levels
from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.schema import options as o
from delegraph.schema.enums import Padding
from delegraph.testing import constant, delegraph_outputs, one_op_model, tensor
from delegraph.testing.registered_operators import BUILTIN_VERSIONS
from delegraph_numba_cpu.delegate import NumbaCpuDelegate

A = np.int16([-32768, -300, -1, 0, 1, 2, 182, 32767] * 5).reshape(1, 4, 5, 2)
B = np.int16([-1, 300, 3, 5, -7, 32767, 182, 2] * 5).reshape(1, 4, 5, 2)

OPTIONS: dict[str, Any] = {
    "ADD": o.AddOptions(),
    "SUB": o.SubOptions(),
    "MUL": o.MulOptions(),
    "DIV": o.DivOptions(),
    "SOFTMAX": o.SoftmaxOptions(beta=1.0),
    "L2_NORMALIZATION": o.L2NormOptions(),
    "LEAKY_RELU": o.LeakyReluOptions(alpha=0.5),
}
PAIRS = (
    "ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "LESS",
)  # fmt: skip
ROWS = (
    "RELU", "RELU6", "RELU_N1_TO_1", "ABS", "NEG", "SQUARE", "RSQRT", "LEAKY_RELU", "HARD_SWISH",
    "LOGISTIC", "TANH", "SOFTMAX", "L2_NORMALIZATION",
)  # fmt: skip
REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")


def model(op: str, scales: tuple[float | None, ...]) -> bytes:
    (first, second, last), version = scales, BUILTIN_VERSIONS[op][1]
    x, y = (tensor(A.shape, "INT16", scale=scale) for scale in (first, last))
    if op in PAIRS:
        result = tensor(A.shape, "BOOL") if op == "LESS" else y
        operands = [x, tensor(B.shape, "INT16", scale=second)]
        return one_op_model(op, operands, [result], OPTIONS.get(op), version=version)
    if op in REDUCTIONS:
        options = o.ReducerOptions(keep_dims=True)
        small = tensor((1, 1, 1, 2), "INT16", scale=last)
        return one_op_model(op, [x, constant(np.int32([1, 2]))], [small], options, version=version)
    if op in POOLS:
        options = o.Pool2DOptions(
            padding=Padding.SAME, filter_height=2, filter_width=2, stride_h=1, stride_w=1
        )
        return one_op_model(op, [x], [y], options, version=version)
    return one_op_model(op, [x], [y], OPTIONS.get(op), version=version)


def answer(content: bytes, *delegates: NumbaCpuDelegate) -> Any:
    arrays = [A, B][: len(Interpreter(model_content=content, delegates=[]).get_input_details())]
    try:
        return [y.tolist() for y in delegraph_outputs(content, arrays, delegates=delegates)]
    except DelegraphError as error:
        return type(error), str(error)


@levels
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of a quotient that 16 bits cannot hold
@pytest.mark.parametrize("scales", [(None, None, None), (0.5, None, None), (None, None, 0.5)])
@pytest.mark.parametrize("op", [*PAIRS, *ROWS, *REDUCTIONS, *POOLS])
def test_answers_are_the_cores(op: str, scales: tuple[float | None, ...], level: str) -> None:
    content = model(op, scales)
    assert answer(content, delegate(level)) == answer(content)


@levels
@pytest.mark.parametrize("type", ["INT8", "INT16", "INT32", "INT64"])
@pytest.mark.parametrize("scale", [None, 0.5])
def test_products_that_overflow_are_the_cores(type: str, scale: float | None, level: str) -> None:
    scale = None if type in ("INT32", "INT64") else scale
    ends = np.iinfo(type.lower())
    values = np.random.default_rng(2).integers(ends.min, ends.max, (3, 40), type.lower())
    x, y = (tensor(shape, type, scale=scale) for shape in ((3, 40), (3,)))
    axes = constant(np.int32([1]))
    content = one_op_model("REDUCE_PROD", [x, axes], [y], o.ReducerOptions(), version=2)
    (mine,), (right,) = (
        delegraph_outputs(content, [values], delegates=by) for by in ([delegate(level)], [])
    )
    np.testing.assert_array_equal(mine, right)
