"""UNIQUE."""

import numpy as np
import pytest

from delegraph.schema.enums import TensorType
from delegraph.schema.options import UniqueOptions
from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse


@pytest.mark.parametrize("places", ["INT32", "INT64"])
@pytest.mark.parametrize("dtype", ["f4", "u1", "i4", "i8"])
def test_values_come_in_the_order_of_their_first_appearance(dtype, places):
    x = fed(np.array([3, 1, 3, 0, 1, 2], dtype))
    options = UniqueOptions(idx_out_type=TensorType[places])
    outputs = [x.definition.type.name, places]
    values, found = assert_agrees("UNIQUE", [x], outputs, options)
    assert values.tolist() == [3, 1, 0, 2]
    assert found.tolist() == [0, 1, 0, 2, 1, 3]


def test_an_option_that_names_no_index_stands_for_int32():
    options = UniqueOptions(idx_out_type=TensorType.COMPLEX128)
    assert_agrees("UNIQUE", [fed(np.int64([3, 1, 3]))], ["INT64", "INT32"], options)


def test_other_types_are_refused():
    inputs, outputs = [fed(np.float16([1]))], ["FLOAT16", "INT32"]
    assert_both_refuse("UNIQUE", inputs, outputs, UniqueOptions(), match="has type FLOAT16")
