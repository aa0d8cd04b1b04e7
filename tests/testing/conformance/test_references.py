"""Delegates of custom operators without a kernel are compared with a reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from unittest import SkipTest

import numpy as np
import pytest

from delegraph import Delegate, Interpreter
from delegraph.errors import ArgumentError, DelegateError
from delegraph.testing.conformance import contract, isolation, numbers, soundness
from delegraph.testing.conformance.composition import Composition, behind_a_reshape
from delegraph.testing.conformance.generated import check_generated_models
from delegraph.testing.conformance.sampling import FULL
from delegraph.testing.conformance.subject import Subject, require_claims, subject_of
from delegraph.testing.conformance.trials import Trial, open_interpreter, trial_of
from delegraph.testing.delegate_conformance import CONTRACT
from delegraph.testing.one_op import tensor
from delegraph.testing.operator_case import OperatorCase, fed, operator_case
from delegraph.testing.outputs import outputs_of
from support import seeded_faults as faulty

RANDOM = np.random.default_rng(6)


def plus(a: np.ndarray, b: np.ndarray) -> OperatorCase:
    given = [fed(a), fed(b)]
    type = given[0].definition.type.name
    right = operator_case("ADD", given, [type]).records
    return operator_case("Plus", given, [type], reference=right)


def values(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return RANDOM.integers(-40, 40, shape).astype(dtype)


CASES = tuple(
    plus(values(shape, dtype), values(shape, dtype))
    for dtype in (np.float32, np.int32)
    for shape in ((2, 3), (2, 3), (2, 3), (4,), (1, 2, 1, 2, 3), (), (0, 2))
)


def subject(kind: Callable[[], Delegate], folder: Path) -> Subject:
    return replace(subject_of(kind), folder=folder, cases=CASES)


def trial(case: OperatorCase) -> Trial:
    found = trial_of(case)
    assert found is not None
    return found


# -- trials ------------------------------------------------------------------------------------


def test_trial_has_the_results_of_the_reference_and_the_types_of_the_operator() -> None:
    ones = np.ones((2, 3), np.float32)
    found = trial(plus(ones, ones))
    np.testing.assert_array_equal(found.expected[0][0], 2 * ones)
    assert found.types == {"FLOAT32"}
    assert found.features == set()
    graph = (found.case.records.subgraphs or ())[0]
    assert [record.shape for record in graph.tensors or ()] == [(2, 3)] * 3


@pytest.mark.parametrize(
    ("shape", "features"), [((), {"scalar"}), ((0, 2), {"empty"}), ((1,) * 5, {"many-dims"})]
)
def test_features_are_those_of_the_shapes_that_the_reference_has(
    shape: tuple[int, ...], features: set[str]
) -> None:
    assert trial(plus(np.ones(shape, np.float32), np.ones(shape, np.float32))).features == features


def test_shapes_that_the_reference_leaves_open_are_open() -> None:
    ones = np.ones((2, 3), np.float32)
    dynamic = behind_a_reshape(trial(plus(ones, ones)))
    assert dynamic is not None
    assert dynamic.features == {"dynamic-shapes"}
    assert dynamic.case.reference is not None
    *_, y = (dynamic.case.records.subgraphs or ())[0].tensors or ()
    assert (y.shape, y.has_rank) == ((), False)
    with open_interpreter(dynamic.case, faulty.PlusDelegate()) as interpreter:
        assert [node.op for node in interpreter.placement.nodes] == ["RESHAPE", "Plus"]
        np.testing.assert_array_equal(outputs_of(interpreter, dynamic.case.steps[0])[0], 2 * ones)


def test_reference_grows_with_a_composition() -> None:
    ones = np.ones((2, 3), np.float32)
    negation = operator_case("NEG", [fed(ones)], [tensor((2, 3))])
    model = Composition()
    (two,) = model.add(trial(plus(ones, ones)).case, {})
    (minus_two,) = model.add(negation, {0: two})
    (last,) = model.add(trial(plus(3 * ones, ones)).case, {1: minus_two})
    assert model.unread() == [last]
    case = model.case("Plus", [two, last])
    with open_interpreter(case) as right, open_interpreter(case, faulty.PlusDelegate()) as mine:
        for interpreter in (right, mine):
            found = outputs_of(interpreter, case.steps[0])
            np.testing.assert_array_equal(found, [2 * ones, ones])


def test_reference_of_other_inputs_is_refused() -> None:
    ones = fed(np.ones(3, np.float32))
    right = operator_case("NEG", [ones], ["FLOAT32"]).records
    message = r"'Plus' is a model \(FLOAT32 FLOAT32\) -> FLOAT32, its reference \(FLOAT32\) -> FLO"
    with pytest.raises(ArgumentError, match=message):
        operator_case("Plus", [ones, fed(ones.array)], ["FLOAT32"], reference=right)


# -- delegates ---------------------------------------------------------------------------------


def test_sound_delegate_passes(tmp_path: Path) -> None:
    tested = replace(subject(faulty.PlusDelegate, tmp_path), effort=replace(FULL, gallery=1))
    require_claims(tested)
    may_be_skipped = (*faulty.MAY_BE_SKIPPED, isolation.partitions_share_nothing)
    for check in CONTRACT:
        with suppress(SkipTest) if check in may_be_skipped else nullcontext():
            check(tested)
    soundness.claims_are_executed(tested, "Plus")
    soundness.nothing_unclaimed_is_taken(tested)
    numbers.results_are_right(tested, "Plus")
    assert numbers.results_by_type(tested, "Plus") == {"FLOAT32": "7/7", "INT32": "7/7"}
    assert check_generated_models(tested, 25) > 10
    assert list(tmp_path.iterdir()) == []


def test_wrong_result_is_saved_with_its_reference(tmp_path: Path) -> None:
    kind = faulty.plus_with(faulty.WrongIntegers)
    message = "(?s)Plus of INT32 comes out wrong in 6 of 14 models: .* 1 instead of 0 .*right: "
    with pytest.raises(AssertionError, match=message) as caught:
        numbers.results_are_right(subject(kind, tmp_path), "Plus")
    (path,) = re.findall(r"saved: (.*\.tflite)", str(caught.value))
    (right,) = re.findall(r"right: delegraph run (\S*\.tflite)", str(caught.value))
    zeros = [np.zeros((2, 3), np.int32)] * 2
    with Interpreter(path, delegates=[kind()]) as wrong, Interpreter(right) as reference:
        np.testing.assert_array_equal(outputs_of(wrong, zeros)[0], zeros[0] + 1)
        np.testing.assert_array_equal(outputs_of(reference, zeros)[0], zeros[0])


FAULTS = [
    (faulty.KeepsViews, contract.no_views_are_kept, "does the kernel keep views of tensor.data"),
    (faulty.PreparesTwiceDifferently, contract.prepare_is_idempotent, "prepare called 2 times"),
    (faulty.PreparesOnce, contract.resize_is_survived, "after a resize to"),
    (faulty.PreparesOnce, contract.dynamic_shapes_are_followed, "only while invoking.*then others"),
    (faulty.WritesItsInput, contract.inputs_are_only_read, r"changed input Tensor\(\d.*only read"),
    (faulty.ReliesOnZeroedMemory, contract.outputs_are_fully_written, "is not written"),
    (faulty.Accumulates, contract.invokes_are_independent, "second invoke on the same inputs"),
    (faulty.SharesScratch, isolation.two_objects_share_nothing, "two delegate objects in two"),
    (faulty.RacesForScratch, isolation.threads_do_not_meet, "two interpreters in two threads"),
    (faulty.ForgetsOutputsInside, check_generated_models, "model of 2 nodes comes out wrong"),
]


@pytest.mark.parametrize(("kernel", "check", "message"), FAULTS)
def test_fault_of_a_kernel_is_named(
    kernel: type, check: Callable[[Subject], None], message: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=f"(?s){message}"):
        check(subject(faulty.plus_with(kernel), tmp_path))


def test_delegate_that_cannot_be_applied_again_is_named(tmp_path: Path) -> None:
    kind = type("PlusOnce", (faulty.ServesOnce, faulty.PlusDelegate), {})
    with pytest.raises(DelegateError, match="it is in use"):
        contract.delegate_can_be_taken_off(subject(kind, tmp_path))


@pytest.mark.parametrize(
    ("kind", "op", "message"),
    [
        (faulty.PlusOfFloatsOnly, "Plus", "claimed but never taken: INT32 for Plus"),
        (faulty.ClaimsAnotherPlus, "Minus", "claims Minus, and the kit has no model of it"),
    ],
)
def test_claim_that_is_not_executed_is_named(
    kind: type, op: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=message):
        soundness.claims_are_executed(subject(kind, tmp_path), op)


def test_custom_operators_are_left_out_where_nobody_gives_cases(tmp_path: Path) -> None:
    tested = replace(subject(faulty.PlusDelegate, tmp_path), cases=())
    with pytest.raises(SkipTest, match="custom operator Plus come from its author's tests alone"):
        soundness.claims_are_executed(tested, "Plus")
    with pytest.raises(SkipTest, match="no model of Plus is claimed and taken"):
        numbers.results_are_right(tested, "Plus")


def test_node_that_is_taken_without_a_claim_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="takes forms that it does not claim: Plus v1 of"):
        soundness.nothing_unclaimed_is_taken(subject(faulty.TakesOtherPluses, tmp_path))
