"""Every plan of every real model, through the verifier."""

from __future__ import annotations

import pytest

from delegraph.errors import ModelError
from delegraph.graph import load_model
from delegraph.memory import (
    DeclaredGraph,
    MemoryStrategy,
    OffsetsAssignment,
    assign_objects_to_tensors,
    assign_offsets_to_tensors,
    lower_bound,
    plan_exactly,
    usage_records,
    verify_plan,
)
from support.corpus import corpus_file, corpus_rows, needs_corpus
from support.planner_graphs import planned

INPLACE = {"ADD": 12, "SUB": 12, "MUL": 12, "DIV": 12, "SOFTMAX": 4, "RESHAPE": 5, "SQUEEZE": 5}
MODELS = [row["name"] for row in corpus_rows()]


def subgraphs(name):
    try:
        return load_model(corpus_file(name)).subgraphs
    except ModelError:
        return ()  # made to be refused


@needs_corpus
@pytest.mark.parametrize("name", MODELS)
def test_strategies_make_right_plans_not_below_the_bound(name):
    for subgraph in subgraphs(name):
        records, _ = usage_records(subgraph, alignment=64)
        bound = lower_bound(records, 64)
        for strategy in MemoryStrategy:
            if strategy is MemoryStrategy.MINCOSTFLOW and len(records) > 250:
                continue  # takes several seconds
            assert not verify_plan(records, assign_objects_to_tensors(records, strategy))
            plan = assign_offsets_to_tensors(records, strategy, 64)
            assert not verify_plan(records, plan, 64)
            assert plan.total_size >= bound


@needs_corpus
@pytest.mark.parametrize("name", MODELS)
def test_the_default_arena_is_right_and_within_a_percent_of_the_smallest(name):
    for subgraph in subgraphs(name):
        if any(-1 in tensor.shape_signature for tensor in subgraph.tensors):
            continue  # sizes unknown; those declared do not go together
        graph = DeclaredGraph(subgraph, INPLACE)
        planner = planned(graph, tighten=True)
        records, tensors = usage_records(graph, keep_inputs=True, root_of=planner.shared_root)
        addresses = [planner.address(tensor) for tensor in tensors]
        plan = OffsetsAssignment([a[1] for a in addresses], planner.arena_bytes[0])
        assert not verify_plan(records, plan, 64)
        best = plan_exactly(records, 64)
        assert not verify_plan(records, best, 64)
        assert best.is_optimal
        assert plan.total_size <= 1.01 * best.total_size
