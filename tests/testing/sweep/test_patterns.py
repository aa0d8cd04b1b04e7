"""Patterns: models of operators that fit, of every word, equal for equal numbers."""

from __future__ import annotations

from random import Random

import pytest

from delegraph.testing.sweep.comparison import run_case
from delegraph.testing.sweep.generator import sweep_case, sweep_operators
from delegraph.testing.sweep.hosts import open_ours
from delegraph.testing.sweep.patterns import PATTERNS, WORDS, pattern_case
from delegraph.testing.sweep.sweep_case import SweepCase

CASES = 250


@pytest.fixture(scope="module")
def drawn():
    return [pattern_case(Random(number)) for number in range(CASES)]


def test_each_word_is_in_a_pattern():
    words = {word.rstrip("?") for pattern in PATTERNS for word in pattern.words.split()}
    assert {name for word in words for name in word.split("|")} == set(WORDS)


def test_a_number_is_one_pattern(drawn):
    for number in range(0, CASES, 41):
        case, names = pattern_case(Random(number))
        assert (case.model(), names) == (drawn[number][0].model(), drawn[number][1])


def test_almost_all_are_computed(drawn):
    cases = [SweepCase(case.op, case.model(), case.steps) for case, _ in drawn]
    errors = [run_case(open_ours, case).error for case in cases]
    assert sum(error is None for error in errors) > 0.98 * CASES


def test_some_are_composites(drawn):
    found = [case for case, names in drawn if names[0] == "STABLEHLO_COMPOSITE"]
    assert 0.03 * CASES < len(found) < 0.2 * CASES
    assert {len(case.records.subgraphs) for case in found} == {2}


def test_operators_are_those_of_single_cases(drawn):
    assert {name for _, names in drawn for name in names} <= set(sweep_operators())


def test_a_sweep_has_the_patterns_of_its_operators_only():
    operators = ("CONV_2D", "PAD", "RELU", "RELU6", "PRELU", "ADD", "DEPTHWISE_CONV_2D")
    drawn = [sweep_case(0, number, operators).described.split(" > ") for number in range(300)]
    assert {word for words in drawn for word in words[:-1]} <= set(operators)
    assert any(words[:2] == ["PAD", "CONV_2D"] for words in drawn)
