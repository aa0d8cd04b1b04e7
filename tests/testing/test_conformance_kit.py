"""Each fault that is seeded in a delegate is found, and its message names it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import SkipTest

import numpy as np
import pytest

from delegraph import Capabilities, Claim, Delegate, DelegateSpec, Interpreter
from delegraph.errors import DelegateError, PluginOptionError
from delegraph.testing import DelegateConformance, OperatorCase
from delegraph.testing.conformance import contract, isolation, numbers, soundness
from delegraph.testing.conformance import released_resources as leftovers
from delegraph.testing.conformance.generated import check_generated_models
from delegraph.testing.conformance.sampling import Effort
from delegraph.testing.conformance.subject import Subject, require_claims, subject_of
from delegraph.testing.delegate_conformance import CONTRACT
from delegraph.testing.operator_case import fed, operator_case
from support import seeded_faults as faulty

ADD = Capabilities([Claim("ADD", "FLOAT32", "activation", "broadcast"), Claim("ADD", "INT32")])
SOUND = (faulty.SoundDelegate, faulty.StaticDelegate)


FEW = Effort(random_cases=8, enough=4, seeds=4, gallery=1, bricks=4)


def subject(kind: Callable[[], Delegate], folder: Path, effort: Effort = FEW) -> Subject:
    return replace(subject_of(kind), folder=folder, effort=effort)


@pytest.mark.repetition(0)  # test_bundles.py and plugins pass all checks of a sample
@pytest.mark.parametrize("kind", SOUND)
def test_sound_delegate_passes(kind: type, tmp_path: Path) -> None:
    tested = subject(kind, tmp_path)
    require_claims(tested)
    for check in CONTRACT:
        with suppress(SkipTest) if check in faulty.MAY_BE_SKIPPED else nullcontext():
            check(tested)
    for op in tested.operators:
        soundness.claims_are_executed(tested, op)
        numbers.results_are_right(tested, op)
    soundness.nothing_unclaimed_is_taken(tested)
    assert check_generated_models(tested, 25) > 10
    assert list(tmp_path.iterdir()) == []


class CountedCases(DelegateConformance):
    """Counts the calls of ``cases()``."""

    calls = 0

    def make_delegate(self) -> Delegate:
        return faulty.SoundDelegate()

    def cases(self) -> Sequence[OperatorCase]:
        self.calls += 1
        return [operator_case("ABS", [fed(np.ones(3, np.float32))], ["FLOAT32"])]


def test_own_cases_are_made_once_and_not_while_tests_are_collected(
    pytestconfig: pytest.Config,
) -> None:
    tests = CountedCases()
    (tested,) = tests.subjects(pytestconfig)
    assert tests.calls == 0
    assert tested.cases
    assert len(list(tested.cases)) == len(list(tested.cases)) == 1
    assert tests.calls == 1


KERNELS = [
    (faulty.KeepsViews, contract.no_views_are_kept, "does the kernel keep views of tensor.data"),
    (faulty.PreparesTwiceDifferently, contract.prepare_is_idempotent, "prepare called 2 times"),
    (faulty.PreparesOnce, contract.resize_is_survived, "after a resize to"),
    (faulty.PreparesOnce, contract.dynamic_shapes_are_followed, "only while invoking.*then others"),
    (
        faulty.RunsClosedPrograms,
        contract.dynamic_shapes_are_followed,
        "then the first again",
    ),
    (
        faulty.IgnoresNewShapes,
        contract.dynamic_shapes_are_followed,
        "ALLOW_DYNAMIC_TENSORS is set.*not known",
    ),
    (faulty.WritesItsInput, contract.inputs_are_only_read, r"changed input Tensor\(\d.*only read"),
    (faulty.ReliesOnZeroedMemory, contract.outputs_are_fully_written, "is not written"),
    (faulty.Accumulates, contract.invokes_are_independent, "second invoke on the same inputs"),
    (faulty.RemembersInputs, contract.invokes_are_independent, "depends on the inputs of the"),
    (
        faulty.AnswersTooSoon,
        contract.eval_async_gives_what_eval_does,
        "after the wait for eval_async, outputs are other than those of eval",
    ),
    (
        faulty.ReturnsNoEvent,
        contract.eval_async_gives_what_eval_does,
        r"eval_async\(\) returned None, expected an object with wait",
    ),
    (faulty.SharesScratch, isolation.one_object_serves_two_interpreters, "one delegate object in"),
    (faulty.SharesScratch, isolation.two_objects_share_nothing, "two delegate objects in two"),
    (faulty.RacesForScratch, isolation.threads_do_not_meet, "two interpreters in two threads"),
    (
        faulty.SharesInnerArrays,
        isolation.one_object_serves_two_interpreters,
        "one delegate object in two interpreters, the first: .*model: ADD",
    ),
    (faulty.SharesInnerArrays, isolation.two_objects_share_nothing, "two delegate objects in two"),
    (
        faulty.SharesItsProgram,
        isolation.partitions_share_nothing,
        "two partitions in one model, which is right as one partition; what do kernels share",
    ),
    (faulty.KeepsInnerResults, contract.invokes_are_independent, "the inputs of the invoke before"),
    (faulty.LeavesAThread, leftovers.nothing_is_left_behind, r"5 more threads after 5 .*close\(\)"),
    (faulty.LeavesAFile, leftovers.nothing_is_left_behind, r"5 more open files after 5 .*close\("),
    (faulty.IsKept, leftovers.nothing_is_left_behind, "kernels of 5 closed interpreters are still"),
]


@pytest.mark.parametrize(("kernel", "check", "message"), KERNELS)
def test_fault_of_a_kernel_is_named(
    kernel: type, check: Callable[[Subject], None], message: str, tmp_path: Path
) -> None:
    tested = subject(faulty.with_kernel(kernel), tmp_path)
    with pytest.raises(AssertionError, match=f"(?s){message}"):
        check(replace(tested, capabilities=ADD))


def test_kernel_that_closes_what_it_holds_leaves_nothing(tmp_path: Path) -> None:
    leftovers.nothing_is_left_behind(subject(faulty.with_kernel(faulty.ClosesItsFile), tmp_path))


def test_a_fault_of_eval_is_none_of_eval_async(tmp_path: Path) -> None:
    tested = subject(faulty.with_kernel(faulty.WritesItsInput), tmp_path)
    with pytest.raises(SkipTest, match="no kernel of the delegate has eval_async"):
        contract.eval_async_gives_what_eval_does(replace(tested, capabilities=ADD))


def test_a_kernel_with_a_right_eval_async_passes(tmp_path: Path) -> None:
    tested = subject(faulty.with_kernel(faulty.StartsRightly), tmp_path)
    contract.eval_async_gives_what_eval_does(replace(tested, capabilities=ADD))


DELEGATES = [
    (faulty.ChangesItsName, contract.name_is_stable, r"returns 'careful\d', and later 'careful\d'"),
    (faulty.GivesNoReason, contract.reasons_are_given, "left with no reason given.*saved: "),
    (
        faulty.FailsOnOtherOperators,
        contract.every_operator_is_answered,
        "asked about a model of .*fused_activation_function.*expected a Rejection.*saved: ",
    ),
    (faulty.SharesItsKernel, isolation.kernels_are_not_shared, "the same object twice"),
    (faulty.ServesOnce, contract.delegate_can_be_taken_off, "it is in use"),
    (faulty.DeclaresNothing, require_claims, r"declares no capabilities.*Claim\(\["),
    (
        faulty.TakesMoreTypes,
        soundness.nothing_unclaimed_is_taken,
        "takes forms that it does not claim: ADD v\\d of input INT64",
    ),
    (
        faulty.TakesMoreOperators,
        soundness.nothing_unclaimed_is_taken,
        "takes forms that it does not claim: FLOOR v1 of",
    ),
    (
        faulty.TakesMoreFeatures,
        soundness.nothing_unclaimed_is_taken,
        "takes forms that it does not claim: "
        "ADD v\\d of input FLOAT32, output FLOAT32, with broadcast",
    ),
]


@pytest.mark.repetition(3)
@pytest.mark.parametrize(("kind", "check", "message"), DELEGATES)
def test_fault_of_a_delegate_is_named(
    kind: type, check: Callable[[Subject], None], message: str, tmp_path: Path
) -> None:
    with pytest.raises((AssertionError, DelegateError), match=f"(?s){message}"):
        check(subject(kind, tmp_path))


CLAIMS = [
    (
        faulty.ClaimsATypeItLeaves,
        "claimed but never taken: INT64 for ADD.*input is INT64; claimed are FLOAT32, INT32",
    ),
    (faulty.ClaimsAFeatureItLeaves, "claimed but never taken: feature 'broadcast' for ADD"),
    (faulty.ClaimsTheImpossible, "claims STRING for ADD, and the kit has no such model"),
]


@pytest.mark.parametrize(("kind", "message"), CLAIMS)
def test_claim_that_is_not_executed_is_named(kind: type, message: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=f"(?s){message}"):
        soundness.claims_are_executed(subject(kind, tmp_path), "ADD")


@pytest.mark.parametrize(
    ("kernel", "op", "message"),
    [
        (faulty.WrongIntegers, "ADD", "ADD of INT32 comes out wrong in"),
        (faulty.IgnoresActivation, "MUL", "MUL of FLOAT32 comes out wrong.*activation_function="),
    ],
)
def test_wrong_result_is_shrunk_and_saved(
    kernel: type, op: str, message: str, tmp_path: Path
) -> None:
    kind = faulty.with_kernel(kernel)
    with pytest.raises(AssertionError, match=f"(?s){message}") as caught:
        numbers.results_are_right(subject(kind, tmp_path), op)
    (path,) = re.findall(r"saved: (.*\.tflite)", str(caught.value))
    with Interpreter(path, delegates=[kind()]) as interpreter:
        assert [p.nodes for p in interpreter.placement.partitions] == [(0,)]
        details = interpreter.get_input_details()
    assert all(n == 1 for detail in details for n in detail["shape"])  # a failing model is smallest
    assert len(list(tmp_path.glob("*.npy"))) == len(details)


def test_a_result_that_is_returned_and_not_written_is_named(tmp_path: Path) -> None:
    tested = subject(faulty.with_kernel(faulty.ReturnsItsResult), tmp_path)
    with pytest.raises(AssertionError, match=r"eval returned .* did not write it into the output"):
        numbers.results_are_right(tested, "MUL")


def test_wrong_result_of_one_type_leaves_the_others_right(tmp_path: Path) -> None:
    tested = subject(faulty.with_kernel(faulty.WrongIntegers), tmp_path)
    numbers.results_are_right(tested, "MUL")
    row = numbers.results_by_type(tested, "ADD")
    right, compared = row["FLOAT32"].split("/")
    assert right == compared
    assert row["INT32"].startswith("0/")


@pytest.mark.repetition(1)
@pytest.mark.parametrize(
    ("kernel", "nodes"), [(faulty.RunsOnlyTheLastNodes, 3), (faulty.ForgetsOutputsInside, 2)]
)
def test_fault_between_nodes_shows_in_generated_models(
    kernel: type, nodes: int, tmp_path: Path
) -> None:
    tested = subject(faulty.with_kernel(kernel), tmp_path)
    numbers.results_are_right(tested, "ADD")  # one node alone is right
    with pytest.raises(AssertionError, match=f"model of {nodes} nodes comes out wrong") as caught:
        check_generated_models(tested)
    assert "saved: " in str(caught.value)
    assert len(list(tmp_path.glob("*.tflite"))) == 1


@dataclass
class Threads:
    threads: int = 4


def refusing(options: object) -> Delegate:
    raise PluginOptionError(f"no option {options}")


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda options: None, "options {'no_such_option': '1'} are accepted"),
        (refusing, "option 'threads' refuses its own documented default '4'"),
    ],
)
def test_options_that_are_not_validated_are_named(
    create: Callable[..., Delegate], message: str, tmp_path: Path
) -> None:
    spec = DelegateSpec("careful", "", lambda: faulty.SoundDelegate, Threads)
    tested = replace(subject(faulty.SoundDelegate, tmp_path), spec=spec, create=create)
    with pytest.raises(AssertionError, match=re.escape(message)):
        contract.options_are_validated(tested)
