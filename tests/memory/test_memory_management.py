from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.errors import ArgumentError
from delegraph.memory.arena_planner import PlanNode
from delegraph.memory.memory_management import (
    MemoryStrategy,
    assign_objects_to_tensors,
    assign_offsets_to_tensors,
    objects_to_offsets,
)
from delegraph.memory.reallocation import reallocation_graph, usage_graph
from delegraph.memory.records import ObjectsAssignment, OffsetsAssignment, TensorUsageRecord
from delegraph.memory.task_profiles import calculate_positional_maximums, calculate_task_profiles
from delegraph.memory.verifier import verify_plan
from support import slow_strategies as slow

S = MemoryStrategy


def records_of(*rows):
    return [TensorUsageRecord(*row) for row in rows]


CHAIN = records_of((16, 0, 1), (8, 1, 2), (64, 2, 3), (32, 3, 4), (8, 4, 5))
BRANCHED = records_of(
    (32, 0, 1),
    (32, 1, 4),
    (8, 2, 5),
    (16, 3, 5),
    (8, 4, 5),
    (64, 5, 7),
    (8, 6, 8),
    (8, 7, 8),
    (16, 8, 9),
)
"""The example of the sources, whose totals are published for every strategy."""

SLOW = {
    S.EQUALITY: slow.equality,
    S.GREEDY_IN_ORDER: slow.greedy_in_order,
    S.GREEDY_BY_BREADTH: slow.greedy_by_breadth,
    S.GREEDY_BY_SIZE: slow.size_distance_priority,
    S.MINCOSTFLOW: slow.min_cost_flow,
}


def objects(records, strategy, graph=None):
    assignment = assign_objects_to_tensors(records, strategy, graph)
    return list(assignment.object_ids), list(assignment.object_sizes)


def random_records(rng, count=None, size=lambda rng: rng.choice([1, 2, 3, 8, 8, 20, 64])):
    """Return records in the order of their first tasks, with many equal sizes and ends."""
    count = rng.randrange(1, 25) if count is None else count
    rows = []
    for _ in range(count):
        first = rng.randrange(count)
        rows.append((size(rng), first, first + min(rng.randrange(8), rng.randrange(8))))
    return records_of(*sorted(rows, key=lambda row: row[1]))


sized = st.one_of(st.sampled_from([0, 1, 8, 16]), st.integers(0, 1000))
any_records = st.lists(st.tuples(sized, st.integers(0, 20), st.integers(0, 8)), max_size=20).map(
    lambda rows: records_of(*sorted(((s, f, f + n) for s, f, n in rows), key=lambda r: r[1]))
)


@pytest.mark.parametrize(
    ("strategy", "ids", "sizes"),
    [
        (S.NAIVE, [0, 1, 2, 3, 4], [16, 8, 64, 32, 8]),
        (S.EQUALITY, [0, 1, 2, 3, 1], [16, 8, 64, 32]),
        (S.GREEDY_IN_ORDER, [0, 1, 0, 1, 0], [64, 32]),
        (S.GREEDY_BY_BREADTH, [0, 1, 0, 1, 0], [64, 32]),
        (S.GREEDY_BY_SIZE, [0, 1, 0, 1, 0], [64, 32]),
        (S.GREEDY_BEST, [0, 1, 0, 1, 0], [64, 32]),
        (S.MINCOSTFLOW, [0, 1, 0, 1, 0], [64, 32]),
    ],
)
def test_a_chain_needs_two_objects_that_grow(strategy, ids, sizes):
    assert objects(CHAIN, strategy) == (ids, sizes)


@pytest.mark.parametrize(
    ("strategy", "total"),
    [
        (S.NAIVE, 192),
        (S.EQUALITY, 160),
        (S.GREEDY_IN_ORDER, 120),
        (S.GREEDY_BY_BREADTH, 128),
        (S.GREEDY_BY_SIZE, 112),
        (S.GREEDY_BEST, 112),
        (S.MINCOSTFLOW, 112),
    ],
)
def test_the_branched_example_takes_the_published_bytes(strategy, total):
    assert sum(objects(BRANCHED, strategy)[1]) == total


def test_the_branched_example_as_offsets_takes_96_bytes():
    plan = assign_offsets_to_tensors(BRANCHED, S.GREEDY_BY_SIZE)
    assert plan.total_size == 96
    assert not verify_plan(BRANCHED, plan)


def test_the_branched_example_in_order_reuses_what_is_published():
    ids = [0, 1, 0, 2, 3, 1, 3, 2, 0]
    assert objects(BRANCHED, S.GREEDY_IN_ORDER) == (ids, [32, 64, 16, 8])
    ids = [0, 1, 2, 0, 3, 1, 3, 2, 0]
    assert objects(BRANCHED, S.MINCOSTFLOW) == (ids, [32, 64, 8, 8])


@pytest.mark.repetition(3)
@pytest.mark.parametrize("strategy", SLOW, ids=lambda strategy: strategy.name)
def test_a_strategy_does_what_its_definition_says(strategy):
    rng = random.Random(5)
    for _ in range(300):
        records = random_records(rng)
        assert objects(records, strategy) == SLOW[strategy](records)


@given(any_records)
def test_strategies_do_what_their_definitions_say_whatever_the_records(records):
    for strategy, definition in SLOW.items():
        assert objects(records, strategy) == definition(records)


@given(any_records, st.integers(1, 70))
def test_offsets_by_size_are_those_of_the_definition(records, alignment):
    plan = assign_offsets_to_tensors(records, S.GREEDY_BY_SIZE, alignment)
    assert (list(plan.offsets), plan.total_size) == slow.greedy_by_size(records, alignment)
    assert not verify_plan(records, plan, alignment)


def test_offsets_by_size_are_those_of_the_definition_among_hundreds_of_tensors():
    rng = random.Random(3)
    rows = [(rng.randrange(900), rng.randrange(50), rng.randrange(50, 99)) for _ in range(400)]
    records = records_of(*rows)
    plan = assign_offsets_to_tensors(records, S.GREEDY_BY_SIZE, 16)
    assert (list(plan.offsets), plan.total_size) == slow.greedy_by_size(records, 16)


@given(any_records, st.sampled_from([s for s in S if s is not S.GREEDY_BY_SIZE]))
def test_every_plan_passes_the_verifier(records, strategy):
    assert not verify_plan(records, assign_objects_to_tensors(records, strategy))
    assert not verify_plan(records, assign_offsets_to_tensors(records, strategy))


def test_greedy_best_is_by_breadth_only_where_that_is_smaller():
    rng = random.Random(1)
    seen = set()
    for _ in range(200):
        records = random_records(rng)
        by_size, by_breadth = (
            objects(records, S.GREEDY_BY_SIZE),
            objects(records, S.GREEDY_BY_BREADTH),
        )
        smaller = sum(by_breadth[1]) < sum(by_size[1])
        assert objects(records, S.GREEDY_BEST) == (by_breadth if smaller else by_size)
        seen.add((smaller, sum(by_breadth[1]) == sum(by_size[1]), by_breadth == by_size))
    assert {(True, False, False), (False, True, False)} <= seen


def test_ties_in_the_flow_depend_on_edges_that_lead_back_from_the_sink():
    rows = [(3, 0, 0), (1, 1, 3), (3, 1, 3), (1, 5, 6), (5, 5, 7), (3, 6, 8), (5, 7, 9)]
    rows += [(2, 7, 8), (5, 7, 9), (1, 9, 10), (3, 11, 12), (3, 12, 13), (2, 13, 16), (2, 14, 17)]
    rows += [(5, 15, 16), (5, 15, 18), (5, 18, 20), (1, 18, 19), (5, 19, 19), (5, 19, 19)]
    records = records_of(*rows)
    assert objects(records, S.MINCOSTFLOW) == slow.min_cost_flow(records)


def test_equality_in_bytes_takes_the_object_freed_last():
    records = records_of((8, 0, 0), (8, 0, 1), (8, 3, 3))
    assert objects(records, S.EQUALITY)[0] == [0, 1, 1]


def test_equality_of_tensor_shapes_takes_the_object_freed_last():
    shape = (1, 2, 2, 3)
    records = records_of((shape, 0, 0), (shape, 0, 1), (shape, 3, 3), ((1, 2, 3, 2), 5, 5))
    assert objects(records, S.EQUALITY) == ([0, 1, 1, 2], [shape, shape, (1, 2, 3, 2)])


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 2)])
def test_equality_of_textures_takes_the_lowest_object(shape):
    records = records_of((shape, 0, 0), (shape, 0, 1), (shape, 3, 3))
    assert objects(records, S.EQUALITY)[0] == [0, 1, 0]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_texture_strategies_do_what_their_definitions_say(dimensions):
    rng = random.Random(dimensions)
    for _ in range(200):
        records = random_records(
            rng, size=lambda rng: tuple(rng.randrange(1, 4) for _ in range(dimensions))
        )
        assert objects(records, S.EQUALITY) == slow.lowest_equal(records)
        in_order = objects(records, S.GREEDY_IN_ORDER, [[] for _ in records])  # graph ignored
        assert in_order == slow.greedy_in_order_by_dimensions(records)
        for strategy in (S.NAIVE, S.EQUALITY, S.GREEDY_IN_ORDER):
            assert not verify_plan(records, assign_objects_to_tensors(records, strategy))


def test_a_texture_is_reused_only_where_it_covers_every_dimension():
    records = records_of(((4, 4), 0, 0), ((2, 8), 1, 1), ((1, 4), 3, 3), ((2, 4), 3, 3))
    # Object 0 was freed first and has as many elements to spare as object 1.
    assert objects(records, S.GREEDY_IN_ORDER) == ([0, 1, 0, 1], [(4, 4), (2, 8)])


@pytest.mark.parametrize(
    ("size", "taken"),
    [(40, 1), (24, 1), (23, 0), (100, 1), (4, 0)],
    ids=["exact", "as far up as down", "nearer below", "largest grows", "smallest holds it"],
)
def test_in_order_takes_the_free_object_closest_in_size(size, taken):
    records = records_of((8, 0, 0), (40, 0, 0), (size, 2, 2))
    assert objects(records, S.GREEDY_IN_ORDER)[0][2] == taken


def test_a_reallocation_graph_limits_who_takes_over():
    records = records_of((8, 0, 0), (8, 1, 1), (8, 2, 2), (8, 3, 3))
    graph = [[3], [2], [1], [0]]
    assert objects(records, S.GREEDY_IN_ORDER, graph) == ([0, 1, 1, 0], [8, 8])
    assert objects(records, S.GREEDY_IN_ORDER, [[]] * 4) == ([0, 1, 2, 3], [8] * 4)


def test_in_order_with_a_graph_does_what_its_definition_says():
    rng = random.Random(9)
    for _ in range(200):
        records = random_records(rng)
        count = len(records)
        graph = [sorted(rng.sample(range(count), rng.randrange(count + 1))) for _ in records]
        result = objects(records, S.GREEDY_IN_ORDER, graph)
        assert result == slow.greedy_in_order(records, graph)


def test_breadth_ties_go_to_the_lower_task():
    records = records_of((8, 0, 0), (4, 1, 1), (4, 1, 1))
    # Task 0 comes first, so object 0 is the 8-byte one; the other task adds a second.
    assert objects(records, S.GREEDY_BY_BREADTH) == ([0, 0, 1], [8, 4])


def test_only_offsets_by_size_are_aligned():
    records = records_of((10, 0, 1), (6, 1, 2))
    assert assign_offsets_to_tensors(records, S.GREEDY_BY_SIZE, 4).offsets == [0, 12]
    plan = assign_offsets_to_tensors(records, S.NAIVE, 4)
    assert plan == OffsetsAssignment([0, 10], 16)


def test_objects_lie_behind_each_other():
    assignment = ObjectsAssignment([1, 0, 2, 1], [3, 5, 7])
    assert objects_to_offsets(assignment) == OffsetsAssignment([3, 0, 8, 3], 15)


def test_nothing_needs_nothing():
    for strategy in S:
        assert objects([], strategy) == ([], [])
        assert assign_offsets_to_tensors([], strategy) == OffsetsAssignment([], 0)
    assert calculate_task_profiles([]) == []
    assert calculate_positional_maximums([]) == []
    assert reallocation_graph([]) == []


@given(any_records)
def test_profiles_and_positional_maximums_are_those_of_the_definition(records):
    profiles = calculate_task_profiles(records)
    assert [[usage.idx for usage in profile] for profile in profiles] == slow.task_profiles(records)
    assert all(records[u.idx] == u.usage_record for profile in profiles for u in profile)
    assert calculate_positional_maximums(records) == slow.positional_maximums(records)


def test_positional_maximums_of_the_branched_example():
    # Task 5 has 64, 16, 8 and 8 bytes; tasks 1 has 32 and 32.
    assert calculate_positional_maximums(BRANCHED) == [64, 32, 8, 8]


def test_a_tensor_can_be_reused_by_those_behind_all_that_read_it():
    #  0 -> 1 -> 3 -> 4, 0 -> 2 -> 3: only behind 3 are both readers of 0 done.
    assert reallocation_graph([[1, 2], [3], [3], [4], []]) == [[3, 4], [4], [4], [0], [0, 1, 2]]


def test_a_direct_reader_counts_where_every_other_reader_precedes_it():
    # 0 -> 1 -> 2 and 0 -> 2: 2 is reached from 1, but not from itself.
    assert reallocation_graph([[1, 2], [2], []]) == [[], [], []]
    # 0 -> 1 -> 2 -> 3 and 0 -> 2: 3 is behind both readers of 0.
    assert reallocation_graph([[1, 2], [2], [3], []]) == [[3], [3], [], [0, 1]]


def test_reallocation_graphs_are_those_of_the_definition():
    rng = random.Random(4)
    for _ in range(200):
        count = rng.randrange(1, 12)
        graph = [
            sorted(rng.sample(range(i + 1, count), rng.randrange(min(3, count - i - 1) + 1)))
            for i in range(count)
        ]
        assert reallocation_graph(graph) == slow.reallocation_graph(graph)


def test_usage_graph_leaves_out_tensors_of_no_interest():
    nodes = [PlanNode([4, -1, 9], [5, 6]), PlanNode([6, 5], [7])]
    assert usage_graph(nodes, [4, 5, 7]) == [[1], [2], []]


@pytest.mark.parametrize(
    ("records", "strategy", "message"),
    [
        (records_of(((2, 2), 0, 1)), S.GREEDY_BEST, "GREEDY_BEST does not support .* 2 dim"),
        (records_of(((1, 2, 2, 3), 0, 1)), S.GREEDY_IN_ORDER, "does not support .* 4 dim"),
        (records_of(((3,), 0, 1)), S.GREEDY_IN_ORDER, "does not support .* 1 dim"),
        (records_of((4, 0, 1), ((2, 2), 0, 1)), S.NAIVE, r"\[0, 2\] dimensions"),
        (records_of((4, 2, 1)), S.NAIVE, "record 0 has 4 bytes during tasks 2 to 1"),
        (records_of((4, 0, 1), (-4, 0, 1)), S.NAIVE, "record 1 has -4 bytes"),
        (records_of((4, -1, 1)), S.EQUALITY, "tasks -1 to 1"),
        (records_of((8, 0, 0), (8, 0, 0), (8, 5, 5), (8, 0, 0)), S.EQUALITY, "sort the records"),
    ],
)
def test_records_that_make_no_sense_are_refused(records, strategy, message):
    with pytest.raises(ArgumentError, match=message):
        assign_objects_to_tensors(records, strategy)


def test_other_arguments_that_make_no_sense_are_refused():
    with pytest.raises(ArgumentError, match=r"graph has 2 rows.* 5 records"):
        assign_objects_to_tensors(CHAIN, S.GREEDY_IN_ORDER, [[], []])
    with pytest.raises(ArgumentError, match="alignment is 0"):
        assign_offsets_to_tensors(CHAIN, S.GREEDY_BY_SIZE, 0)
    with pytest.raises(ArgumentError, match="needs a number of bytes"):
        assign_offsets_to_tensors(records_of(((2, 2), 0, 1)), S.NAIVE)
