"""STABLEHLO_WHILE, against the specification."""

import numpy as np
import pytest

from delegraph.schema.enums import StablehloComparisonDirection as Direction
from delegraph.schema.options import StablehloCompareOptions, StablehloWhileOptions
from delegraph.testing import constant, delegraph_outputs, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of


@pytest.mark.parametrize(("count", "total"), [(0, 0), (1, 0), (5, 10)])
def test_the_body_runs_while_the_condition_holds(count, total):
    """Sum up the numbers below *count*: (i, s) becomes (i + 1, s + i) while i < count."""
    i, s, i_end, s_end = (tensor((), "INT64") for _ in range(4))
    options = StablehloWhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = Graph([i, s], [i_end, s_end], [Op("STABLEHLO_WHILE", [i, s], [i_end, s_end], options)])
    j, limit, is_below = tensor((), "INT64"), constant(np.int64(count)), tensor((), "BOOL")
    unused = tensor((), "INT64")
    less = StablehloCompareOptions(comparison_direction=Direction.STABLEHLO_COMPARISON_DIRECTION_LT)
    condition = Graph(
        [j, unused], [is_below], [Op("STABLEHLO_COMPARE", [j, limit], [is_below], less)]
    )
    k, t, k_next, t_next = (tensor((), "INT64") for _ in range(4))
    one = constant(np.int64(1))
    steps = [Op("STABLEHLO_ADD", [k, one], [k_next]), Op("STABLEHLO_ADD", [t, k], [t_next])]
    body = Graph([k, t], [k_next, t_next], steps)
    model = model_of(main, condition, body)
    assert delegraph_outputs(model, [np.int64(0), np.int64(0)]) == [count, total]
