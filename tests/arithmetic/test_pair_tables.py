"""Tables of some pairs have the results of the tables of all pairs."""

import numpy as np
import pytest

from delegraph import Node, Tensor, builtin_registration
from delegraph.arithmetic import pair_tables
from delegraph.graph import Quantization
from delegraph.operators import evaluate_node
from delegraph.schema.enums import TensorType


@pytest.mark.parametrize("shapes", [((3, 40), (3, 40)), ((3, 37), (3, 37)), ((3, 40), (3, 1))])
@pytest.mark.parametrize("op", ["ADD", "MUL", "DIV"])
@pytest.mark.parametrize("count", [0, 1, 35])
def test_some_pairs_have_the_results_of_all(op, shapes, count):
    type_ = TensorType.UINT8 if op == "DIV" else TensorType.INT8
    scales = (0.05, 0.08, 0.003 if op == "MUL" else 0.07)
    tensors = [
        Tensor(i, type_, shape, quantization=Quantization(np.float32([scale]), np.int32([3])))
        for i, (shape, scale) in enumerate(zip((*shapes, shapes[0]), scales, strict=True))
    ]
    node = Node(0, (0, 1), (2,))

    def evaluate(inputs, numerics):
        return evaluate_node(builtin_registration(op), node, tensors, inputs, numerics)

    pairs = np.random.default_rng(count).integers(0, 1 << 16, count)
    whole = pair_tables(op, *tensors[:2], "builtin", evaluate)
    some = pair_tables(op, *tensors[:2], "builtin", evaluate, pairs)
    assert (some.vector == whole.vector[pairs]).all()
    assert (some.rest == whole.rest[pairs]).all()
    assert some.vector.shape == (count,)
