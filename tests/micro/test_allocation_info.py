"""Life times over subgraphs; every step is counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph.errors import MalformedModelError
from delegraph.graph.loader import parse_model
from delegraph.micro.allocation_info import ScratchRequest, allocation_infos
from delegraph.schema.options import CallOnceOptions, IfOptions, WhileOptions
from delegraph.testing import constant, graph_model, subgraphs_model, tensor

FLAG = {"c": tensor((1,), "BOOL")}


def steps(model, *arguments):
    infos = allocation_infos(parse_model(model), *arguments)
    return [(info.first_use, info.last_use) for info in infos]


def test_an_operator_is_a_step_and_the_graph_begins_at_zero():
    nodes = [("SIN", "x", "s"), ("COS", "x", "t"), ("ADD", "s t", "y")]
    # x 0..2, s 1..3, t 2..3, y 3..3
    assert steps(graph_model(nodes, inputs="x", outputs="y")) == [(0, 2), (1, 3), (2, 3), (3, 3)]


def test_graph_outputs_live_to_the_end_and_graph_inputs_do_not():
    nodes = [("SIN", "x", "y"), ("COS", "y", "s"), ("SIN", "s", "z")]
    assert steps(graph_model(nodes, inputs="x", outputs="y z"))[1] == (1, 3)
    assert steps(graph_model(nodes, inputs="x", outputs="y z"))[0] == (0, 1)


def test_an_output_nobody_reads_lives_during_its_node():
    nodes = [("SIN", "x", "unused"), ("COS", "x", "y")]
    assert steps(graph_model(nodes, inputs="x", outputs="y"))[1] == (1, 1)


def test_a_branch_takes_steps_and_its_caller_lasts_through_it():
    model = subgraphs_model(
        [
            ([("IF", "c x", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=2))],
             "c x", "y", FLAG),
            ([("SIN", "a", "b")], "a", "b", {}),
            ([("SIN", "d", "e"), ("COS", "e", "f")], "d", "f", {}),
        ]
    )  # fmt: skip
    # IF starts at 1; then-branch enters at 2, SIN 3; else-branch enters at 4, SIN 5, COS 6
    main, then, other = [(0, 6), (0, 6), (1, 6)], [(2, 3), (3, 3)], [(4, 5), (5, 6), (6, 6)]
    assert steps(model) == main + then + other


def test_a_loop_walks_its_condition_then_its_body():
    model = subgraphs_model(
        [
            ([("WHILE", "x", "y", WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))],
             "x", "y", {}),
            ([("LESS", "a a", "c")], "a", "c", FLAG),
            ([("SIN", "b", "d")], "b", "d", {}),
        ]
    )  # fmt: skip
    # WHILE 1; condition enters at 2, LESS 3; body enters at 4, SIN 5
    assert steps(model) == [(0, 5), (1, 5), (2, 3), (3, 3), (4, 5), (5, 5)]


def test_a_subgraph_called_twice_lives_from_the_first_call_to_the_last():
    call = CallOnceOptions(init_subgraph_index=1)
    model = subgraphs_model(
        [
            ([("CALL_ONCE", "", "", call), ("SIN", "x", "y"), ("CALL_ONCE", "", "", call)],
             "x", "y", {}),
            ([("SIN", "a", "b")], "a", "b", {}),
        ]
    )  # fmt: skip
    # CALL_ONCE 1, enters 2, SIN 3; SIN 4; CALL_ONCE 5, enters 6, SIN 7
    assert steps(model)[2:] == [(2, 7), (3, 7)]


def test_a_subgraph_nobody_calls_has_no_steps_and_is_still_placed():
    model = subgraphs_model(
        [([("SIN", "x", "y")], "x", "y", {}), ([("SIN", "a", "b")], "a", "b", {})]
    )
    infos = allocation_infos(parse_model(model))
    assert [(i.first_use, i.last_use, i.needs_allocating) for i in infos[2:]] == [
        (-1, -1, True)
    ] * 2


def test_scratch_lives_while_its_node_runs_calls_included():
    options = IfOptions(then_subgraph_index=1, else_subgraph_index=1)
    model = subgraphs_model(
        [([("IF", "c x", "y", options)], "c x", "y", FLAG), ([("SIN", "a", "b")], "a", "b", {})]
    )
    found = steps(model, [ScratchRequest(8, 0, 0), ScratchRequest(8, 1, 0)])
    assert found[-2:] == [(1, 5), (3, 5)]


def test_only_computed_tensors_need_a_place():
    tensors = {"k": constant(np.zeros(4, np.float32)), "v": tensor((4,), is_variable=True),
               "z": tensor((0,))}  # fmt: skip
    model = graph_model(
        [("ADD", "x k", "s"), ("ADD", "s v", "y"), ("SIN", "z", "u")],
        inputs="x z", outputs="y", tensors=tensors,
    )  # fmt: skip
    parsed = parse_model(model)
    names = [tensor.name for tensor in parsed.subgraphs[0].tensors]

    def placed(offline=None):
        infos = allocation_infos(parsed, (), offline)
        return {name for name, info in zip(names, infos, strict=True) if info.needs_allocating}

    assert placed() == {"x", "s", "y", "u"}
    offline = [64 if name in ("v", "k") else -1 for name in names]
    assert placed(offline) == {"x", "s", "y", "u", "v"}  # constants stay in the file


def test_a_subgraph_that_calls_itself_is_refused():
    call = CallOnceOptions(init_subgraph_index=0)
    model = subgraphs_model([([("CALL_ONCE", "", "", call)], "x", "x", {})])
    with pytest.raises(MalformedModelError, match="subgraph 0 is called, and calls itself"):
        steps(model)


def test_a_subgraph_that_does_not_exist_is_refused():
    call = CallOnceOptions(init_subgraph_index=3)
    model = subgraphs_model([([("CALL_ONCE", "", "", call)], "x", "x", {})])
    with pytest.raises(MalformedModelError, match="subgraph 3 is called, and does not exist"):
        steps(model)
