"""Models of several StableHLO operators, as converters write them, against NumPy."""

import numpy as np
import pytest

from delegraph.schema import options as o
from delegraph.schema.enums import StablehloComparisonDirection as Direction
from delegraph.testing import constant, delegraph_outputs, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of


def body(op):
    a, b, y = tensor(()), tensor(()), tensor(())
    return Graph([a, b], [y], [Op(op, [a, b], [y])])


def reduced_and_repeated(x, start, subgraph, shape):
    """Return the operators that reduce rows of *x* and repeat the results, and their result."""
    row, result = tensor(shape[:1]), tensor(shape)
    reduce = o.StablehloReduceOptions(dimensions=(1,), body_subgraph_index=subgraph)
    repeat = o.StablehloBroadcastInDimOptions(broadcast_dimensions=(0,))
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
    product = o.StablehloDotGeneralOptions(
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


@pytest.mark.parametrize(("count", "total"), [(0, 0), (1, 0), (5, 10)])
def test_the_body_runs_while_the_condition_holds(count, total):
    """Sum up the numbers below *count*: (i, s) becomes (i + 1, s + i) while i < count."""
    i, s, i_end, s_end = (tensor((), "INT64") for _ in range(4))
    options = o.StablehloWhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = Graph([i, s], [i_end, s_end], [Op("STABLEHLO_WHILE", [i, s], [i_end, s_end], options)])
    j, limit, is_below = tensor((), "INT64"), constant(np.int64(count)), tensor((), "BOOL")
    unused = tensor((), "INT64")
    less = o.StablehloCompareOptions(
        comparison_direction=Direction.STABLEHLO_COMPARISON_DIRECTION_LT
    )
    condition = Graph(
        [j, unused], [is_below], [Op("STABLEHLO_COMPARE", [j, limit], [is_below], less)]
    )
    k, t, k_next, t_next = (tensor((), "INT64") for _ in range(4))
    one = constant(np.int64(1))
    steps = [Op("STABLEHLO_ADD", [k, one], [k_next]), Op("STABLEHLO_ADD", [t, k], [t_next])]
    body = Graph([k, t], [k_next, t_next], steps)
    model = model_of(main, condition, body)
    assert delegraph_outputs(model, [np.int64(0), np.int64(0)]) == [count, total]
