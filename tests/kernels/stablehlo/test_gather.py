"""STABLEHLO_GATHER, against the official interpreter and the specification."""

import numpy as np
import pytest

from delegraph.errors import NodeError
from delegraph.schema.options import StablehloGatherOptions
from delegraph.testing import delegraph_outputs, fed, tensor
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.stablehlo import assert_result

OPERAND = np.arange(1, 25, dtype=np.int32).reshape(3, 4, 2)
# operand shape, index shape, offset_dims, collapsed, map, index_vector_dim, slice sizes
CASES = {
    "the specification's": ((3, 4, 2), (2, 3, 2), (2, 3), (0,), (1, 0), 2, (1, 2, 2)),
    "rows": ((5, 4), (3, 1), (1,), (0,), (0,), 1, (1, 4)),
    "elements": ((5, 4), (3, 2), (), (0, 1), (0, 1), 1, (1, 1)),
    "vectors along the first axis": ((5, 4), (2, 3), (0,), (1,), (1, 0), 0, (3, 1)),
    "offsets before batches": ((5, 4, 3), (2, 2), (0, 1), (1,), (0, 1), 1, (2, 1, 3)),
    "offsets round batches": ((5, 4, 3), (2, 6, 2), (0, 3), (2,), (2, 0), 2, (2, 4, 1)),
    "one block": ((5, 4), (2,), (0, 1), (), (0, 1), 0, (2, 3)),
    "no batch": ((7,), (1,), (), (0,), (0,), 0, (1,)),
}


def options(offset_dims, collapsed, index_map, axis, sizes):
    return StablehloGatherOptions(
        offset_dims=offset_dims,
        collapsed_slice_dims=collapsed,
        start_index_map=index_map,
        index_vector_dim=axis,
        slice_sizes=sizes,
    )


def output_of(index_shape, offset_dims, collapsed, axis, sizes):
    batch = iter(n for i, n in enumerate(index_shape) if i != axis)
    kept = iter(n for i, n in enumerate(sizes) if i not in collapsed)
    rank = len(index_shape) - (axis < len(index_shape)) + len(sizes) - len(collapsed)
    return tuple(next(kept) if i in offset_dims else next(batch) for i in range(rank))


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "bool", "float16"])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("case", CASES)
def test_slices_are_the_official_ones(case, index_dtype, dtype):
    shape, index_shape, offset_dims, collapsed, index_map, axis, sizes = CASES[case]
    rng = np.random.default_rng(0)
    x = fed(rng.integers(0, 100, shape).astype(dtype))
    indices = fed(rng.integers(-3, 8, index_shape).astype(index_dtype))  # some beyond the ends
    kind = x.definition.type.name
    y = tensor(output_of(index_shape, offset_dims, collapsed, axis, sizes), kind)
    given = options(offset_dims, collapsed, index_map, axis, sizes)
    assert_agrees("STABLEHLO_GATHER", [x, indices], [y], given)


def test_index_vectors_may_be_the_elements():
    x, indices = np.arange(10, 20, dtype=np.int32), np.int32([[3, 1], [9, 4]])
    given = options((), (0,), (0,), 2, (1,))
    assert_result("GATHER", [x, indices], x[indices], given)


def test_the_specified_example():
    indices = np.int64([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]])
    given = options((2, 3), (0,), (1, 0), 2, (1, 2, 2))
    expected = np.int32(
        [
            [[[1, 2], [3, 4]], [[3, 4], [5, 6]], [[13, 14], [15, 16]]],
            [[[9, 10], [11, 12]], [[11, 12], [13, 14]], [[17, 18], [19, 20]]],
        ]
    )
    (y,) = assert_agrees(
        "STABLEHLO_GATHER", [fed(OPERAND), fed(indices)], [tensor((2, 3, 2, 2), "INT32")], given
    )
    assert y.tolist() == expected.tolist()


def test_indices_of_bytes_are_refused():
    inputs = [fed(OPERAND), fed(np.zeros((1, 1), np.int8))]
    given, y = options((1, 2), (0,), (0,), 1, (1, 4, 2)), tensor((1, 4, 2), "INT32")
    assert_both_refuse("STABLEHLO_GATHER", inputs, [y], given, match="type INT8")


def test_slice_sizes_for_another_rank_are_refused():
    inputs = [fed(OPERAND), fed(np.zeros((1, 1), np.int32))]
    given, y = options((1, 2), (0,), (0,), 1, (1, 4)), tensor((1, 4, 2), "INT32")
    assert_both_refuse("STABLEHLO_GATHER", inputs, [y], given, match="expected 3 numbers")


@pytest.mark.parametrize("size", [-1, 0, 2])
def test_collapsed_axes_keep_one_element(size):
    inputs = [fed(OPERAND[0, :, 0]), fed(np.array([3], np.int32))]
    model, arrays = model_and_arrays(
        "STABLEHLO_GATHER", inputs, ["INT32"], options((), (0,), (0,), 1, (size,))
    )
    with pytest.raises(NodeError, match="of 1 along the collapsed axes"):
        delegraph_outputs(model, arrays)
