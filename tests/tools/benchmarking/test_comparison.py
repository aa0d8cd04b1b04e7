from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from delegraph import load_delegate
from delegraph.errors import ArgumentError, UnknownDelegateError
from delegraph.tools import Comparison, InputRequest, Setup, compare
from delegraph.tools.benchmarking.comparison import Timed
from delegraph.tools.benchmarking.interleaving import effects_of
from delegraph.tools.benchmarking.verdicts import judge

SINES = str(Path(__file__).parents[3] / "docs/demo/models/sines.tflite")
BRIEF = {"blocks": 5, "seconds": 0.05}
HERE = {**BRIEF, "processes": False}


@pytest.fixture(scope="module")
def found() -> Comparison:
    pytest.importorskip("ai_edge_litert")
    others = [Setup(SINES, "litert"), Setup(SINES, delegates=("unknown",)), Setup(SINES)]
    return compare(Setup(SINES), others, InputRequest(seed=3), **HERE)


def test_each_other_set_up_is_judged(found: Comparison) -> None:
    assert [timed.name for timed in found.others] == [
        "sines.tflite, litert",
        "sines.tflite, unknown",
        "sines.tflite",
    ]
    litert, unknown, _ = found.others
    assert litert.verdict is not None
    assert litert.median is not None
    assert len(litert.blocks) == len(found.one.blocks) == len(found.again.blocks) == 5
    assert unknown.verdict is unknown.median is None
    assert "no installed plugin provides delegate 'unknown'" in unknown.error


def test_the_verdict_is_that_of_the_statistics(found: Comparison) -> None:
    effects, control = (
        effects_of(found.one.blocks, timed.blocks) for timed in (found.others[0], found.again)
    )
    assert found.others[0].verdict == judge(effects, control)


def test_json_has_the_raw_times_the_seed_and_the_machine(found: Comparison) -> None:
    shown = json.loads(json.dumps(found.to_json()))
    turn = shown["others"][0]["blocks"][0][0][0]
    assert turn == list(found.others[0].blocks[0][0][0])
    assert shown["seed"] == 3
    assert shown["machine"]["processor"]["cores"] >= 1
    assert shown["machine"]["versions"]["delegraph"]
    assert shown["others"][1]["verdict"] is None
    assert shown["one"]["setup"]["model"] == SINES


def test_a_notebook_shows_verdicts_and_errors(found: Comparison) -> None:
    shown = found._repr_html_()
    assert shown.count("<tr>") == 1 + 4
    assert f">{found.others[0].verdict}</td>" in shown
    assert "no installed plugin provides delegate &#x27;unknown&#x27;" in shown


def test_processes_give_as_many_blocks() -> None:
    told = list[tuple[str, float, float | None]]()
    found = compare(
        Setup(SINES), [Setup(SINES)], progress=lambda *now: told.append(now), blocks=5, seconds=2
    )
    assert len(found.others[0].blocks) == 5
    assert found.processes
    assert told[-1][2] == 5
    assert "block 5 of 5" in {what for what, *_ in told}


def test_what_the_set_up_itself_fails_with_is_raised() -> None:
    with pytest.raises(UnknownDelegateError, match="no installed plugin provides delegate 'no'"):
        compare(Setup(SINES, delegates=("no",)), [Setup(SINES)], **BRIEF)


def test_nothing_goes_on_when_all_others_have_failed() -> None:
    found = compare(Setup(SINES), [Setup("absent.tflite")], **HERE)
    assert len(found.one.blocks) == 1
    assert "absent.tflite" in found.others[0].error


@pytest.mark.parametrize("processes", [False, True])
def test_a_set_up_whose_delegate_takes_no_node_is_a_caution(processes: bool) -> None:
    digits = SINES.replace("sines", "digits_int8")
    other = Setup(digits, delegates=("sin",))
    found = compare(Setup(digits), [other], blocks=5, seconds=0, processes=processes)
    assert f"{other}: 15 nodes: sin takes none, " in "".join(found.cautions)


def test_delegates_that_are_objects_need_this_process() -> None:
    setup = Setup(SINES, delegates=(load_delegate("sin"),))
    with pytest.raises(ArgumentError, match=r"is an object, .* or set processes=False"):
        compare(setup, [Setup(SINES)])
    assert compare(setup, [Setup(SINES)], **HERE).others[0].verdict is not None


def test_an_error_that_is_not_ours_is_named() -> None:
    class Breaking:
        """A delegate that nobody expects."""

    broken = Setup(SINES, delegates=(Breaking(),))  # type: ignore[arg-type]  # on purpose
    (other,) = compare(Setup(SINES), [broken], **HERE).others
    assert other.error != ""


@pytest.mark.parametrize(
    ("others", "blocks", "message"),
    [([], 12, "no other set-up"), ([Setup(SINES)], 4, "blocks is 4, expected 5 at least")],
)
def test_wrong_requests_are_refused(others: list[Setup], blocks: int, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        compare(Setup(SINES), others, blocks=blocks)


def test_only_what_is_surely_slower_is_slower_than_a_share(found: Comparison) -> None:
    nothing, tenth = np.zeros(5), np.full(5, np.log(1.1))
    slower = Timed("slower", {}, verdict=judge(tenth, nothing))
    equal = Timed("equal", {}, verdict=judge(nothing, nothing))
    made = replace(found, others=(slower, equal, Timed("failed", {}, failure=ValueError("why"))))
    assert made.slower_than(0.05) == [slower]
    assert made.slower_than(0.2) == []
    assert made.others[-1].error == "ValueError: why"
