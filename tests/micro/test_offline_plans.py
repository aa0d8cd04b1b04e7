from __future__ import annotations

import numpy as np
import pytest

from delegraph.errors import MalformedModelError
from delegraph.graph.loader import parse_model
from delegraph.micro.offline_plans import METADATA_NAME, encode_offline_plan, offline_plan
from delegraph.testing import graph_model


def model(content):
    metadata = None if content is None else {METADATA_NAME: content}
    nodes = [("SIN", "x", "s"), ("COS", "s", "y")]
    return parse_model(graph_model(nodes, inputs="x", outputs="y", metadata=metadata))


def words(*values):
    return np.array(values, "<i4").tobytes()


def test_a_model_without_a_plan_has_none():
    assert offline_plan(model(None)) is None


def test_what_is_encoded_is_read_again():
    assert offline_plan(model(encode_offline_plan([0, 16, -1]))) == [0, 16, -1]


def test_version_and_subgraph_count_are_ignored():
    assert offline_plan(model(words(7, 9, 3, 4, 5, 6))) == [4, 5, 6]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (words(1, 1, 2, 0, 0), r"offsets \(2\) in metadata not equal nbr tensors \(3\)"),
        (words(1, 1, 3, 0, 0), "has 2 offsets, announces 3"),
        (words(1), r"offsets \(-1\)"),
    ],
)
def test_a_plan_that_does_not_go_with_the_model_is_refused(content, message):
    with pytest.raises(MalformedModelError, match=message):
        offline_plan(model(content))
