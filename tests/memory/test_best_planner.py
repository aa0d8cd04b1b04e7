from __future__ import annotations

import random
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.errors import ArgumentError
from delegraph.memory.best_planner import plan_best, plan_exactly
from delegraph.memory.bounds import live_bytes, lower_bound
from delegraph.memory.branch_and_bound import BranchAndBound, OutOfSteps
from delegraph.memory.constraint_programming import solved, solver_is_installed
from delegraph.memory.memory_management import MemoryStrategy, assign_offsets_to_tensors
from delegraph.memory.packing import Packing
from delegraph.memory.records import TensorUsageRecord
from delegraph.memory.verifier import verify_plan


def records_of(*rows):
    return [TensorUsageRecord(*row) for row in rows]


# At most 6 bytes are in use at a task, but the tensors do not fit into 6.
TORN = records_of(
    (2, 0, 2),
    (4, 0, 3),
    (2, 7, 10),
    (1, 3, 6),
    (3, 4, 8),
    (4, 10, 10),
    (1, 8, 8),
    (1, 6, 6),
    (1, 3, 7),
    (1, 4, 5),
    (4, 9, 9),
)


def fits(records, total, placed=()):
    """Whether *records* fit into *total* bytes, by trying every offset of every record."""
    if len(placed) == len(records):
        return True
    size, first, last = records[len(placed)]
    neighbours = [
        (offset, offset + other.size)
        for other, offset in zip(records, placed, strict=False)
        if first <= other.last_task and other.first_task <= last
    ]
    return any(
        fits(records, total, (*placed, offset))
        for offset in range(total - size + 1)
        if all(end <= offset or offset + size <= start for start, end in neighbours)
    )


def smallest_total(records, alignment):
    """Return the least total of all orders of placing, each tensor as low as it can be."""
    best = None
    for order in permutations(records):
        placed = []
        for size, first, last in order:
            offset = 0
            for start, end, other_first, other_last in sorted(placed):
                if first <= other_last and other_first <= last and size and end > start:
                    if offset + size <= start:
                        break
                    offset = max(offset, -(-end // alignment) * alignment)
            placed.append((offset, offset + size, first, last))
        total = max(end for _, end, _, _ in placed)
        best = total if best is None else min(best, total)
    return best


def slow_bound(records, alignment):
    """Return the bytes in use at the busiest task, by the definition."""
    bound = 0
    for task in {first for _, first, _ in records}:
        live = [size for size, first, last in records if first <= task <= last]
        padded = [-(-size // alignment) * alignment for size in live]
        slack = max(p - s for p, s in zip(padded, live, strict=True))
        bound = max(bound, sum(padded) - slack)
    return bound


sized = st.one_of(st.integers(0, 8), st.sampled_from([16, 30, 64]))
row = st.tuples(sized, st.integers(0, 9), st.integers(0, 6))
any_records = st.lists(row, max_size=30).map(
    lambda rows: records_of(*((size, first, first + more) for size, first, more in rows))
)
few_records = st.lists(row, min_size=1, max_size=6).map(
    lambda rows: records_of(*((size, first, first + more) for size, first, more in rows))
)


@given(any_records, st.sampled_from([1, 4, 16, 64]))
def test_the_lower_bound_is_that_of_the_definition(records, alignment):
    assert lower_bound(records, alignment) == slow_bound(records, alignment)


def test_the_published_example_needs_180_bytes_at_its_busiest_task():
    tasks, live = live_bytes(records_of((100, 0, 1), (80, 1, 2), (50, 2, 3)))
    assert (tasks.tolist(), live.tolist()) == ([0, 1, 2], [100, 180, 130])


@given(few_records, st.sampled_from([1, 4, 16]))
def test_the_exact_plan_is_the_smallest_there_is(records, alignment):
    plan = plan_exactly(records, alignment)
    assert not verify_plan(records, plan, alignment)
    assert plan.is_optimal
    assert plan.total_size == plan.lower_bound == smallest_total(records, alignment)


@given(any_records, st.sampled_from([1, 4, 64]))
def test_plans_are_right_and_not_below_the_bound(records, alignment):
    best = plan_best(records, alignment, effort=300)
    exact = plan_exactly(records, alignment, steps=300, seconds=0)
    for plan in (best, exact):
        assert not verify_plan(records, plan, alignment)
        assert lower_bound(records, alignment) <= plan.lower_bound <= plan.total_size


@given(any_records, st.sampled_from([1, 16]))
def test_the_best_plan_is_no_larger_than_those_it_begins_with(records, alignment):
    records.sort(key=lambda record: record.first_task)
    padded = [r._replace(size=-(-r.size // alignment) * alignment) for r in records]
    totals = [assign_offsets_to_tensors(records, MemoryStrategy.GREEDY_BY_SIZE, alignment)]
    totals += [
        assign_offsets_to_tensors(padded, strategy)
        for strategy in (MemoryStrategy.GREEDY_IN_ORDER, MemoryStrategy.GREEDY_BEST)
    ]
    best = plan_best(records, alignment, effort=0)
    assert best.total_size <= min(plan.total_size for plan in totals)


def test_a_long_chain_takes_no_more_than_its_busiest_task():
    rng = random.Random(0)
    records = records_of(*((rng.randrange(1, 5000), i, i + 1) for i in range(3000)))
    assert plan_best(records, 64, effort=0).is_optimal


def interlocked(rng, count):
    """Return random records that fill a rectangle, so that a plan without gaps exists."""
    blocks = [(0, 64, 0, 64)]
    while len(blocks) < count:
        x, w, y, h = blocks.pop(rng.randrange(len(blocks)))
        if rng.random() < 0.5 and w > 1:
            cut = rng.randrange(1, w)
            blocks += [(x, cut, y, h), (x + cut, w - cut, y, h)]
        elif h > 1:
            cut = rng.randrange(1, h)
            blocks += [(x, w, y, cut), (x, w, y + cut, h - cut)]
        else:
            blocks.append((x, w, y, h))
    return records_of(*((h, x, x + w - 1) for x, w, _, h in blocks))


@pytest.mark.parametrize("seed", range(8))
def test_tensors_that_fill_a_rectangle_are_packed_without_gaps(seed):
    records = interlocked(random.Random(seed), 14)
    plan = plan_exactly(records)
    assert (plan.total_size, plan.is_optimal) == (64, True)
    assert not verify_plan(records, plan)


def test_the_search_alone_finds_what_the_greedy_plans_miss():
    for seed in range(8):
        packing = Packing(interlocked(random.Random(seed), 12), 1)
        offsets = BranchAndBound(packing, 100_000).offsets_within(64)
        assert packing.plan(offsets).total_size == 64
        assert BranchAndBound(packing, 100_000).offsets_within(63) is None


def test_the_bound_is_raised_where_it_is_proved_out_of_reach():
    assert lower_bound(TORN) == 6
    assert (fits(TORN, 6), fits(TORN, 7)) == (False, True)
    plan = plan_exactly(TORN)
    assert (plan.total_size, plan.lower_bound) == (7, 7)
    assert not plan_best(TORN, effort=1000).is_optimal  # it proves nothing
    assert not plan_exactly(TORN, steps=2, seconds=0).is_optimal


def test_a_search_out_of_steps_claims_nothing():
    packing = Packing(interlocked(random.Random(0), 30), 1)
    with pytest.raises(OutOfSteps):
        BranchAndBound(packing, 3).offsets_within(64)


def test_a_longer_search_finds_a_smaller_plan():
    totals = []
    for effort in (0, 20_000):
        plans = [
            plan_best(interlocked(random.Random(seed), 40), effort=effort) for seed in range(5)
        ]
        totals.append(sum(plan.total_size for plan in plans))
    assert totals[1] < totals[0]


def test_plans_are_the_same_each_time():
    records = interlocked(random.Random(2), 40)
    assert plan_best(records, effort=5000) == plan_best(records, effort=5000)


def test_nothing_needs_nothing():
    for planner in (plan_best, plan_exactly):
        plan = planner([])
        assert (list(plan.offsets), plan.total_size, plan.is_optimal) == ([], 0, True)
    assert lower_bound([]) == 0


@pytest.mark.parametrize("function", [plan_best, plan_exactly, lower_bound])
def test_what_makes_no_sense_is_refused(function):
    with pytest.raises(ArgumentError, match="alignment is 0"):
        function(records_of((1, 0, 0)), 0)
    with pytest.raises(ArgumentError, match="record 0 has size"):
        function(records_of(((1, 2), 0, 0)))
    with pytest.raises(ArgumentError, match="record 1 has 1 bytes during tasks 3 to 2"):
        function(records_of((1, 0, 0), (1, 3, 2)))


needs_solver = pytest.mark.skipif(not solver_is_installed(), reason="ortools is not installed")


@needs_solver
@pytest.mark.parametrize("seed", range(4))
def test_the_solver_finds_what_the_search_finds(seed):
    rng = random.Random(seed)
    rows = [(rng.randrange(1, 200), rng.randrange(9), rng.randrange(4)) for _ in range(14)]
    records = records_of(*((size, first, first + more) for size, first, more in rows))
    packing = Packing(records, 16)
    offsets = packing.plan(np.cumsum(packing.units) - packing.units)  # behind each other
    units = [offset // 16 for offset in offsets.offsets]
    found, bound = solved(packing, units, lower_bound(records, 16), seconds=20)
    plan = packing.plan(found)
    assert not verify_plan(records, plan, 16)
    assert plan.total_size == bound == plan_exactly(records, 16, seconds=0).total_size


@needs_solver
def test_the_solver_takes_over_from_a_search_out_of_steps():
    assert not plan_exactly(TORN, steps=0, seconds=0).is_optimal
    assert plan_exactly(TORN, steps=0, seconds=20).lower_bound == 7
