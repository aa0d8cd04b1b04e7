"""HASHTABLE_LOOKUP, against the official interpreter."""

import numpy as np
import pytest

from delegraph.testing import constant
from delegraph.testing.operator_case import fed, texts
from support.agreement import assert_agrees, assert_both_refuse

KEYS = np.array([-11, 0, 1234], np.int32)
LOOKUP = np.array([1234, -292, -11, 0, 2000], np.int32)
VALUES = {
    "floats": np.array([[1, 2], [3, 4], [5, 6]], np.float32),
    "integers": np.array([7, 8, 9], np.int32),
    "texts": texts(b"one", b"", b"three"),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_values_are_found_by_key(values):
    kind = constant(values, "STRING" if values.dtype == object else None)
    inputs = [fed(LOOKUP), constant(KEYS), kind]
    outputs = [kind.type.name, "UINT8"]
    found, hits = assert_agrees("HASHTABLE_LOOKUP", inputs, outputs)
    assert hits.tolist() == [1, 0, 1, 1, 0]
    absent = b"" if values.dtype == object else np.zeros_like(values[0])
    expected = [values[2], absent, values[0], values[1], absent]
    assert [np.array_equal(a, b) for a, b in zip(found, expected, strict=True)] == [True] * 5


@pytest.mark.parametrize(
    "keys", [[1, 1], [1, 1, 1], [1, 1, 1, 3], [0, 1, 1, 1, 1], [3, 1, 2]], ids=str
)
def test_keys_may_repeat(keys):
    values = constant(np.arange(len(keys), dtype=np.int32))
    inputs = [fed(np.int32([0, 1, 2, 3])), constant(np.int32(keys)), values]
    assert_agrees("HASHTABLE_LOOKUP", inputs, ["INT32", "UINT8"])


def test_as_many_values_as_keys_are_wanted():
    inputs = [fed(LOOKUP), constant(KEYS), constant(np.zeros(2, np.float32))]
    message = r"3 keys for values of shape \[2\]"
    assert_both_refuse("HASHTABLE_LOOKUP", inputs, ["FLOAT32", "UINT8"], match=message)
