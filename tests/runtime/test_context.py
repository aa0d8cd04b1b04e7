"""What a delegate or a kernel is told of its subgraph, and what it may not ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph import DelegateContext, Interpreter
from delegraph.errors import ArgumentError, OperatorError
from delegraph.schema.enums import TensorType
from delegraph.testing import graph_model, subgraphs_model
from support.looking import Looking

ONE = graph_model(
    [("SIN", "x", "s"), ("NEG", "s", "y")], inputs="x", outputs="y", metadata={"b": b"2", "a": b"1"}
)
SINE: Any = ([("SIN", "x", "y")], "x", "y", {})
TWO = subgraphs_model([SINE, SINE], names=["main", "other"])


def look(model: bytes, see: Callable[[Any], None], **options: Any) -> None:
    """Let *see* look at the first subgraph while a delegate is applied."""
    seen = []

    def once(context: DelegateContext) -> None:
        if context.subgraph_index == 0:
            seen.append(see(context))

    with Interpreter(model_content=model, **options) as interpreter:
        interpreter.modify_graph_with_delegate(Looking(once))
    assert seen


@pytest.mark.parametrize(
    ("options", "granted", "used"),
    [({}, -1, 1), ({"num_threads": 1}, 1, 1), ({"num_threads": 3}, 3, 3)],
)
def test_threads_that_the_user_grants_and_those_of_kernels(
    options: dict[str, int], granted: int, used: int
) -> None:
    def see(context: Any) -> None:
        assert (context.recommended_num_threads, context.num_threads) == (granted, used)

    look(ONE, see, **options)


def test_other_subgraphs_are_there_by_their_index() -> None:
    def see(context: Any) -> None:
        assert tuple(context.subgraph_names) == ("main", "other")
        for index in (0, 1):
            assert context.acquire_subgraph_context(index).subgraph_index == index
        for index in (-1, 2):
            with pytest.raises(ArgumentError, match=f"no subgraph {index}; the model has 2"):
                context.acquire_subgraph_context(index)
            with pytest.raises(OperatorError, match=f"no subgraph {index}; the model has 2"):
                context.subgraph(index)
        assert context.subgraph(1).inputs == (0,)
        with pytest.raises(OperatorError, match="subgraph 0 cannot call itself"):
            context.subgraph(0)

    look(TWO, see)


def test_the_entry_is_not_skipped() -> None:
    def see(context: Any) -> None:
        with pytest.raises(ArgumentError, match="subgraph 0 is the model's entry"):
            context.mark_subgraph_as_delegation_skippable(0)

    look(TWO, see)


def test_nodes_are_there_by_their_index() -> None:
    def see(context: Any) -> None:
        assert context.get_execution_plan() == (0, 1)
        assert [context.get_node_and_registration(i)[1].name for i in (0, 1)] == ["SIN", "NEG"]
        for index in (-1, 2):
            with pytest.raises(ArgumentError, match=f"no node {index}; the subgraph has 2"):
                context.get_node_and_registration(index)

    look(ONE, see)


def test_tensors_that_a_delegate_adds_have_the_types_it_gives_them() -> None:
    def see(context: Any) -> None:
        count = len(context.tensors)
        assert context.add_tensors(0) == context.add_tensors(-1) == count == len(context.tensors)
        assert context.add_tensors(2) == count
        added = context.tensors[count:]
        assert [(t.index, t.type, t.shape) for t in added] == [
            (count, TensorType.FLOAT32, ()),
            (count + 1, TensorType.FLOAT32, ()),
        ]
        added[0].data = np.float32(1)
        context.set_tensor_type(added[0], TensorType.INT8)
        assert (added[0].type, added[0].dtype, added[0].data) == (TensorType.INT8, np.int8, None)
        with pytest.raises(ArgumentError, match="belongs to the model and keeps its type"):
            context.set_tensor_type(context.tensors[count - 1], TensorType.INT8)

    look(ONE, see)


def test_metadata_are_there_by_name() -> None:
    def see(context: Any) -> None:
        assert bytes(context.get_model_metadata("a")) == b"1"
        with pytest.raises(ArgumentError, match="no metadata 'c'; the model has: a, b"):
            context.get_model_metadata("c")

    def see_none(context: Any) -> None:
        with pytest.raises(ArgumentError, match="no metadata 'c'; the model has: none"):
            context.get_model_metadata("c")

    look(ONE, see)
    look(TWO, see_none)
