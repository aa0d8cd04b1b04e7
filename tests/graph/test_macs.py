from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from delegraph.graph.loader import parse_model
from delegraph.graph.macs import is_least, macs_of
from delegraph.schema.options import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    TransposeConvOptions,
)
from delegraph.schema.table import Table
from delegraph.testing import TensorDef, constant, one_op_model, tensor


def _zeros(*shape: int) -> TensorDef:
    return constant(np.zeros(shape, np.float32))


# Operator, inputs, output shape, options, multiply-accumulates.
CASES = [
    ("CONV_2D", [tensor((1, 4, 4, 2)), _zeros(3, 3, 3, 2)], (1, 4, 4, 3), Conv2DOptions(), 864),
    (
        "DEPTHWISE_CONV_2D",
        [tensor((1, 4, 4, 2)), _zeros(1, 3, 3, 2)],
        (1, 4, 4, 2),
        DepthwiseConv2DOptions(),
        288,
    ),
    ("FULLY_CONNECTED", [tensor((2, 5)), _zeros(3, 5)], (2, 3), FullyConnectedOptions(), 30),
    (
        "TRANSPOSE_CONV",
        [constant([1, 4, 4, 3], "INT32"), _zeros(3, 2, 2, 1), tensor((1, 2, 2, 1))],
        (1, 4, 4, 3),
        TransposeConvOptions(),
        48,
    ),
    ("BATCH_MATMUL", [tensor((2, 3, 5)), tensor((2, 5, 7))], (2, 3, 7), BatchMatMulOptions(), 210),
    (
        "BATCH_MATMUL",
        [tensor((2, 5, 3)), tensor((2, 5, 7))],
        (2, 3, 7),
        BatchMatMulOptions(adj_x=True),
        210,
    ),
    ("ADD", [tensor((2,)), tensor((2,))], (2,), None, 0),
    ("MyOp", [tensor((2,)), tensor((2,))], (2,), None, 0),
]


@pytest.mark.parametrize(("op", "inputs", "output", "options", "count"), CASES)
def test_multiply_accumulates_are_counted(
    op: str, inputs: Sequence[TensorDef], output: tuple[int, ...], options: Table | None, count: int
) -> None:
    model = parse_model(one_op_model(op, inputs, [tensor(output)], options))
    (subgraph,) = model.subgraphs
    assert macs_of(subgraph.operators[0], subgraph.tensors) == count


def test_a_recurrent_layer_uses_its_matrices_at_each_step() -> None:
    x, state = tensor((7, 1, 2)), tensor((1, 4), is_variable=True)
    inputs = [x, _zeros(4, 2), _zeros(4, 4), _zeros(4), state]
    content = one_op_model("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, [tensor((7, 1, 4))])
    (subgraph,) = parse_model(content).subgraphs
    assert macs_of(subgraph.operators[0], subgraph.tensors) == 7 * (4 * 2 + 4 * 4)


@pytest.mark.parametrize("unknown", ["left", "right"])
def test_the_common_dimension_of_a_matrix_product_may_be_known_of_one_input(unknown: str) -> None:
    left, right = tensor((2, 3, 5)), tensor((2, 5, 7))
    if unknown == "left":
        left = tensor((2, 3, 1), shape_signature=(2, 3, -1))
    else:
        right = tensor((2, 1, 7), shape_signature=(2, -1, 7))
    model = one_op_model("BATCH_MATMUL", [left, right], [tensor((2, 3, 7))], BatchMatMulOptions())
    (graph,) = parse_model(model).subgraphs
    assert macs_of(graph.operators[0], graph.tensors) == 210
    assert is_least(graph.operators[0], graph.tensors)


def test_a_product_whose_result_has_no_shape_in_the_file_has_no_known_number() -> None:
    model = one_op_model(
        "FULLY_CONNECTED", [tensor((2, 5)), _zeros(3, 5)], [tensor(())], FullyConnectedOptions()
    )
    (graph,) = parse_model(model).subgraphs
    assert macs_of(graph.operators[0], graph.tensors) == 0
    assert is_least(graph.operators[0], graph.tensors)
    model = one_op_model("ADD", [tensor(()), tensor(())], [tensor(())])
    (graph,) = parse_model(model).subgraphs
    assert not is_least(graph.operators[0], graph.tensors)
