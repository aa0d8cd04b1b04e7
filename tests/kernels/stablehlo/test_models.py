"""Models of several StableHLO operators, as converters write them, against NumPy."""

import numpy as np

from delegraph.schema.options import (
    StablehloBroadcastInDimOptions,
    StablehloDotGeneralOptions,
    StablehloReduceOptions,
)
from delegraph.testing import constant, delegraph_outputs, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of


def body(op):
    a, b, y = tensor(()), tensor(()), tensor(())
    return Graph([a, b], [y], [Op(op, [a, b], [y])])


def reduced_and_repeated(x, start, subgraph, shape):
    """Return the operators that reduce rows of *x* and repeat the results, and their result."""
    row, result = tensor(shape[:1]), tensor(shape)
    reduce = StablehloReduceOptions(dimensions=(1,), body_subgraph_index=subgraph)
    repeat = StablehloBroadcastInDimOptions(broadcast_dimensions=(0,))
    ops = [
        Op("STABLEHLO_REDUCE", [x, constant(np.float32(start))], [row], reduce),
        Op("STABLEHLO_BROADCAST_IN_DIM", [row], [result], repeat),
    ]
    return ops, result


def test_a_dense_layer_with_softmax():
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(4, 6)).astype(np.float32), rng.normal(size=(6, 5))
    shape = (4, 5)
    given, logits, centred, odds, y = tensor((4, 6)), *(tensor(shape) for _ in range(4))
    product = StablehloDotGeneralOptions(
        lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,)
    )
    find_largest, largest = reduced_and_repeated(logits, -np.inf, 1, shape)
    add_up, total = reduced_and_repeated(odds, 0, 2, shape)
    weights = constant(weight.astype(np.float32))
    ops = [
        Op("STABLEHLO_DOT_GENERAL", [given, weights], [logits], product),
        *find_largest,
        Op("STABLEHLO_SUBTRACT", [logits, largest], [centred]),
        Op("STABLEHLO_EXPONENTIAL", [centred], [odds]),
        *add_up,
        Op("STABLEHLO_DIVIDE", [odds, total], [y]),
    ]
    model = model_of(Graph([given], [y], ops), body("STABLEHLO_MAXIMUM"), body("STABLEHLO_ADD"))
    (found,) = delegraph_outputs(model, [x])
    exact = np.exp(x @ weight)
    np.testing.assert_allclose(found, exact / exact.sum(1, keepdims=True), rtol=1e-5)
