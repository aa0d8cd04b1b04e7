"""A sweep finds what is planted, makes it small, folds it, and repeats itself."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("resource", reason="a sweep's workers are POSIX processes")

from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import ArgumentError, DelegateError
from delegraph.testing.sweep.comparison import Comparison
from delegraph.testing.sweep.findings import Finding
from delegraph.testing.sweep.sweep import Plan, SweepResult, run_sweep
from delegraph.tools.progress import Progress
from support.faulty_delegate import Fault, Faulty

CASES = 160
EXACT = {"FLOAT32": Tolerance()}


def swept(
    *,
    operators: tuple[str, ...] = ("ADD", "MUL"),
    folder: Path | None = None,
    shrink_seconds: float = 5.0,
    count: int = CASES,
    case_seconds: float = 30.0,
    **faults: Any,
) -> SweepResult:
    """Sweep a delegate that takes ADD alone."""
    comparison = Comparison("faulty", make=lambda: Faulty("ADD", tolerance=EXACT, **faults))
    plan = Plan(comparison, seed=1, cases=count, seconds=None, operators=operators, jobs=2)
    limits: dict[str, Any] = {"shrink_seconds": shrink_seconds, "case_seconds": case_seconds}
    return run_sweep(replace(plan, folder=folder, **limits))


def in_first_output(types: tuple[Any, ...], change: Any) -> Fault:
    """Fault of outputs of one of the dtypes *types*."""

    def fault(context: Any, node: Any, run: int) -> None:
        y = context.tensors[node.outputs[0]].data
        if y.dtype in types and y.size:
            change(y.reshape(-1), run)

    return fault


def add_one(y: Any, run: int) -> None:
    y[-1] += 1


def refuse(context: Any, node: Any, run: int) -> None:
    raise DelegateError("this delegate has no room for the node; make it smaller")


def divide_by_zero(context: Any, node: Any, run: int) -> None:
    _ = 1 // (run - run)


def abort(context: Any, node: Any, run: int) -> None:
    os.abort()


def wait(context: Any, node: Any, run: int) -> None:
    signal.pause()


WAITING = wait.__code__.co_firstlineno + 1


@pytest.fixture(scope="module")
def wrong_int16(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    """A sweep of a delegate with one wrong element of int16; its plan has the folder."""
    folder = tmp_path_factory.mktemp("wrong_int16")
    return swept(folder=folder, fault=in_first_output((np.dtype(np.int16),), add_one), count=80)


def only(result: SweepResult) -> Finding:
    (finding,) = result.differences
    return finding


def elements(finding: Finding) -> int:
    """How many numbers the model of a finding is fed."""
    return sum(array.size for step in finding.case.steps for array in step)


def test_a_sound_delegate_is_equal_everywhere() -> None:
    result = swept()
    assert not result.findings
    assert result.cases == CASES
    assert result.counts["ADD"]["equal"] > 0
    assert result.counts["MUL"]["not taken"] > 0
    assert result.computed == sum(row["equal"] for row in result.counts.values())


def counted(**counts: Counter[str]) -> SweepResult:
    return SweepResult(Plan(Comparison("chip")), counts, (), 1.0)


def test_a_sweep_of_which_little_was_computed_has_cautions() -> None:
    add = Counter({"cases": 250, "equal": 1, "not taken": 200, "refused": 49})
    idle = counted(ADD=add, MUL=Counter({"cases": 50, "not taken": 50}))
    assert (idle.computed, idle.untested) == (1, ("MUL",))
    assert idle.cautions == (
        "the delegate computed only 1 of 300 models",
        "the delegate computed no model of MUL",
    )
    assert idle.to_json()["cautions"] == list(idle.cautions)
    assert counted(ADD=Counter({"cases": 10, "equal": 1, "refused": 9})).cautions == ()


def test_a_caution_names_few_operators() -> None:
    rows = {f"OP_{i}": Counter({"cases": 1, "refused": 1}) for i in range(10)}
    assert counted(**rows).cautions[-1].endswith("OP_6, OP_7 and 2 more")


def test_one_wrong_element_of_one_type_is_one_finding(wrong_int16: SweepResult) -> None:
    finding = only(wrong_int16)
    assert finding.model == "ADD(INT16 INT16)"
    assert finding.fault.kind == "differs"
    assert finding.count > 1
    assert finding.state == "shrunk"
    assert elements(finding) <= 2
    assert len(finding.case.steps) == 1


def test_a_wrong_model_leaves_the_number_of_models_that_are_not_taken() -> None:
    every = (np.dtype(np.float32), np.dtype(np.int16), np.dtype(np.int32))
    fault = in_first_output(every, add_one)
    sound = swept(count=80).counts["MUL"]
    wrong = swept(count=80, shrink_seconds=0, fault=fault).counts["MUL"]
    assert wrong["different"] > 0
    assert wrong["equal"] < sound["equal"]
    assert wrong["not taken"] == sound["not taken"] > 0


@pytest.mark.repetition(1)  # each starts processes that end
@pytest.mark.parametrize(
    ("act", "kind"), [(refuse, "refuses alone"), (divide_by_zero, "bare text"), (abort, "crash")]
)
def test_what_a_delegate_raises_alone_is_found(act: Fault, kind: str) -> None:
    result = swept(at_prepare=act, shrink_seconds=0.5, count=24)
    assert {finding.fault.kind for finding in result.differences} == {kind}
    assert all("ADD" in finding.model for finding in result.differences)
    assert result.failed == sum(finding.count for finding in result.findings)
    assert not any(row["different"] for row in result.counts.values())


def test_an_error_of_each_prepare_is_one_finding_and_nothing_is_computed() -> None:
    result = swept(operators=("ADD",), at_prepare=divide_by_zero, shrink_seconds=0.1, count=12)
    assert only(result).count == result.failed > 0
    assert (result.computed, result.taken, result.untested) == (0, {}, ())


def interrupting(tried: int) -> Progress:
    """Progress function that raises an interrupt once *tried* cases were tried."""

    def progress(what: str, done: float, total: float | None) -> None:
        if " cases, " in what and done >= tried:
            raise KeyboardInterrupt

    return progress


def test_an_interrupt_keeps_the_findings_so_far(tmp_path: Path) -> None:
    fault = in_first_output((np.dtype(np.float32), np.dtype(np.int16)), add_one)
    comparison = Comparison("faulty", make=lambda: Faulty("ADD", fault=fault))
    plan = Plan(comparison, cases=1000, operators=("ADD",), folder=tmp_path)
    result = run_sweep(plan, interrupting(12))
    assert result.is_interrupted
    assert 12 <= result.cases < 1000
    assert {finding.state for finding in result.findings} == {"as found"}
    assert len(list(tmp_path.glob("*.tflite"))) == len(result.findings)
    assert result.to_json()["is_interrupted"]


def test_an_interrupt_while_shrinking_keeps_the_findings() -> None:
    def progress(what: str, done: float, total: float | None) -> None:
        if what.startswith("shrinking") and done:
            raise KeyboardInterrupt

    every = (np.dtype(np.float32), np.dtype(np.int16), np.dtype(np.int32))
    comparison = Comparison(
        "faulty", make=lambda: Faulty("ADD", fault=in_first_output(every, add_one))
    )
    plan = Plan(comparison, cases=12, operators=("ADD",), shrink_seconds=0.1)
    result = run_sweep(plan, progress)
    assert result.is_interrupted
    assert {finding.state for finding in result.findings} == {"shrunk", "as found"}


def test_the_command_names_the_few_operators_that_a_delegate_took_when_asked() -> None:
    plan = Plan(Comparison("mine"), drawn=("ADD", "MUL"), is_asked=True)
    assert plan.command == "delegraph test-operators mine --seed 0 --operator ADD --operator MUL"
    many = replace(plan, drawn=tuple("ABCDEFGHI"))
    assert many.command == "delegraph test-operators mine --seed 0"


def test_a_delegate_without_claims_is_asked_what_it_takes() -> None:
    asked = Comparison("faulty", make=lambda: Faulty("ADD")).observed(("ADD", "MUL"), seed=0)
    assert {tuple(claim["operators"]) for claim in asked} == {("ADD",)}
    types = {type for claim in asked for types in claim["roles"].values() for type in types}
    assert types >= {"FLOAT32", "INT8", "INT16"}


def test_nodes_that_a_delegate_took_are_counted_by_operator() -> None:
    result = swept(count=24)
    assert result.computed > 0
    assert list(result.taken) == ["ADD"]
    assert result.taken["ADD"] >= result.computed
    assert result.to_json()["taken"] == result.taken


def test_a_crash_when_it_is_asked_is_found_by_a_case() -> None:
    class Crashing(Faulty):
        def is_node_supported_by_delegate(self, registration: Any, *about: Any) -> Any:
            os.abort()

    compared = Comparison("crashing", make=Crashing)
    plan = Plan(compared, cases=1, shrink_seconds=0.0, operators=("ADD",))
    assert [found.fault.kind for found in run_sweep(plan).findings] == ["crash"]


def test_a_case_that_hangs_is_ended_and_the_others_are_tried() -> None:
    result = swept(operators=("ADD",), at_start=wait, shrink_seconds=0, count=4, case_seconds=0.3)
    finding = only(result)
    assert (finding.fault.kind, finding.fault.detail) == ("hang", "not done after 0.3 s")
    assert finding.fault.where.endswith(f"{Path(__file__).name}:{WAITING} in wait")
    assert finding.count > 1
    assert result.cases == 4
    assert result.command.endswith(" --timeout 0.3")


def test_a_delegate_that_hangs_while_loading_is_ended() -> None:
    plan = Plan(Comparison("slow", make=signal.pause), cases=1, case_seconds=0.1)
    with pytest.raises(DelegateError, match=r"^'slow' cannot be loaded: not done after 0\.2 s; "):
        run_sweep(plan)


@pytest.mark.timeout(30)
def test_asking_and_shrinking_take_no_longer_than_cases_are_begun() -> None:
    class Stuck(Faulty):
        def is_node_supported_by_delegate(self, *_: Any) -> Any:
            signal.pause()

    plan = Plan(Comparison("stuck", make=Stuck), seconds=0.2, case_seconds=0.2, operators=("ADD",))
    assert {found.fault.kind for found in run_sweep(plan).findings} == {"hang"}


def test_a_crash_counts_where_a_single_operator_is_swept() -> None:
    result = swept(operators=("ADD",), at_prepare=abort, shrink_seconds=0.1, count=4)
    assert {finding.fault.kind for finding in result.differences} == {"crash"}
    assert result.counts["ADD"]["failed"] == sum(found.count for found in result.findings)


def test_a_fault_of_the_second_invoke_keeps_two_invokes() -> None:
    def fault(context: Any, node: Any, run: int) -> None:
        y = context.tensors[node.outputs[0]].data
        if run > 1 and y.dtype == np.float32 and y.size:
            y.reshape(-1)[0] += 1

    found = swept(fault=fault, shrink_seconds=1, count=80).differences
    assert any(len(finding.case.steps) > 1 for finding in found)
    for finding in found:  # each node of a delegate counts its runs
        assert len(finding.case.steps) > 1 or finding.model.count("ADD") > 1


def test_the_same_seed_makes_the_same_cases_and_another_seed_others() -> None:
    plan = Plan(Comparison("core"), seed=3)
    cases = [plan.case(number) for number in range(8)]
    again = [plan.case(number) for number in reversed(range(8))][::-1]
    others = [replace(plan, seed=4).case(number) for number in range(8)]
    assert [(c.op, c.content, c.threads) for c in cases] == [
        (c.op, c.content, c.threads) for c in again
    ]
    assert {c.content for c in cases}.isdisjoint(c.content for c in others if len(c.content) > 900)
    assert {c.threads for c in cases} == {1, 2}


def test_findings_are_written_with_what_repeats_them(wrong_int16: SweepResult) -> None:
    finding, folder = only(wrong_int16), wrong_int16.plan.folder
    assert folder is not None
    assert sorted(path.suffix for path in folder.iterdir()) == [".npz", ".tflite", ".txt"]
    assert (folder / f"{finding.name}.tflite").read_bytes() == finding.case.content
    with np.load(folder / f"{finding.name}.npz") as arrays:
        assert arrays["invoke0_input0"].dtype == np.int16
    text = (folder / f"{finding.name}.txt").read_text()
    number = finding.numbers[0]
    first, *facts = text.splitlines()
    assert first.startswith("ADD(INT16 INT16): differs: invoke 0, output 0: ")
    assert first.endswith(f"--operator ADD --operator MUL --first {number} --cases 1]")
    assert any(line.startswith("ADD: ") and "INT16[" in line for line in facts)
    assert any(line.startswith("invoke0_input0 = ") for line in facts)


def test_operators_without_cases_are_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match=r"no cases of an operator 'COVN_2D'.*CONV_2D"):
        swept(operators=("COVN_2D",))


def test_a_system_without_fork_is_told_where_sweeps_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    with pytest.raises(ArgumentError, match="cannot; run it on Linux or macOS"):
        swept()


def test_by_default_must_be_a_default_delegate() -> None:
    with pytest.raises(ArgumentError, match=r"'core' is no delegate that .* applies by default"):
        run_sweep(Plan(Comparison("core", by_default=True), cases=1))


def test_the_core_is_compared_with_the_official_interpreter() -> None:
    pytest.importorskip("ai_edge_litert")
    result = run_sweep(Plan(Comparison("core"), cases=100, operators=("ABS", "RELU"), jobs=2))
    assert not result.findings
    assert sum(row["equal"] for row in result.counts.values()) > 30


def test_objects_that_the_caller_has_frozen_stay_frozen() -> None:
    pytest.importorskip("ai_edge_litert")
    gc.freeze()
    run_sweep(Plan(Comparison("core"), cases=1, operators=("ABS",)))
    assert gc.get_freeze_count() > 0
