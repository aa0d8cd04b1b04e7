"""The fuzzer finds what is planted, says who did it, and repeats itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("resource", reason="the fuzzer's workers are POSIX processes")

from delegraph import ModelError, TensorType, builtin_registration
from delegraph.delegation import Capabilities, Tolerance
from delegraph.errors import DelegateError, OperatorError
from delegraph.graph import parse_model
from delegraph.operators.op_table import OP_TABLE
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import one_op_model, tensor
from delegraph.testing.sweep.findings import Findings
from delegraph.testing.sweep.judging import Run, difference_fault, error_fault
from delegraph.testing.sweep.workers import Campaign, Judge, Limits
from fuzz.copies import copy_with_number
from fuzz.feeding import Feeding
from fuzz.findings import finding_of, load, save
from fuzz.run import verify
from fuzz.starting_models import StartingModel
from fuzz.targets import Target, targets
from support.seeded_faults import SoundKernel, with_kernel

LIMITS = Limits(seconds=1, bytes=1 << 30)
TARGETS = targets()
COPIES = 100
X, Y = tensor((2, 3)), tensor((3,))
SMALL = [
    StartingModel("ADD", one_op_model("ADD", [X, Y], [tensor((2, 3))], AddOptions())),
    StartingModel("ABS", one_op_model("ABS", [X], [tensor((2, 3))])),
    StartingModel("MUL", one_op_model("MUL", [X, Y], [tensor((2, 3))], MulOptions())),
]


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply the limits of `make fuzz` in each test."""
    monkeypatch.setenv("DELEGRAPH_NUMBA_GUARD", "1")


def campaign(target: Target, models: Any = SMALL, copies: int = COPIES, seed: int = 0) -> Any:
    made = Campaign(
        target.judge,
        lambda number: copy_with_number(models, seed, number),
        numbers=range(copies),
        jobs=2,
        limits=LIMITS,
    )
    findings = Findings()
    for found in made.run(seconds=60):
        if found is not None:
            findings.add(found.number, finding_of(target, found))
    return made, findings


def kinds(findings: Findings) -> set[str]:
    return {finding.fault.kind for finding in findings}


def test_a_number_always_names_the_same_copy() -> None:
    copies = [copy_with_number(SMALL, 7, number) for number in range(50)]
    again = [copy_with_number(SMALL, 7, number) for number in range(50)]
    assert [(c.content, c.seed) for c in copies] == [(c.content, c.seed) for c in again]
    assert len({c.content for c in copies}) > 40


def test_every_copy_is_counted_once() -> None:
    made, _ = campaign(TARGETS["core"])
    assert made.tried() == COPIES
    assert made.counts()["computed"] > COPIES // 10
    assert made.counts()["refused"] > COPIES // 10


def plant(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Let the kernel of ABS also call *act*."""
    sound = builtin_registration("ABS")

    def prepare(context: Any, node: Any) -> Any:
        run = sound.prepare(context, node)

        def run_and_act() -> None:
            run()
            act()

        return run_and_act

    monkeypatch.setitem(OP_TABLE, "ABS", replace(sound, prepare=prepare))


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def hang() -> None:
    while True:
        pass


def let_through() -> None:
    raise TypeError("'NoneType' object is not iterable")


def raise_bare() -> None:
    raise OperatorError("cannot reshape array of size 4 into shape (3,)")


def exhaust() -> None:
    np.zeros(1 << 33, np.uint8)


@pytest.mark.repetition(2)
@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (crash, "crash"),
        (hang, "hang"),
        (let_through, "bare text"),
        (raise_bare, "bare text"),
        (exhaust, "bare text"),
        (lambda: os._exit(0), "crash"),
    ],
)
def test_a_planted_fault_of_a_kernel_is_found(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], kind: str
) -> None:
    plant(monkeypatch, act)
    made, findings = campaign(TARGETS["core"], copies=10)
    assert kinds(findings) == {kind}
    assert made.tried() == 10
    assert made.counts()["fault"] == sum(finding.count for finding in findings)


@dataclass(frozen=True)
class Planted(Target):
    """Target with a delegate of this test."""

    kernel: type[SoundKernel] = SoundKernel

    def make(self) -> Any:
        return with_kernel(self.kernel)()


def planted(kernel: type[SoundKernel], *, in_litert: bool = False) -> Target:
    return Planted("planted", "planted", in_litert=in_litert, kernel=kernel)


class WrongKernel(SoundKernel):
    def write(self, target: Any, y: Any) -> None:
        target[...] = y + np.array(1, y.dtype)


class CrashingKernel(SoundKernel):
    def eval(self, context: Any, node: Any) -> None:
        crash()


class RefusingKernel(SoundKernel):
    def eval(self, context: Any, node: Any) -> None:
        raise DelegateError("not today")


@pytest.mark.repetition(1)
@pytest.mark.parametrize(
    ("kernel", "kind", "in_litert"),
    [
        (WrongKernel, "differs", False),
        (WrongKernel, "differs", True),
        (CrashingKernel, "crash", False),
        (CrashingKernel, "crash", True),
        (RefusingKernel, "refuses alone", False),  # in LiteRT that is an answer
    ],
)
def test_a_planted_fault_of_a_delegate_is_found(
    kernel: type[SoundKernel], kind: str, in_litert: bool
) -> None:
    _, findings = campaign(planted(kernel, in_litert=in_litert), copies=30)
    assert kind in kinds(findings)


@pytest.mark.parametrize(("length", "cancels"), [(9, True), (1 << 16, False)])
def test_a_sum_in_another_order_is_no_difference(length: int, cancels: bool) -> None:
    def summed(nudge: int, step: int = 1) -> Run:
        x = Feeding(7, [[many]], nudge).array(0, 0, many.shape, np.float32)
        total = np.add.accumulate(x[::step])[-1:]  # one after another
        return Run([[total]], [TensorType.FLOAT32], None)

    many = np.random.default_rng(3).normal(1, 2, length).astype(np.float32)
    many = many**2 if not cancels else np.append(many, -many.sum(dtype=np.float64)) * 1e4
    many = many.astype(np.float32)
    promised = Capabilities(tolerance={"FLOAT32": Tolerance(1e-9)})
    right, turned, nudged = summed(0), summed(0, -1), [summed(i) for i in range(1, 7)]
    assert difference_fault(right, turned, promised, only_shapes=False)
    assert not difference_fault(right, turned, promised, only_shapes=False, nudged=nudged)
    wrong = Run([[right.outputs[0][0] + np.abs(many).sum() / 100]], right.types, None)
    assert difference_fault(right, wrong, promised, only_shapes=False, nudged=nudged)


def test_a_crash_of_the_official_interpreter_alone_is_not_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fuzz.targets.open_official", lambda content: crash())
    made, findings = campaign(planted(SoundKernel, in_litert=True), copies=10)
    assert len(findings) == 0
    assert made.counts()["not judged"] == 10


def test_a_finding_is_reduced_saved_and_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, crash)
    _, findings = campaign(TARGETS["core"], copies=40)
    finding = max(findings, key=lambda f: len(f.case.content))
    verify(finding, TARGETS["core"], LIMITS, seconds=10)
    name, copy, described = load(save(finding, tmp_path))
    with Judge(TARGETS["core"].judge, LIMITS) as judge:
        assert judge(copy).fault == finding.fault
    assert (name, described["kind"], described["operators"]) == ("core", "crash", "ABS")
    assert len(copy.content) <= 400
    assert [node.name for node in parse_model(copy.content).subgraphs[0].operators] == ["ABS"]


@pytest.mark.parametrize("error", [ValueError("no"), RecursionError("deep"), ModelError("")])
def test_errors_that_do_not_say_in_our_words_what_is_wrong_are_faults(error: Exception) -> None:
    assert error_fault(error) is not None


def test_an_error_in_our_words_is_none() -> None:
    assert error_fault(ModelError("division by zero: tensor 'y' holds 0")) is None


@pytest.mark.repetition(1)
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_sample_of_copies_neither_crashes_nor_hangs(name: str) -> None:
    """The core has no findings at all; delegates may refuse with other messages."""
    target = TARGETS[name]
    target.warm_up()
    made, findings = campaign(target, target.models(every=20), copies=COPIES)
    assert made.tried() == COPIES
    for finding in findings:
        if name == "core" or finding.fault.kind in ("crash", "hang"):
            verify(finding, target, LIMITS, seconds=1)
            assert not finding.is_ours, finding.described()


@pytest.mark.parametrize(
    ("text", "is_fault"), [("Interpreter(limits=Limits(memory=...))", False), ("", True)]
)
def test_a_delegate_may_do_with_less_memory(text: str, is_fault: bool) -> None:
    refused = Run([], [], DelegateError(f"too much; {text}"))
    fault = difference_fault(refused, Run([], [], None), Capabilities(), only_shapes=False)
    assert (fault is not None) is is_fault
