from __future__ import annotations

import pytest

from delegraph.delegation.delegate import DelegateParams
from delegraph.errors import (
    ArenaTooSmallError,
    DelegateNodeError,
    DelegraphError,
    NodeError,
    UnresolvedOpError,
)
from delegraph.operators.registration import Node, Registration
from delegraph.runtime.execution.node_errors import Verb, node_error

ADD = Registration("ADD", lambda context, node: lambda: None)


class Npu:
    def name(self) -> str:
        return "npu"


def error_of(node: Node, verb: Verb = "invoke") -> DelegraphError:
    return node_error(node, ADD, verb, OSError("no"))


def delegate_node(*replaced: int) -> Node:
    params = DelegateParams(Npu(), replaced, (), ())
    return Node(9, (), (), options=params, delegate=params.delegate)


def test_a_node_says_which_one_it_is_what_it_did_and_why() -> None:
    error = error_of(Node(3, (), ()), "prepare")
    assert str(error) == "Node number 3 (ADD) failed to prepare: OSError: no"
    assert isinstance(error, NodeError)
    assert not isinstance(error, DelegateNodeError)
    assert (error.node_index, error.op) == (3, "ADD")


@pytest.mark.parametrize(
    ("verb", "phase"),
    [("initialize", "init"), ("prepare", "prepare"), ("allocate", "prepare"), ("invoke", "eval")],
)
def test_a_delegates_node_tells_the_phase(verb: Verb, phase: str) -> None:
    error = error_of(delegate_node(1), verb)
    assert isinstance(error, DelegateNodeError)
    assert (error.delegate, error.phase, error.node_index, error.op) == ("npu", phase, 9, "ADD")


@pytest.mark.parametrize(
    ("replaced", "words"),
    [
        ((4,), "node 4"),
        ((4, 2), "nodes 4, 2"),
        (tuple(range(8)), "nodes 0, 1, 2, 3, 4, 5, 6, 7"),
        (tuple(range(9)), "nodes 0, 1, 2, 3, 4, 5, 6, 7, ..."),
    ],
)
def test_a_delegates_node_names_the_nodes_that_it_replaces(
    replaced: tuple[int, ...], words: str
) -> None:
    text = str(error_of(delegate_node(*replaced)))
    assert text.endswith(f"(delegate 'npu', in place of {words})")


def test_errors_that_say_enough_stay_as_they_are() -> None:
    for clear in (
        UnresolvedOpError("a", node_index=1, op="b"),
        DelegateNodeError("a", node_index=1, op="b", delegate="c", phase="eval"),
        ArenaTooSmallError("a", missing=1),
    ):
        assert node_error(Node(3, (), ()), ADD, "invoke", clear) is clear
