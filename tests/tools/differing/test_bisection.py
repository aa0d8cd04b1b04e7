"""The search for faulty nodes, with faults that are made up."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import pytest

from delegraph.tools.differing.bisection import (
    RIGHT,
    Fault,
    Nodes,
    Outcome,
    OutOfProbesError,
    Probe,
    Search,
    contradictions,
    search,
)

WRONG = Outcome("differs", "by 1")


class Told:
    """Says of each set whether it fails, and counts those it has not been asked of before."""

    def __init__(self, fails: Callable[[frozenset[int]], bool], most: int = 10**6) -> None:
        self.fails, self.most = fails, most
        self.probes: list[Probe] = []
        self.known: dict[Nodes, Outcome] = {}

    def check(self, nodes: Nodes) -> Outcome:
        if nodes not in self.known:
            if len(self.probes) == self.most:
                raise OutOfProbesError
            fails = self.fails(frozenset(index for _, index in nodes))
            self.known[nodes] = WRONG if fails else RIGHT
            self.probes.append(Probe(nodes, self.known[nodes]))
        return self.known[nodes]

    probe = check


def numbered(count: int) -> list[tuple[int, int]]:
    return [(0, index) for index in range(count)]


def found_by(told: Told, count: int) -> Search:
    return search(numbered(count), told)


def faults(result: Search) -> list[list[int]]:
    return [[index for _, index in fault.nodes] for fault in result.faults]


def holding_any(*sets: Collection[int]) -> Callable[[frozenset[int]], bool]:
    return lambda nodes: any(nodes >= {*wanted} for wanted in sets)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 64, 65, 66, 100])
def test_one_faulty_node_is_named_within_log2_n_plus_3_probes(count: int) -> None:
    for faulty in range(count):
        told = Told(holding_any([faulty]))
        result = found_by(told, count)
        assert faults(result) == [[faulty]]
        assert result.is_complete
        assert result.faults[0].named_after <= math.log2(count) + 3
        assert len(told.probes) <= math.log2(count) + 5


@pytest.mark.parametrize("faulty", [[0, 1], [3, 60], [0, 33, 65], [63, 64, 65], [5, 6, 40, 41]])
def test_several_faulty_nodes_are_found_one_by_one(faulty: list[int]) -> None:
    told = Told(holding_any(*([node] for node in faulty)))
    result = found_by(told, 66)
    assert sorted(faults(result)) == [[node] for node in faulty]
    assert len(told.probes) <= len(faulty) * (math.log2(66) + 3)


@pytest.mark.parametrize("pair", [[0, 65], [7, 8], [64, 65], [2, 30, 31]])
def test_nodes_that_fail_only_together_are_found_as_a_set(pair: list[int]) -> None:
    result = found_by(Told(holding_any(pair)), 66)
    assert faults(result) == [pair]
    assert result.faults[0].is_smallest


def test_a_pair_and_a_single_node_are_both_found() -> None:
    result = found_by(Told(holding_any([4, 50], [20])), 66)
    assert sorted(faults(result)) == [[4, 50], [20]]


def test_without_a_fault_one_probe_is_enough() -> None:
    told = Told(lambda nodes: False)
    assert found_by(told, 66) == Search()
    assert len(told.probes) == 1


def test_where_everything_is_faulty_every_node_is_named() -> None:
    assert faults(found_by(Told(bool), 9)) == [[node] for node in range(9)]


def test_a_search_stops_after_as_many_faults_as_wanted() -> None:
    found = search(numbered(5), Told(lambda nodes: bool(nodes)), most_faults=2)
    assert (faults(found), found.is_complete) == ([[0], [1]], False)
    none = search(numbered(5), Told(lambda nodes: bool(nodes)), most_faults=0)
    assert (none.faults, none.is_complete) == ((), False)


class Interrupted(Told):
    """Is interrupted once no more than *rest* nodes are tested for further faults."""

    rest = 0

    def check(self, nodes: Nodes) -> Outcome:
        if 0 < len(nodes) == self.rest:
            raise KeyboardInterrupt
        return super().check(nodes)


def test_an_interrupted_search_keeps_its_faults() -> None:
    told = Interrupted(holding_any([1], [3]))
    told.rest, kept = 4, list[Fault]()
    found = search(numbered(5), told, found=kept.append)
    assert (faults(found), found.is_complete, found.is_interrupted) == ([[1]], False, True)
    assert found.faults == tuple(kept)
    told.rest = 5
    with pytest.raises(KeyboardInterrupt):
        search(numbered(5), told)


def test_what_fails_without_any_node_is_not_blamed_on_one() -> None:
    result = found_by(Told(lambda nodes: True), 66)
    assert result == Search(baseline=WRONG)
    assert found_by(Told(lambda nodes: True), 0) == Search(baseline=WRONG)


def test_without_candidates_all_may_be_right() -> None:
    assert found_by(Told(lambda nodes: False), 0) == Search()


def test_many_nodes_that_add_up_to_a_failure_are_one_set() -> None:
    result = found_by(Told(lambda nodes: len(nodes) >= 12), 24)
    assert [len(found) for found in faults(result)] == [12, 12]


def test_when_probes_run_out_the_smallest_set_so_far_is_given() -> None:
    result = found_by(Told(holding_any([2, 60]), most=6), 66)
    assert not result.is_complete
    assert not result.faults[0].is_smallest
    assert {2, 60} <= {*faults(result)[0]}
    assert len(faults(result)[0]) < 66


def test_when_probes_run_out_between_faults_those_found_are_kept() -> None:
    one = Told(holding_any([3], [50]))
    found_by(one, 66)
    named = search(numbered(66), Told(holding_any([3], [50]))).faults[0].named_after
    result = found_by(Told(holding_any([3], [50]), most=named + 1), 66)
    assert faults(result) == [[3]]
    assert result.faults[0].is_smallest
    assert not result.is_complete


def test_a_smaller_set_is_taken_where_more_nodes_make_it_right_again() -> None:
    # 10 is wrong, and 3 makes up for it unless 30 is there, too.
    told = Told(lambda nodes: 10 in nodes and (3 not in nodes or 30 in nodes))
    result = found_by(told, 66)
    assert faults(result) == [[10]]
    failing, right = next(contradictions(told.probes))
    assert {*failing.nodes} < {*right.nodes}
    assert not right.outcome.fails


def test_a_failing_set_with_a_larger_right_one_is_a_contradiction() -> None:
    few, more, other = Probe(((0, 1),), WRONG), Probe(((0, 1), (0, 2)), RIGHT), Probe((), RIGHT)
    assert list(contradictions([few, more, other])) == [(few, more)]
    elsewhere = Probe(((0, 1), (0, 2)), RIGHT, runs=(1, 2))
    assert not list(contradictions([few, elsewhere, other]))


def test_an_outcome_in_words() -> None:
    assert str(Outcome("crashed", "SIGSEGV")) == "crashed: SIGSEGV"
    assert str(RIGHT) == "right"
    assert WRONG.fails
    assert not RIGHT.fails
