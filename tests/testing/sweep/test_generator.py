"""The cases of a sweep: the same for the same number, odd in every way, many of them valid."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from delegraph.delegation.capabilities import Claim
from delegraph.errors import DelegraphError
from delegraph.schema import read_model, write_model
from delegraph.testing import constant, fed, operator_case, tensor
from delegraph.testing.one_op import one_op_records
from delegraph.testing.operator_cases import cases
from delegraph.testing.operator_cases.quantizing import with_blocks
from delegraph.testing.sweep.chains import chained
from delegraph.testing.sweep.comparison import run_case
from delegraph.testing.sweep.draft import Draft
from delegraph.testing.sweep.generator import sweep_case
from delegraph.testing.sweep.hosts import open_ours
from delegraph.testing.sweep.lengths import stretched_weights
from delegraph.testing.sweep.oddities import ODDITIES
from delegraph.testing.sweep.sweep_case import SweepCase
from delegraph.testing.sweep.weights import float16_weights, narrow_weights, sparse_weights

OPERATORS = ("ADD", "CONV_2D", "FULLY_CONNECTED", "MEAN", "MUL", "RESHAPE", "SOFTMAX")
CASES = 600


@pytest.fixture(scope="module")
def drawn():
    return [sweep_case(5, number, OPERATORS) for number in range(CASES)]


def test_a_number_is_one_case(drawn):
    for number in range(0, CASES, 37):
        again, case = sweep_case(5, number, OPERATORS), drawn[number]
        assert (again.content, again.described) == (case.content, case.described)
        for mine, theirs in zip(again.steps, case.steps, strict=True):
            for x, y in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(x, y)


def test_another_seed_is_another_case(drawn):
    others = [sweep_case(6, number, OPERATORS).content for number in range(20)]
    assert others != [case.content for case in drawn[:20]]


def test_most_cases_have_a_form_that_is_claimed():
    claims = (Claim("MUL", "INT16"),)
    numbers = range(100)
    free, bound = (
        sum("INT16" in types_of(sweep_case(5, number, ["MUL"], given)) for number in numbers)
        for given in ((), claims)
    )
    assert free < 40
    assert bound > 60


def types_of(case: SweepCase) -> set[str]:
    (graph, *_) = read_model(np.frombuffer(case.content, np.uint8)).subgraphs
    return {tensor.type.name for tensor in graph.tensors}


def test_each_oddity_occurs(drawn):
    found = Counter(word for case in drawn for word in case.described.split())
    assert {oddity.__name__ for oddity in ODDITIES} <= set(found)


def test_chains_are_wired(drawn):
    chains = [case for case in drawn if ">" in case.described]
    assert len(chains) > CASES / 10
    wired = 0
    for case in chains:
        (graph, *_) = read_model(np.frombuffer(case.content, np.uint8)).subgraphs
        made = {i for node in graph.operators for i in node.outputs}
        wired += any(i in made for node in graph.operators for i in node.inputs)
    assert wired > len(chains) / 2


def test_most_cases_are_computed(drawn):
    errors = [run_case(open_ours, case).error for case in drawn]
    assert all(error is None or isinstance(error, DelegraphError) for error in errors)
    assert sum(error is None for error in errors) > 0.5 * CASES


@pytest.mark.parametrize(
    "oddity", [stretched_weights, narrow_weights, float16_weights, sparse_weights]
)
def test_odd_weights_are_mostly_computed(oddity, chance):
    drafts = [Draft(case.records, case.steps) for case in cases("FULLY_CONNECTED", count=4)]
    odd = [changed for draft in drafts if (changed := oddity(chance, draft)) is not None]
    found = [SweepCase("FULLY_CONNECTED", write_model(d.records), d.steps) for d in odd]
    assert sum(run_case(open_ours, case).error is None for case in found) > len(found) / 2


@pytest.mark.parametrize("oddity", ODDITIES, ids=lambda oddity: oddity.__name__)
def test_an_oddity_that_does_not_apply_says_so(oddity, chance, nothing):
    changed = oddity(chance, nothing)
    assert changed is None or changed.records.subgraphs


@pytest.fixture
def chance():
    return Random(1)


@pytest.fixture
def nothing():
    """Draft of a model without inputs, constants, quantization or options."""
    case = operator_case("ADD", [], ["FLOAT32"])
    return Draft(case.records, ((),))


@pytest.mark.parametrize("oddity", [float16_weights, sparse_weights])
def test_no_node_writes_a_constant_that_is_a_graph_input(oddity):
    x = np.ones((2, 2), np.float32)
    case = operator_case("ADD", [fed(x), constant(x)], ["FLOAT32"])
    draft = Draft(case.records, case.steps).with_main(inputs=(0, 1))
    changed = [d for seed in range(20) if (d := oddity(Random(seed), draft)) is not None]
    assert all(1 not in node.outputs for d in changed for node in d.main.operators)
    assert changed


def test_scales_of_blocks_follow_their_tensor_into_a_chain(chance):
    x = np.ones((1, 32), np.float32)
    add = operator_case("ADD", [fed(x), fed(x)], ["FLOAT32"])
    weights = constant(np.ones((1, 32), np.int8), "INT4")
    records = one_op_records("DEQUANTIZE", [weights], [tensor((1, 32))])
    blocks = with_blocks(records, 0, np.float16([[0.5]]), 32)
    chain = chained(chance, Draft(add.records, add.steps), Draft(blocks, ((),)))
    case = SweepCase("ADD", write_model(chain.records), chain.steps)
    run = run_case(open_ours, case)
    assert run.error is None
    assert [y.flat[0] for y in run.outputs[0]] == [2.0, 0.5]
