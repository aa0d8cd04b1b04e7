"""Which operators become the mapped part."""

from __future__ import annotations

import pytest

from delegraph.errors import ArgumentError
from delegraph.graph import parse_model
from delegraph.testing import tensor
from delegraph_edgetpu.mapping import ModelMapping, map_subgraph
from delegraph_edgetpu.reasons import Status
from quantised_chains import chain

FLOAT = tensor((1, 4))


def mapping_of(
    model: bytes, ends: list[str] | None = None, without: list[int] | None = None
) -> ModelMapping:
    return map_subgraph(parse_model(model).subgraphs[0], 14, ends or (), without or ())


def test_mapping_stops_at_the_first_operator_that_cannot_map() -> None:
    model = chain(
        [("RELU", "x", "a"), ("HARD_SWISH", "a", "b"), ("RELU", "b", "c"), ("TANH", "c", "y")],
        outputs="y",
    )
    mapping = mapping_of(model)
    assert mapping.mapped == (0,)
    assert mapping.after == (1, 2, 3)
    assert [o.status for o in mapping.operators] == [
        Status.MAPPED, Status.UNKNOWN, Status.BEHIND, Status.BEHIND,
    ]  # fmt: skip
    assert "results of node 1 (HARD_SWISH)" in str(mapping.operators[3].reasons[0])


def test_the_first_node_in_the_way_is_named_although_others_break_rules_too() -> None:
    nodes = [("RELU", "x", "a"), ("ELU", "a", "b"), ("HARD_SWISH", "b", "c"), ("RELU", "c", "y")]
    mapping = mapping_of(chain(nodes, outputs="y"))
    assert "results of node 1 (ELU)" in str(mapping.operators[3].reasons[0])
    swish = mapping.operators[2].reasons[0]
    assert str(swish) == "it is no operator of the Edge TPU, expected one of its table"
    assert "or leave it at the end of the model" in swish.remedy  # the last node waits for it


def test_a_branch_that_needs_nothing_unmapped_goes_on() -> None:
    model = chain(
        [("RELU", "x", "a"), ("HARD_SWISH", "a", "b"), ("TANH", "a", "c"), ("ADD", "b c", "y")],
        outputs="y",
    )
    assert mapping_of(model).mapped == (0, 2)


def test_what_quantises_inputs_runs_before_the_mapped_part() -> None:
    model = chain(
        [("QUANTIZE", "x", "a"), ("RELU", "a", "b"), ("DEQUANTIZE", "b", "y")],
        outputs="y",
        tensors={"x": FLOAT, "y": FLOAT},
    )
    mapping = mapping_of(model)
    assert (mapping.before, mapping.mapped, mapping.after) == ((0,), (1,), (2,))


def test_only_the_first_part_is_mapped_although_a_later_one_is_longer() -> None:
    model = chain(
        [("RELU", "x", "a"), ("HARD_SWISH", "a", "b"), ("RELU", "b", "c"), ("RELU", "c", "y")],
        outputs="y",
    )
    assert mapping_of(model).mapped == (0,)


def test_nothing_maps_when_no_operator_can() -> None:
    mapping = mapping_of(chain([("HARD_SWISH", "x", "a"), ("HARD_SWISH", "a", "y")], outputs="y"))
    assert mapping.mapped == ()
    assert all(operator.reasons for operator in mapping.operators)


def test_intermediate_tensors_end_the_mapped_part() -> None:
    nodes = [("RELU", "x", "a"), ("TANH", "a", "b"), ("LOGISTIC", "a", "c"), ("ADD", "b c", "y")]
    mapping = mapping_of(chain(nodes, outputs="y"), ends=["b"])
    assert mapping.mapped == (0, 1)
    assert "the mapped part ends at 'b'" in str(mapping.operators[2].reasons[0])
    assert mapping.operators[3].status is Status.BEHIND


def test_unknown_intermediate_tensor_is_an_error_with_the_closest_names() -> None:
    model = chain([("RELU", "x", "conv"), ("TANH", "conv", "pool")], outputs="pool")
    with pytest.raises(ArgumentError, match="tensor 'pol'; the closest: 'pool', 'conv'"):
        mapping_of(model, ends=["pol"])


def test_nodes_that_a_search_leaves_out_end_the_mapped_part() -> None:
    nodes = [("RELU", "x", "a"), ("TANH", "a", "b"), ("LOGISTIC", "b", "y")]
    assert mapping_of(chain(nodes, outputs="y"), without=[1]).mapped == (0,)
