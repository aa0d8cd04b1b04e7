"""STABLEHLO_SCATTER, against the official interpreter."""

import numpy as np
import pytest

from delegraph.schema.options import StablehloScatterOptions
from delegraph.testing import delegraph_outputs, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.official import official_outputs
from support.stablehlo import tensor_like

UPDATES = [None, "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"]
# operand, indices, updates, update_window_dims, inserted, map, index_vector_dim
CASES = {
    "rows": ((5, 4), (6, 1), (6, 4), (1,), (0,), (0,), 1),
    "elements": ((5, 4), (40, 2), (40,), (), (0, 1), (1, 0), 1),
    "blocks": ((3, 4, 2), (2, 3, 2), (2, 3, 2, 2), (2, 3), (0,), (1, 0), 2),
    "vectors along the first axis": ((5, 4), (2, 9), (9, 3), (1,), (1,), (1, 0), 0),
    "one block": ((5, 4), (2,), (2, 3), (0, 1), (), (0, 1), 0),
}


def scatter_model(operand, indices, updates, update_op, options):
    kind = tensor_like(operand).type.name
    x, i, u, y = (tensor_like(array) for array in (operand, indices, updates, operand))
    main = Graph([x, i, u], [y], [Op("STABLEHLO_SCATTER", [x, i, u], [y], options)])
    a, b, c = (tensor((), kind) for _ in range(3))
    body = Graph([a, b], [c], [Op(update_op, [a, b], [c])]) if update_op else Graph([a, b], [b])
    return model_of(main, body)


def options(window, inserted, index_map, axis):
    return StablehloScatterOptions(
        update_window_dims=window,
        inserted_window_dims=inserted,
        scatter_dims_to_operand_dims=index_map,
        index_vector_dim=axis,
        update_computation_subgraph_index=1,
    )


def assert_same(model, arrays):
    (ours,), (official,) = delegraph_outputs(model, arrays), official_outputs(model, arrays)
    assert ours.dtype == official.dtype
    np.testing.assert_array_equal(ours, official)
    return ours


@pytest.mark.parametrize("update_op", UPDATES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool"])
@pytest.mark.parametrize("case", CASES)
def test_updates_are_the_official_ones(case, dtype, update_op):
    shape, index_shape, update_shape, *rest = CASES[case]
    rng = np.random.default_rng(0)
    operand, updates = (
        rng.integers(0, 100, shape).astype(dtype) / np.array(7, dtype)
        if dtype.startswith("float")
        else rng.integers(0, 100, shape).astype(dtype)
        for shape in (shape, update_shape)
    )
    indices = rng.integers(-1, 5, index_shape).astype(np.int32)  # some outside, some twice
    model = scatter_model(operand, indices, updates, update_op, options(*rest))
    assert_same(model, [operand, indices, updates])


@pytest.mark.parametrize("update_op", UPDATES)
def test_what_is_no_number_updates_as_officially(update_op):
    operand = np.float32([1, np.nan, 3, np.nan])
    indices, updates = np.int64([[0], [1], [2], [0]]), np.float32([np.nan, 5, np.nan, 7])
    model = scatter_model(operand, indices, updates, update_op, options((), (0,), (0,), 1))
    assert_same(model, [operand, indices, updates])


def test_index_vectors_may_be_the_elements():
    operand, indices = np.arange(5, dtype=np.int32), np.int32([4, 0])
    updates = np.int32([10, 20])
    given = options((), (0,), (0,), 1)
    model = scatter_model(operand, indices, updates, None, given)
    (y,) = delegraph_outputs(model, [operand, indices, updates])
    assert y.tolist() == [20, 1, 2, 3, 10]


def test_other_computations_are_refused():
    operand, indices = np.arange(5, dtype=np.int32), np.int32([[4], [0]])
    arrays = [operand, indices, np.int32([10, 20])]
    model = scatter_model(*arrays, "STABLEHLO_AND", options((), (0,), (0,), 1))
    for outputs in (official_outputs, delegraph_outputs):
        with pytest.raises(RuntimeError, match=r"STABLEHLO_SCATTER|update computation"):
            outputs(model, arrays)
