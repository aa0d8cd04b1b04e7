"""SPACE_TO_DEPTH and DEPTH_TO_SPACE."""

import numpy as np
import pytest

from delegraph.schema.options import DepthToSpaceOptions, SpaceToDepthOptions
from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse

DTYPES = ["f4", "u1", "i1", "i4", "i8"]
X = np.arange(2 * 4 * 6 * 8).reshape(2, 4, 6, 8) % 251


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [1, 2])
def test_space_to_depth_moves_blocks_into_channels(block, dtype):
    x = fed(X.astype(dtype))
    options = SpaceToDepthOptions(block_size=block)
    kind = x.definition.type.name
    (y,) = assert_agrees("SPACE_TO_DEPTH", [x], [kind], options, version=2)
    assert y[1, 1, 2, -1] == x.array[1, 2 * block - 1, 3 * block - 1, -1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [1, 2])
def test_depth_to_space_is_the_reverse(block, dtype):
    x = fed(X.astype(dtype))
    options = DepthToSpaceOptions(block_size=block)
    kind = x.definition.type.name
    (y,) = assert_agrees("DEPTH_TO_SPACE", [x], [kind], options, version=2)
    (back,) = assert_agrees(
        "SPACE_TO_DEPTH", [fed(y)], [kind], SpaceToDepthOptions(block_size=block)
    )
    np.testing.assert_array_equal(back, x.array)


@pytest.mark.parametrize("block", [0, 5])
def test_blocks_that_do_not_fit_are_refused(block):
    x, options = fed(X.astype("f4")), SpaceToDepthOptions(block_size=block)
    assert_both_refuse("SPACE_TO_DEPTH", [x], ["FLOAT32"], options, match="block")
    options = DepthToSpaceOptions(block_size=block)
    assert_both_refuse("DEPTH_TO_SPACE", [x], ["FLOAT32"], options, match="block|multiple of")
