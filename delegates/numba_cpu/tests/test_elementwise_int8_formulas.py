from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from delegraph import Node, Tensor
from delegraph.graph import Quantization
from delegraph.schema.enums import TensorType
from delegraph_numba_cpu.lowering import Call
from delegraph_numba_cpu.lowering.elementwise.elementwise_int8_formulas import (
    close_pairs,
    find_formula,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_int8_pairs import tables

ALL = np.arange(1 << 16)


def node(op: str, type_: TensorType, scales: list[float], zero_points: list[int]) -> Call:
    tensors = [
        Tensor(i, type_, (4, 8), quantization=Quantization(np.float32([scale]), np.int32([zero])))
        for i, (scale, zero) in enumerate(zip(scales, zero_points, strict=True))
    ]
    context: Any = SimpleNamespace(tensors=tensors, numerics="builtin")
    return Call(context, Node(0, (0, 1), (2,)), op)


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize("type_", [TensorType.INT8, TensorType.UINT8], ids=lambda x: x.name)
def test_formulas_tried_on_close_pairs_are_exact_for_all(op: str, type_: TensorType) -> None:
    random = np.random.default_rng(7)
    for _ in range(20):
        scales = (10 ** random.uniform(-1.5, -1, 3)).tolist()
        if op == "MUL":
            scales[2] = scales[0] * scales[1] * 10 ** random.uniform(1.6, 2.5)
        low = -128 if type_ is TensorType.INT8 else 0
        call = node(op, type_, scales, random.integers(low, low + 256, 3).tolist())
        pairs = close_pairs(call)
        assert len(pairs) < len(ALL)
        wanted = tables(call).vector
        assert (tables(call, pairs).vector == wanted[pairs]).all()
        assert find_formula(call, pairs, wanted[pairs]) == find_formula(call, ALL, wanted)


def test_all_pairs_of_a_sum_beyond_int16_are_tried() -> None:
    call = node("ADD", TensorType.INT8, [1.0, 1.0, 0.001], [0, 0, 0])
    assert len(close_pairs(call)) == len(ALL)
