from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError, DelegateError
from delegraph.schema.options import AddOptions, NegOptions, RNNOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph.tools import Setup
from delegraph.tools.evaluation.runner import run_task
from delegraph.tools.evaluation.task import Outputs, content_digest
from support.faulty_delegate import Faulty, failing, off_by


@dataclass(frozen=True)
class Number:
    """A sample that is a number."""

    key: str
    value: float

    def digest(self) -> str:
        return content_digest(str(self.value).encode())


@dataclass
class Echo:
    """Keeps the outputs of each sample; negative numbers cannot be used."""

    name: str = "echo"
    made: int = 0

    def identity(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def require_model(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        if len(inputs) != 1:
            raise ArgumentError("expected one input")

    def inputs(self, sample: Number, details: Sequence[Any]) -> list[Any]:
        if sample.value < 0:
            raise ArgumentError("it is negative")
        self.made += 1
        return [np.full(details[0]["shape"], sample.value, details[0]["dtype"])]

    def judge(self, sample: Number, outputs: Outputs) -> Mapping[str, Any]:
        return {"values": outputs[0][1].tolist()}


SAMPLES = [Number("a", 1), Number("b", 2), Number("c", 3)]


@pytest.fixture
def negative(tmp_path: Path) -> Setup:
    path = tmp_path / "neg.tflite"
    path.write_bytes(one_op_model("NEG", [tensor((2,))], [tensor((2,))], NegOptions()))
    return Setup(str(path))


def told(answers: Any) -> dict[str, Any]:
    """Return all of the answers but times and what an earlier run had done."""
    names = ("keys", "rows", "threads", "bad")
    return {name: getattr(answers, name) for name in names}


def test_every_set_up_answers_every_sample_in_its_order(negative: Setup) -> None:
    wrong = replace(negative, delegates=(Faulty("NEG", fault=off_by(10)),))
    answers = run_task([negative, wrong], SAMPLES, Echo())
    assert answers.keys == ("a", "b", "c")
    assert [row["values"] for row in answers.rows[0]] == [[-1, -1], [-2, -2], [-3, -3]]
    assert [row["values"] for row in answers.rows[1]] == [[-1, 9], [-2, 8], [-3, 7]]
    assert [latency.count for latency in answers.invoke] == [3, 3]
    assert answers.prepare.count == 3


@pytest.mark.parametrize("warmup_runs", [0, 1, 4])
def test_warm_up_runs_on_the_first_sample_and_does_not_count(
    negative: Setup, warmup_runs: int
) -> None:
    delegate = Faulty("NEG")
    setup = replace(negative, delegates=(delegate,))
    answers = run_task([setup], SAMPLES, Echo(), warmup_runs=warmup_runs)
    assert delegate.runs == 3 + warmup_runs
    assert answers.invoke[0].count == 3


def test_inputs_are_made_once_for_models_that_take_the_same(
    negative: Setup, tmp_path: Path
) -> None:
    other = tmp_path / "int.tflite"
    other.write_bytes(one_op_model("NEG", [tensor((3,), "INT32")], [tensor((3,), "INT32")]))
    task = Echo()
    answers = run_task([negative, replace(negative, threads=1), Setup(str(other))], SAMPLES, task)
    assert task.made == 2 * len(SAMPLES)
    assert answers.rows[2][0]["values"] == [-1, -1, -1]


def test_what_cannot_be_used_is_listed_and_the_rest_goes_on(negative: Setup) -> None:
    answers = run_task([negative], [Number("x", -1), *SAMPLES], Echo())
    assert answers.keys == ("a", "b", "c")
    assert [(bad.key, bad.reason) for bad in answers.bad] == [("x", "it is negative")]
    assert answers.to_json()["bad"] == [{"key": "x", "reason": "it is negative"}]


def test_where_nothing_can_be_used_the_first_reason_is_told(negative: Setup) -> None:
    samples = [Number("x", -1), Number("y", -2)]
    with pytest.raises(ArgumentError, match="none of 2 samples can be used; x: it is negative"):
        run_task([negative], samples, Echo())


def test_a_model_that_does_not_fit_is_refused_by_its_set_up(
    negative: Setup, tmp_path: Path
) -> None:
    path = tmp_path / "add.tflite"
    kinds = [tensor((2,)), tensor((2,))]
    path.write_bytes(one_op_model("ADD", kinds, [tensor((2,))], AddOptions()))
    with pytest.raises(ArgumentError, match=r"add\.tflite: expected one input"):
        run_task([negative, Setup(str(path))], SAMPLES, Echo())


@pytest.mark.parametrize(
    ("samples", "message"),
    [([], "the data set is empty"), ([*SAMPLES, SAMPLES[1]], "two samples .* called 'b'")],
)
def test_samples_are_there_and_have_keys_of_their_own(
    negative: Setup, samples: list[Number], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        run_task([negative], samples, Echo())


def test_progress_tells_what_this_run_has_to_do(negative: Setup, tmp_path: Path) -> None:
    heard: list[Any] = []
    broken = replace(negative, delegates=(Faulty("NEG", fault=failing(3)),))
    journal = str(tmp_path / "journal")
    with pytest.raises(DelegateError):
        run_task([broken], SAMPLES, Echo(), journal=journal, warmup_runs=0)
    run_task(
        [broken], SAMPLES, Echo(), journal=journal, progress=lambda *words: heard.append(words)
    )
    assert heard == [("evaluating", 0, 1), ("evaluating", 1, 1)]


def test_no_sample_sees_what_came_before_it(tmp_path: Path) -> None:
    """A recurrent model without a reset would add up its inputs."""
    one = constant(np.float32([[1]]))
    inputs = [tensor((1, 1)), one, one, constant(np.float32([0])), tensor((1, 1), is_variable=True)]
    path = tmp_path / "rnn.tflite"
    path.write_bytes(one_op_model("RNN", inputs, [tensor((1, 1))], RNNOptions()))
    answers = run_task([Setup(str(path)), Setup(str(path), "litert")], SAMPLES, Echo())
    for rows in answers.rows:
        assert [row["values"] for row in rows] == [[[1]], [[2]], [[3]]]


# -- resuming ----------------------------------------------------------------------------------


def interrupted(negative: Setup, journal: str, samples: Sequence[Number]) -> Setup:
    """Run until the set-up fails at the third sample; return the set-up, which has recovered."""
    delegate = Faulty("NEG", fault=off_by(10))
    setup = replace(negative, delegates=(delegate,))
    delegate.at_start = failing(3)
    with pytest.raises(DelegateError):
        run_task([negative, setup], samples, Echo(), journal=journal, warmup_runs=0)
    delegate.at_start = Faulty().at_start
    return setup


def test_what_is_done_is_not_done_again_and_the_result_is_the_same(
    negative: Setup, tmp_path: Path
) -> None:
    samples = [Number("x", -1), *SAMPLES, Number("y", -2), Number("d", 4)]
    journal = str(tmp_path / "journal")
    setup = interrupted(negative, journal, samples)
    task = Echo()
    whole = run_task([negative, setup], samples, Echo())
    resumed = run_task([negative, setup], samples, task, journal=journal)
    assert resumed.resumed == 3
    assert task.made == 2
    assert told(resumed) == told(whole)
    assert [latency.count for latency in resumed.invoke] == [4, 4]
    nothing_left = run_task([negative, setup], samples, task, journal=journal)
    assert (nothing_left.resumed, task.made) == (6, 2)
    assert told(nothing_left) == told(whole)


def test_times_of_an_interrupted_run_are_kept(negative: Setup, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    setup = interrupted(negative, str(journal), SAMPLES)
    lines = journal.read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    for number, entry in enumerate(entries[1:], 1):
        entry |= {"prepare": 10.0 * number, "invoke": [20.0 * number, 30.0 * number]}
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    answers = run_task([negative, setup], SAMPLES, Echo(), journal=str(journal))
    assert (answers.prepare.first, answers.prepare.max) == (10, 20)
    assert [latency.max for latency in answers.invoke] == [40, 60]


def test_a_sample_that_changed_is_refused(negative: Setup, tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    setup = interrupted(negative, journal, SAMPLES)
    changed = [Number("a", 5), *SAMPLES[1:]]
    with pytest.raises(ArgumentError, match="results for 'a', whose content or truth has changed"):
        run_task([negative, setup], changed, Echo(), journal=journal)


@pytest.mark.parametrize("what", ["samples", "task", "set-up 1", "set-up 2", "set-up 3"])
def test_another_evaluation_is_refused(negative: Setup, tmp_path: Path, what: str) -> None:
    journal = str(tmp_path / "journal")
    setups = [negative, interrupted(negative, journal, SAMPLES)]
    samples, task = list(SAMPLES), Echo()
    if what == "samples":
        samples.append(Number("e", 1))
    elif what == "task":
        task = Echo("another")
    elif what == "set-up 1":
        model = Path(negative.model)
        model.write_bytes(model.read_bytes() + b"\0")
    elif what == "set-up 2":
        setups[1] = replace(setups[1], threads=2)
    else:
        setups.append(negative)
    with pytest.raises(ArgumentError, match=rf"is of another evaluation: not the same .*{what}"):
        run_task(setups, samples, task, journal=journal)


def test_a_model_that_was_moved_is_still_the_same(negative: Setup, tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    setups = [negative, interrupted(negative, journal, SAMPLES)]
    moved = Path(negative.model).rename(tmp_path / "moved.tflite")
    setups = [replace(setup, model=str(moved)) for setup in setups]
    assert run_task(setups, SAMPLES, Echo(), journal=journal).resumed == 2


@pytest.mark.parametrize("what", ["delegate_files", "rules"])
def test_files_of_a_set_up_count_by_their_content(
    negative: Setup, tmp_path: Path, what: str
) -> None:
    from delegraph.tools.evaluation.identity import identity

    path = tmp_path / "file"
    path.write_text("one")
    given: Any = str(path) if what == "rules" else (f"{path}:threads=2",)
    setup = replace(negative, **{what: given})
    first = identity([setup], {}, SAMPLES)
    assert identity([setup], {}, SAMPLES) == first
    path.write_text("another")
    assert identity([setup], {}, SAMPLES)["set-up 1"] != first["set-up 1"]
    path.unlink()
    with pytest.raises(ArgumentError, match="cannot be read: No such file"):
        identity([setup], {}, SAMPLES)


def test_versions_of_what_computes_count(negative: Setup) -> None:
    from delegraph.tools.evaluation.identity import identity

    versions = identity([negative], {}, SAMPLES)["versions"]
    assert {"delegraph", "numpy"} <= versions.keys()
