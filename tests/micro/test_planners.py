from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph.errors import ArgumentError, StateError
from delegraph.memory import OffsetsAssignment, TensorUsageRecord, verify_plan
from delegraph.micro import (
    BufferPlan,
    GreedyMemoryPlanner,
    LinearMemoryPlanner,
    NonPersistentMemoryPlannerShim,
    memory_plan_text,
)


def greedy(buffers):
    planner = GreedyMemoryPlanner()
    for buffer in buffers:
        planner.add_buffer(*buffer)
    return planner


@pytest.mark.parametrize(
    ("buffers", "offsets", "total"),
    [
        ([], [], 0),
        ([(10, 0, 1), (20, 2, 3)], [0, 0], 20),
        # 50 first, then 40 beside nothing live, 30 above 40, 20 above both, 10 above 50
        ([(10, 0, 1), (20, 1, 2), (30, 2, 3), (40, 3, 4), (50, 0, 1)], [50, 70, 40, 0, 0], 90),
        ([(100, 0, 1), (50, 2, 3), (20, 1, 2)], [0, 0, 100], 120),
        ([(100, 0, 1), (80, 2, 3), (50, 1, 2)], [0, 0, 100], 150),
        # equal sizes: the last one added is placed first
        ([(48, 0, 2), (48, 1, 3), (48, 2, 3), (48, 3, 3)], [0, 96, 48, 0], 144),
    ],
)
def test_greedy_offsets_are_those_worked_out_by_hand(buffers, offsets, total):
    planner = greedy(buffers)
    assert list(planner.offsets) == offsets
    assert planner.maximum_memory_size == total
    assert planner.overlapping_buffers() == []


def test_greedy_takes_the_first_gap_and_not_the_best():
    fixed = [(100, 0, 9, 0), (90, 0, 9, 160), (30, 0, 9, 270)]
    planner = greedy([*fixed, (20, 0, 9)])
    assert planner.offset_for_buffer(3) == 100  # a gap of 60, though one of exactly 20 is at 250


def test_offline_buffers_are_not_checked_and_online_ones_avoid_them():
    planner = greedy([(50, 0, 1), (30, 0, 1, 20), (30, 1, 2, 40)])
    assert list(planner.offsets) == [70, 20, 40]
    assert planner.overlapping_buffers() == [(1, 2), (2, 1)]
    assert planner.maximum_memory_size == 120


def test_offline_buffers_alone_are_where_they_were_put():
    planner = greedy([(8, 0, 1, 64), (8, 0, 1, 0)])
    assert list(planner.offsets) == [64, 0]


def test_working_memory_limits_the_number_of_buffers():
    planner = GreedyMemoryPlanner()
    planner.init(40)
    planner.add_buffer(100, 0, 1)
    with pytest.raises(StateError, match=r"Too many buffers \(max is 1\)"):
        planner.add_buffer(50, 2, 3)
    planner.init(80)
    assert planner.buffer_count == 0


def test_a_buffer_added_after_a_question_is_planned_too():
    planner = greedy([(10, 0, 1)])
    assert planner.maximum_memory_size == 10
    planner.add_buffer(5, 1, 2)
    assert planner.maximum_memory_size == 15


@pytest.mark.parametrize("index", [-1, 1])
def test_an_unknown_buffer_is_refused(index):
    plans = [
        greedy([(1, 0, 0)]),
        LinearMemoryPlanner(),
        NonPersistentMemoryPlannerShim(BufferPlan([4])),
    ]
    plans[1].add_buffer(1, 0, 0)
    for planner in plans:
        with pytest.raises(ArgumentError, match=f"buffer {index} is out of range, there are 1"):
            planner.offset_for_buffer(index)


def test_linear_puts_buffers_behind_each_other_whatever_their_times():
    planner = LinearMemoryPlanner()
    for size in (10, 20, 30):
        planner.add_buffer(size, 0, 0)
    assert [planner.offset_for_buffer(i) for i in range(3)] == [0, 10, 30]
    assert planner.maximum_memory_size == 60
    assert planner.preserves_all_tensors
    planner.init(0)
    assert (planner.buffer_count, planner.maximum_memory_size) == (0, 0)


def test_linear_takes_1024_buffers_and_no_offline_ones():
    planner = LinearMemoryPlanner()
    with pytest.raises(ArgumentError, match="the greedy one does"):
        planner.add_buffer(1, 0, 0, 16)
    for _ in range(1024):
        planner.add_buffer(1, 0, 0)
    with pytest.raises(StateError, match=r"max is 1024"):
        planner.add_buffer(1, 0, 0)


def test_the_shim_repeats_its_plan():
    planner = NonPersistentMemoryPlannerShim(BufferPlan([32, 0]))
    planner.add_buffer(10, 0, 1)
    planner.add_buffer(10, 0, 1)
    with pytest.raises(StateError, match="the plan has 2 buffers, one more was added"):
        planner.add_buffer(10, 0, 1)
    assert [planner.offset_for_buffer(i) for i in range(2)] == [32, 0]
    assert planner.maximum_memory_size == 0
    planner.init(0)
    assert planner.buffer_count == 0


def test_the_map_marks_bytes_taken_twice_and_buffers_of_one_step():
    text = memory_plan_text(greedy([(40, 0, 1, 0), (40, 1, 1, 20), (8, 0, 1, 72)]))
    first, second = text.splitlines()[-2:]
    assert first == "   0: " + "0" * 40 + "." * 32 + "2" * 8 + " (1k)"
    assert second == "   1: " + "0" * 20 + "!" * 20 + "*" * 20 + "." * 12 + "2" * 8 + " (1k)"


def test_the_map_is_scaled_to_eighty_columns():
    text = memory_plan_text(greedy([(1600, 0, 0), (800, 0, 1)]))
    assert text.splitlines()[-1] == "   1: " + "." * 53 + "1" * 27 + " (1k)"


buffers = st.lists(
    st.tuples(st.integers(1, 200), st.integers(0, 12), st.integers(0, 6)), max_size=40
).map(lambda rows: [(size, first, first + length) for size, first, length in rows])


@settings(max_examples=200)
@given(buffers)
def test_greedy_plans_never_overlap(rows):
    planner = greedy(rows)
    plan = OffsetsAssignment(list(planner.offsets), planner.maximum_memory_size)
    assert verify_plan([TensorUsageRecord(*row) for row in rows], plan) == []
    assert planner.overlapping_buffers() == []


def definition(rows):
    """Greedy as the facts put it, one buffer at a time over all placed ones."""
    order = list(reversed(range(len(rows))))
    order.sort(key=lambda i: -rows[i][0])
    offsets, placed = {}, []
    for i in order:
        size, first, last = rows[i]
        candidate = 0
        for j in sorted(placed, key=lambda j: offsets[j]):
            if rows[j][1] > last or rows[j][2] < first:
                continue
            if offsets[j] - candidate >= size:
                break
            candidate = max(candidate, offsets[j] + rows[j][0])
        offsets[i] = candidate
        placed.append(i)
    return [offsets[i] for i in range(len(rows))]


@settings(max_examples=200)
@given(buffers)
def test_greedy_offsets_are_those_of_the_definition(rows):
    assert list(greedy(rows).offsets) == definition(rows)
