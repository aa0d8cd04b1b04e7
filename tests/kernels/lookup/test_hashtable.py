"""HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND and HASHTABLE_SIZE."""

import numpy as np
import pytest

from delegraph.schema import options as o
from delegraph.schema.enums import TensorType
from delegraph.testing import constant, delegraph_outputs, tensor
from delegraph.testing.operator_case import texts
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.official import official_outputs

NUMBERS, WORDS = np.array([3, 5, 5], np.int64), texts(b"three", b"five\0", b"again")


def table_model(keys, values, default, count, key_type="STRING", value_type="INT64"):
    """Return a model that looks strings up, or numbers, in a table filled by constants."""
    handle, x = tensor((1,), "RESOURCE"), tensor((count,), key_type)
    y, size = tensor((count,), value_type), tensor((1,), "INT64")
    options = o.HashtableOptions(
        table_id=7, key_dtype=TensorType[key_type], value_dtype=TensorType[value_type]
    )
    filled = [handle, constant(keys), constant(values)]
    found = [handle, x, constant(default)]
    steps = [
        Op("HASHTABLE", [], [handle], options),
        Op("HASHTABLE_IMPORT", filled, []),
        Op("HASHTABLE_FIND", found, [y]),
        Op("HASHTABLE_SIZE", [handle], [size]),
    ]
    return model_of(Graph([x], [y, size], steps))


def test_words_find_their_numbers():
    model = table_model(WORDS, NUMBERS, np.array([-1], np.int64), 2)
    arrays = [texts(b"five\0", b"six")]
    for found, size in (delegraph_outputs(model, arrays), official_outputs(model, arrays)):
        assert found.tolist() == [5, -1]
        assert size.tolist() == [3]


def test_numbers_find_their_words_and_the_first_of_a_key_wins():
    model = table_model(NUMBERS, WORDS, texts(b"?"), 3, "INT64", "STRING")
    arrays = [np.array([5, 3, 4], np.int64)]
    for found, size in (delegraph_outputs(model, arrays), official_outputs(model, arrays)):
        assert found.tolist() == [b"five\0", b"three", b"?"]
        assert size.tolist() == [2]


def test_other_types_are_refused():
    numbers = np.array([1], np.int64)
    model = table_model(numbers, numbers, numbers, 1, "INT64", "INT64")
    with pytest.raises(RuntimeError):
        official_outputs(model, [numbers])
    with pytest.raises(RuntimeError, match="table of INT64 to INT64"):
        delegraph_outputs(model, [numbers])
