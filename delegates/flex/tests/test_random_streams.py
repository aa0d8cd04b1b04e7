"""Random operators that go on from call to call: where their streams begin, and what is in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from delegraph import TensorType
from delegraph.errors import OperatorError
from delegraph_flex.data_types import DataType
from delegraph_flex.flex_node import FlexNode, NodeEnvironment
from delegraph_flex.node_def import NodeDef
from delegraph_flex.numpy_executor.executor import NumpyExecutor
from delegraph_flex.numpy_executor.philox import Philox

SHAPE = np.array([5], np.int32)


def bound(around: NodeEnvironment, op: str = "RandomUniform", index: int = 0, **seeds: int) -> Any:
    attrs = {"dtype": DataType.FLOAT32, "T": DataType.INT32, **seeds}
    types = (TensorType.INT32,), (TensorType.FLOAT32,)
    return NumpyExecutor().bind(FlexNode(index, NodeDef(op, attrs, 1), *types, around))


def test_seeds_begin_the_same_stream_in_every_interpreter() -> None:
    first, second = (bound(NodeEnvironment(), seed=3, seed2=4) for _ in range(2))
    np.testing.assert_array_equal(first(SHAPE), second(SHAPE))
    np.testing.assert_array_equal(first(SHAPE), second(SHAPE))


def test_calls_go_on_in_the_stream() -> None:
    draw = bound(NodeEnvironment(), seed=3)
    assert not np.array_equal(draw(SHAPE), draw(SHAPE))


def test_a_node_that_is_bound_again_goes_on_in_its_stream() -> None:
    around, whole = NodeEnvironment(), bound(NodeEnvironment(), seed=3)
    bound(around, seed=3)(SHAPE)
    whole(SHAPE)
    np.testing.assert_array_equal(bound(around, seed=3)(SHAPE), whole(SHAPE))


def test_nodes_of_equal_seeds_have_streams_of_their_own() -> None:
    around = NodeEnvironment()
    first, second = bound(around, seed=3), bound(around, seed=3, index=1)
    np.testing.assert_array_equal(first(SHAPE), second(SHAPE))


def test_without_seeds_interpreters_differ() -> None:
    first, second = (bound(NodeEnvironment()) for _ in range(2))
    assert not np.array_equal(first(SHAPE), second(SHAPE))


@pytest.mark.parametrize(
    ("op", "distribution"),
    [
        ("RandomUniform", stats.uniform()),
        ("RandomStandardNormal", stats.norm()),
        ("TruncatedNormal", stats.truncnorm(-2, 2)),
    ],
)
def test_numbers_have_their_distribution(op: str, distribution: Any) -> None:
    values = bound(NodeEnvironment(), op, seed=20, seed2=22)(np.array([100, 200], np.int32))
    assert stats.kstest(values.reshape(-1), distribution.cdf).pvalue > 0.01
    neighbours = np.corrcoef(values[:, :-1].reshape(-1), values[:, 1:].reshape(-1))[0, 1]
    assert abs(neighbours) < 4 / np.sqrt(values.size)


@pytest.mark.parametrize("groups", [1, 10, 11, 40])
def test_few_groups_of_words_are_those_of_many(groups: int) -> None:
    start = Philox(0x123456789ABCDEF0, (7 << 64) - 5)
    many = start.words(64)
    np.testing.assert_array_equal(start.words(groups), many[:groups])
    np.testing.assert_array_equal(start.skipped(9).words(groups), many[9 : 9 + groups])
    np.testing.assert_array_equal(
        start.blocks(np.array([0, 3]), groups).reshape(2, groups, 4),
        np.stack([many[:groups], many[3 : 3 + groups]]),
    )


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (np.array([[2]], np.int32), "expected a vector"),
        (np.array([2, -1], np.int32), "no negative dimension"),
        (np.array([1 << 20, 1 << 20], np.int32), "more than the limit"),
    ],
)
def test_shapes_that_cannot_be_are_refused(shape: Any, message: str) -> None:
    with pytest.raises((ValueError, OperatorError), match=message):
        bound(NodeEnvironment(), seed=1)(shape)
