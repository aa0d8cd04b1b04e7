"""Which cases ``make test`` draws, and that ``make test-all`` adds exactly the others."""

from __future__ import annotations

from itertools import product

import pytest

from delegraph.testing.delegate_conformance import CONTRACT
from sampling import CASES, drawn_cases

pytest_plugins = ("pytester",)

LEVELS = [f"level {i}" for i in range(3)]
SIZES = [f"size {i}" for i in range(4)]

SUITE = """
import pytest

@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("size", range(20))
def test_product(level, size): pass

@pytest.mark.parametrize("case", range(5))
def test_list(case): pass

@pytest.mark.repetition(2)
@pytest.mark.parametrize("case", range(9))
def test_marked(case): pass

@pytest.mark.repetition(0)
def test_left_out(): pass

def test_one(): pass

@pytest.mark.repetition(2, "group")
@pytest.mark.parametrize("case", range(4))
def test_of_group(case): pass

@pytest.mark.repetition(2, "group")
def test_also_of_group(): pass
"""


KIT = """
from delegraph.testing import DelegateConformance
from support.seeded_faults import SoundDelegate

class TestKit(DelegateConformance):
    def make_delegate(self):
        return SoundDelegate()
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_every_value_of_every_parameter_is_drawn(seed: str) -> None:
    cases = list(product(LEVELS, SIZES))
    drawn = [cases[i] for i in drawn_cases(cases, seed, None)]
    assert {level for level, _ in drawn} == set(LEVELS)
    assert {size for _, size in drawn} == set(SIZES)
    assert len(drawn) <= CASES
    assert drawn_cases(cases, seed, None) == drawn_cases(cases, seed, None)
    assert drawn_cases(cases, seed, None) != drawn_cases(cases, f"{seed}?", None)


@pytest.mark.parametrize(
    ("count", "drawn"), [(0, 0), (3, 3), (200, 200), (400, 300), (None, CASES)]
)
def test_a_marked_test_has_so_many_cases(count: int | None, drawn: int) -> None:
    cases = [(str(i),) for i in range(300)]
    assert len(set(drawn_cases(cases, "1", count))) == drawn


def test_sample_and_rest_are_all_and_never_the_same(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = repetition(count, group): so many are drawn")
    pytester.makepyfile(test_suite=SUITE)

    def chosen(*options: str) -> set[str]:
        shown = pytester.runpytest("-p", "sampling", "--collect-only", "-q", *options)
        return {line for line in shown.outlines if "::" in line}

    everything, sample, rest = chosen(), chosen("--sample", "7"), chosen("--rest", "7")
    assert len(everything) == 80 + 5 + 9 + 1 + 1 + 5
    assert (sample | rest, sample & rest) == (everything, set())
    marked = [name for name in sample if "test_marked" in name]
    plain = [name for name in sample if "test_list" in name or "test_one" in name]
    assert (len(marked), len(plain)) == (2, CASES + 1)
    assert sum("of_group" in name for name in sample) == 2
    assert "test_suite.py::test_left_out" in rest
    part = chosen("--sample", "7", "--part", "4")
    assert 0 < len(part) < len(sample) / 2
    assert part < sample
    assert sample == chosen("--sample", "7") != chosen("--sample", "8")


def test_the_kit_is_whole_in_both_and_tries_few_models_in_the_sample(
    pytester: pytest.Pytester, pytestconfig: pytest.Config
) -> None:
    markers = "markers = repetition(count): so many are drawn"
    pytester.makeini(f"[pytest]\n{markers}\npythonpath = {pytestconfig.rootpath / 'tests'}\n")
    pytester.makepyfile(test_kit=KIT)
    words = ("-p", "sampling", "--delegate-timeout=0")
    for option, is_quick in (("--sample", True), ("--rest", False)):
        shown = pytester.runpytest(*words, option, "7", "--collect-only", "-q").outlines
        assert sum("test_contract" in line for line in shown) == len(CONTRACT)
        result = pytester.runpytest(*words, option, "7", "-k", "name_is_stable")
        result.assert_outcomes(passed=1)
        assert ("a sample (--quick)" in result.stdout.str()) == is_quick
