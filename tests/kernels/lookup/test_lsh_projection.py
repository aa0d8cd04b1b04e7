"""LSH_PROJECTION, against the official interpreter."""

import numpy as np
import pytest

from delegraph.schema.enums import LSHProjectionType
from delegraph.schema.options import LSHProjectionOptions
from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

KINDS = [LSHProjectionType.DENSE, LSHProjectionType.SPARSE]
BOTH = pytest.mark.parametrize("kind", KINDS)
LENGTHS = [1, 2, 3, 4, 7, 8, 12, 13, 20, 28, 29, 44, 60, 61, 100, 124, 125, 300]


def seeds(hashes, bits):
    rng = np.random.default_rng(0)
    return constant(rng.normal(size=(hashes, bits)).astype(np.float32))


@BOTH
@pytest.mark.parametrize("length", LENGTHS)
def test_bits_of_single_rows_are_the_signs_of_their_hashes(length, kind):
    x = np.random.default_rng(length).integers(0, 256, (1, length)).astype(np.uint8)
    options = LSHProjectionOptions(type=kind)
    assert_agrees("LSH_PROJECTION", [seeds(16, 20), fed(x)], ["INT32"], options)


@BOTH
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.int8])
def test_rows_are_added_up(dtype, is_weighted, kind):
    rng = np.random.default_rng(1)
    x = fed(rng.integers(-9, 9, (5, 2, 3)).astype(dtype))
    weights = [fed(rng.normal(size=5).astype(np.float32))] if is_weighted else []
    options = LSHProjectionOptions(type=kind)
    assert_agrees("LSH_PROJECTION", [seeds(9, 24), x, *weights], ["INT32"], options)


@pytest.mark.parametrize("bits", [31, 32])
def test_numbers_wrap_at_32_bits(bits):
    x = fed(np.arange(4, dtype=np.int32))
    options = LSHProjectionOptions(type=LSHProjectionType.SPARSE)
    assert_agrees("LSH_PROJECTION", [seeds(8, bits), x], ["INT32"], options)


def test_more_than_32_bits_are_refused():
    inputs = [seeds(2, 33), fed(np.arange(4, dtype=np.int32))]
    options = LSHProjectionOptions(type=LSHProjectionType.DENSE)
    assert_both_refuse("LSH_PROJECTION", inputs, ["INT32"], options, match="33 bits a hash")


def test_a_projection_without_a_type_is_refused():
    inputs = [seeds(2, 3), fed(np.arange(4, dtype=np.int32))]
    options, message = LSHProjectionOptions(), "expected SPARSE or DENSE"
    assert_both_refuse("LSH_PROJECTION", inputs, ["INT32"], options, match=message)


def test_weights_for_other_rows_are_refused():
    inputs = [seeds(2, 3), fed(np.arange(4, dtype=np.int32)), fed(np.ones(3, np.float32))]
    options = LSHProjectionOptions(type=LSHProjectionType.DENSE)
    message = r"shape \[3\], expected \[4\]"
    assert_both_refuse("LSH_PROJECTION", inputs, ["INT32"], options, match=message)
