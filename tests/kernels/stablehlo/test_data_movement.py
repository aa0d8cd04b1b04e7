"""StableHLO operators that move elements, against the specification."""

import numpy as np
import pytest

from delegraph.schema import options as o
from delegraph.testing import tensor
from support.stablehlo import assert_refused, assert_result

CUBE = np.arange(24, dtype=np.int16).reshape(2, 3, 4)


@pytest.mark.parametrize("shape", [(24,), (4, 6), (1, 24, 1)])
def test_reshape_goes_by_the_declared_shape(shape):
    assert_result("RESHAPE", [CUBE], CUBE.reshape(shape))


def test_reshape_refuses_another_number_of_elements():
    assert_refused("RESHAPE", [CUBE], tensor((5, 5), "INT16"), match="does not fill")


@pytest.mark.parametrize("permutation", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_transpose_takes_output_axes_from_the_permutation(permutation):
    options = o.StablehloTransposeOptions(permutation=permutation)
    assert_result("TRANSPOSE", [CUBE], CUBE.transpose(permutation), options)


def test_transpose_refuses_an_axis_that_comes_twice():
    options = o.StablehloTransposeOptions(permutation=(0, 0, 1))
    assert_refused("TRANSPOSE", [CUBE], tensor((2, 2, 3), "INT16"), options, match="different axes")


def test_broadcast_puts_axes_where_they_are_told():
    # the specification's example
    x, options = (
        np.int32([[1, 2, 3]]),
        o.StablehloBroadcastInDimOptions(broadcast_dimensions=(2, 1)),
    )
    expected = np.int32([[[1, 1], [2, 2], [3, 3]]] * 2)
    assert_result("BROADCAST_IN_DIM", [x], expected, options)


def test_broadcast_transposes_axes_that_descend():
    x, options = CUBE[:, :, 0], o.StablehloBroadcastInDimOptions(broadcast_dimensions=(2, 0))
    expected = np.repeat(x.T[:, np.newaxis], 4, 1)
    assert_result("BROADCAST_IN_DIM", [x], expected, options)


def test_broadcast_of_a_scalar_fills():
    options = o.StablehloBroadcastInDimOptions(broadcast_dimensions=())
    assert_result("BROADCAST_IN_DIM", [np.float32(3)], np.full((2, 3), 3, np.float32), options)


def test_broadcast_refuses_a_length_that_is_neither_one_nor_the_output_s():
    options = o.StablehloBroadcastInDimOptions(broadcast_dimensions=(0,))
    output, message = tensor((4, 2), "INT32"), "does not broadcast"
    assert_refused("BROADCAST_IN_DIM", [np.int32([1, 2])], output, options, match=message)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "complex64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_iota_counts_along_one_axis(axis, dtype):
    options = o.StablehloIotaOptions(iota_dimension=axis)
    assert_result("IOTA", [], np.indices((4, 5))[axis].astype(dtype), options)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenate_joins_along_its_dimension(axis):
    options = o.StablehloConcatenateOptions(dimension=axis)
    expected = np.concatenate([CUBE, CUBE, CUBE], axis)
    assert_result("CONCATENATE", [CUBE] * 3, expected, options)


def test_concatenate_refuses_other_shapes_elsewhere():
    options, output = o.StablehloConcatenateOptions(dimension=0), tensor((4, 3, 4), "INT16")
    inputs = [CUBE, CUBE[:, :2]]
    assert_refused("CONCATENATE", inputs, output, options, match="shape")


@pytest.mark.parametrize(
    ("start", "limit", "stride"),
    [((1, 0, 1), (2, 3, 4), (1, 2, 2)), ((0, 1, 0), (0, 3, 4), (1, 1, 3))],
)
def test_slice_steps_from_start_to_limit(start, limit, stride):
    options = o.StablehloSliceOptions(start_indices=start, limit_indices=limit, strides=stride)
    block = tuple(slice(*bound) for bound in zip(start, limit, stride, strict=True))
    assert_result("SLICE", [CUBE], CUBE[block], options)


def test_slice_refuses_limits_beyond_the_end():
    options = o.StablehloSliceOptions(
        start_indices=(0, 0, 0), limit_indices=(2, 3, 5), strides=(1, 1, 1)
    )
    assert_refused("SLICE", [CUBE], tensor((2, 3, 5), "INT16"), options, match="slice 0:5:1")


@pytest.mark.parametrize("start", [(0, 0, 0), (1, 1, 1), (-5, 9, 1 << 20)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_dynamic_blocks_lie_inside(dtype, start):
    shape = (1, 2, 3)
    first = [min(max(at, 0), n - k) for at, n, k in zip(start, CUBE.shape, shape, strict=True)]
    block = tuple(slice(at, at + size) for at, size in zip(first, shape, strict=True))
    starts = [np.array(at, dtype) for at in start]
    options = o.StablehloDynamicSliceOptions(slice_sizes=shape)
    assert_result("DYNAMIC_SLICE", [CUBE, *starts], CUBE[block], options)
    expected = CUBE.copy()
    expected[block] = -1
    update = np.full(shape, -1, np.int16)
    assert_result("DYNAMIC_UPDATE_SLICE", [CUBE, update, *starts], expected)


def test_a_block_larger_than_its_tensor_is_refused():
    options = o.StablehloDynamicSliceOptions(slice_sizes=(3, 3, 4))
    starts, output = [np.int32(0)] * 3, tensor((3, 3, 4), "INT16")
    assert_refused("DYNAMIC_SLICE", [CUBE, *starts], output, options, match=r"block \[3, 3, 4\]")
