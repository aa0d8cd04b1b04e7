"""Searches for the smallest memory plan, with lower bounds for every plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from delegraph.lazy_dataclass import dataclass
from delegraph.memory.best_fit import align
from delegraph.memory.branch_and_bound import BranchAndBound, OutOfSteps
from delegraph.memory.constraint_programming import solved, solver_is_installed
from delegraph.memory.hill_climbing import climb
from delegraph.memory.packing import Packing, first_fit
from delegraph.memory.records import OffsetsAssignment, TensorUsageRecord
from delegraph.memory.strategies.greedy_by_breadth import greedy_by_breadth
from delegraph.memory.strategies.greedy_by_size import greedy_by_size, size_distance_priority
from delegraph.memory.strategies.greedy_in_order import greedy_in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EFFORT = 300_000
# Limit for splitting groups and exact search, because of Python's recursion limit.
_MOST_RECORDS = 400
_MANY_RECORDS = 2000  # limit for strategies with quadratic run time
_MOST_CONFLICTS = 2_000_000  # largest number of conflicting pairs of tensors to list


@dataclass(frozen=True, slots=True)
class BestPlan(OffsetsAssignment):
    """A plan, with a number of bytes that every plan needs.

    Attributes:
        lower_bound: proven smallest number of bytes of any plan.
    """

    lower_bound: int

    @property
    def is_optimal(self) -> bool:
        """Whether the plan has the size of the lower bound, so that no plan is smaller."""
        return self.total_size == self.lower_bound


_Search: TypeAlias = Callable[[Packing, int], BestPlan]
"""Function that returns a plan of a packing; plans need not be smaller than the given bytes."""


def plan_best(
    records: Sequence[TensorUsageRecord], alignment: int = 1, *, effort: int = _EFFORT
) -> BestPlan:
    """Return the smallest plan found with limited effort; equal arguments give equal plans.

    Usually a greedy plan needs no more bytes than the busiest task, and the search ends at once.
    Otherwise other orders of placing the tensors are tried.

    Args:
        records: sizes in bytes.
        alignment: number of bytes of which offsets are multiples.
        effort: number of tensors that all trials together may place; the default takes a second or
            two.

    Raises:
        ArgumentError: a record is not in bytes or is invalid, or *alignment* is below 1.

    >>> records = [TensorUsageRecord(100, 0, 1), TensorUsageRecord(80, 1, 2),
    ...            TensorUsageRecord(50, 2, 3)]
    >>> plan = plan_best(records)
    >>> plan.offsets, plan.total_size, plan.is_optimal
    ([0, 100, 0], 180, True)
    """
    return _planned(records, alignment, partial(_search, effort=effort), enough=0)


def plan_exactly(
    records: Sequence[TensorUsageRecord],
    alignment: int = 1,
    *,
    steps: int = 100_000,
    seconds: float = 10.0,
) -> BestPlan:
    """Return the smallest possible plan, if the search through all plans ends in time.

    Otherwise ``is_optimal`` is False: the plan is the best plan found, and ``lower_bound`` is the
    bound that was proved. Dozens of tensors are usually solved; more tensors may take too long.

    Args:
        records: sizes in bytes.
        alignment: number of bytes of which offsets are multiples.
        steps: number of placements of a tensor to try; ten thousand take about a second.
        seconds: time of the constraint solver, which continues the search if ``delegraph[exact]``
            is installed. The time holds for each group of tensors that has no task in common with
            other groups.

    Raises:
        ArgumentError: a record is not in bytes or is invalid, or *alignment* is below 1.

    >>> records = [TensorUsageRecord(*record) for record in [(1, 0, 1), (2, 1, 2), (1, 2, 3)]]
    >>> plan_exactly(records).total_size
    3
    """
    return _planned(
        records, alignment, partial(_search_exactly, steps=steps, seconds=seconds), enough=0
    )


def _planned(
    records: Sequence[TensorUsageRecord], alignment: int, search: _Search, enough: int
) -> BestPlan:
    """Return a plan made by *search* for all records, in groups that cannot affect each other.

    Groups of records that have no task in common are planned one by one. A group need not take
    fewer than *enough* bytes, which another group needs anyway. Offsets are multiples of
    *alignment*.
    """
    packing = Packing(records, alignment)
    if len(records) > _MOST_RECORDS:
        return search(packing, enough)
    offsets = [0] * len(records)
    total_size = bound = 0
    for group in packing.groups():
        members = [records[i] for i in group]
        plan = _planned_group(members, alignment, search, max(enough, total_size))
        for record, offset in zip(group, plan.offsets, strict=True):
            offsets[record] = offset
        total_size = max(total_size, plan.total_size)
        bound = max(bound, plan.lower_bound)
    return BestPlan(offsets, total_size, bound)


def _planned_group(
    records: Sequence[TensorUsageRecord], alignment: int, search: _Search, enough: int
) -> BestPlan:
    """Return a plan of *records* by *search*; those always in use get the lowest offsets.

    Any plan can be changed to such a plan. The tensor at the end of the buffer needs no padding, so
    the tensor with most padding is put there if that saves bytes. A plan of *enough* bytes need not
    be improved.
    """
    packing = Packing(records, alignment)
    always = (packing.begins == 0) & (packing.ends == len(packing.tasks))
    if not always.any():
        return search(packing, enough)
    padded = packing.units * alignment
    lying = np.flatnonzero(always)[np.argsort((padded - packing.sizes)[always], kind="stable")]
    below = int(padded[always].sum())
    top_padded, top_size = int(padded[lying[-1]]), int(packing.sizes[lying[-1]])

    others = np.flatnonzero(~always).tolist()
    plan = _planned([records[i] for i in others], alignment, search, enough - below)
    top_offset = below - top_padded + align(plan.total_size, alignment)
    on_top = top_offset + top_size < below + plan.total_size

    offsets = np.zeros(len(records), np.int64)
    offsets[lying] = np.cumsum(padded[lying]) - padded[lying]
    if on_top:
        offsets[lying[-1]] = top_offset
    offsets[others] = plan.offsets
    offsets[others] += below - top_padded * on_top
    bounds = (
        below + plan.lower_bound,
        below - top_padded + align(plan.lower_bound, alignment) + top_size,
    )
    total_size = int((offsets + packing.sizes).max())
    return BestPlan(offsets.tolist(), total_size, min(bounds))


def _search(packing: Packing, enough: int, effort: int) -> BestPlan:
    """Return the smallest plan found, or the first plan of at most *enough* bytes.

    All trials together place at most *effort* tensors.
    """
    bound = int(packing.live_bytes().max(initial=0))
    best = _greedy(packing, max(bound, enough))
    if best.total_size > max(bound, enough) and packing.num_conflicts() <= _MOST_CONFLICTS:
        units = [offset // packing.alignment for offset in best.offsets]
        rounds = effort // len(packing)
        climbed = packing.plan(climb(packing, units, max(bound, enough), rounds))
        best = min(best, climbed, key=lambda plan: plan.total_size)
    return BestPlan(best.offsets, best.total_size, bound)


def _search_exactly(packing: Packing, enough: int, steps: int, seconds: float) -> BestPlan:
    """Return the smallest plan, a plan of at most *enough* bytes, or the best plan in time.

    Args:
        packing: the records.
        enough: number of bytes at which a plan need not be improved.
        steps: maximal number of placements of a tensor to try.
        seconds: time of the constraint solver.
    """
    best = _search(packing, enough, effort=3 * steps)  # this takes about as long
    if best.total_size <= max(best.lower_bound, enough) or len(packing) > _MOST_RECORDS:
        return best
    search = BranchAndBound(packing, steps)
    goal = best.lower_bound
    try:
        while not best.is_optimal and best.total_size > enough:
            offsets = search.offsets_within(goal)
            if offsets is None:
                low = min(search.next_total(goal), best.total_size)
                best = BestPlan(best.offsets, best.total_size, low)
            else:
                plan = packing.plan(offsets)
                best = BestPlan(plan.offsets, plan.total_size, best.lower_bound)
            goal = (best.lower_bound + best.total_size - 1) // 2
    except OutOfSteps:  # the best plan and bound found so far are used
        if seconds > 0 and solver_is_installed():
            units = [offset // packing.alignment for offset in best.offsets]
            offsets, bound = solved(packing, units, best.lower_bound, seconds)
            plan = packing.plan(offsets)
            best = BestPlan(plan.offsets, plan.total_size, min(bound, plan.total_size))
    return best


def _greedy(packing: Packing, bound: int) -> OffsetsAssignment:
    """Return the smallest greedy plan of *packing*, or the first of at most *bound* bytes."""
    plans = []
    for plan in _greedy_plans(packing):
        plans.append(plan)
        if plan.total_size <= bound:
            break
    return min(plans, key=lambda plan: plan.total_size)


def _greedy_plans(packing: Packing) -> Iterator[OffsetsAssignment]:
    """Yield plans of *packing*: by the smallest gap, then by the lowest gap in several orders.

    Plans by the lowest gap are yielded only if at most ``_MOST_CONFLICTS`` pairs of tensors are in
    use at the same time.
    """
    ends = (packing.ends - 1).tolist()
    rows = list(zip(packing.sizes.tolist(), packing.begins.tolist(), ends, strict=True))
    yield greedy_by_size(rows, packing.alignment)
    if packing.num_conflicts() > _MOST_CONFLICTS:
        return
    units, neighbours = packing.units.tolist(), packing.neighbours()
    for order in _orders(packing):
        yield packing.plan(first_fit(order.tolist(), units, neighbours))


def _orders(packing: Packing) -> Iterator[NDArray[np.intp]]:
    """Yield orders for placing the tensors: by size, lifetime, both, and shared object.

    The last order places the tensors of each object of an objects plan in turn.
    """
    lifetimes, units = packing.ends - packing.begins, packing.units
    yield np.argsort(-units, kind="stable")
    yield np.lexsort((-units, -lifetimes))  # by lifetime, and among equals by size
    yield np.lexsort((-units, -lifetimes * units))
    yield np.lexsort((packing.begins, -units))
    in_time = np.argsort(packing.begins, kind="stable")
    columns = (units[in_time], packing.begins[in_time], packing.ends[in_time] - 1)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    strategies = (greedy_in_order, greedy_by_breadth, size_distance_priority)
    for strategy in strategies[: 1 if len(packing) > _MANY_RECORDS else None]:
        objects = np.array(strategy(rows).object_ids, np.int64)
        yield in_time[np.argsort(objects, kind="stable")]
