"""The text and the JSON of a scorecard."""

from __future__ import annotations

from dataclasses import replace

from delegraph.testing.conformance.scorecard import Result, Scorecard

RIGHT = Result("npu", "numbers", "ADD", "passed", "", {"INT8": "1/1"}, sample="one model of each")


def test_a_verdict_says_that_no_number_was_checked() -> None:
    contract = replace(RIGHT, section="contract", types={})
    for results in ((contract, RIGHT), (contract,)):
        assert Scorecard(results).text().startswith("npu: passed\n")
    skipped = replace(RIGHT, outcome="not applicable", types={})
    text = Scorecard((contract, skipped)).text()
    assert text.startswith("npu: passed, but no number was checked\n")
    assert Scorecard((replace(RIGHT, outcome="failed"),)).text().startswith("npu: FAILED\n")


def test_lines_fit_the_terminal() -> None:
    message = "ADD comes out wrong " * 9 + "at [3]\nmore"
    wrong = replace(RIGHT, outcome="failed", message=message, sample="few " * 30)
    text = Scorecard((wrong,)).text(width=60)
    assert max(map(len, text.splitlines())) <= 60
    assert text.endswith(" at [3]")


def test_json_has_the_sample_once() -> None:
    (card,) = Scorecard((RIGHT, RIGHT)).to_json()["delegates"]
    assert card["sample"] == RIGHT.sample
    assert [set(check) & {"sample", "check"} for check in card["checks"]] == [{"check"}] * 2


def test_checks_that_were_not_tried_have_a_column_of_their_own() -> None:
    card = Scorecard((RIGHT, replace(RIGHT, outcome="not tried", types={})))
    assert card.text().split("\n")[3:5] == [
        "  section    passed  failed  not applicable  not tried",
        "  contract        0       0               0          0",
    ]
    assert "not tried" not in Scorecard((RIGHT,)).text()


def failed(check: str, message: str) -> Result:
    return Result("mine", "numbers", check, "failed", message, {})


def test_equal_failures_are_one() -> None:
    card = Scorecard((
        failed("ADD", "ADD comes out wrong in 3 of 3 models: no room"),
        failed("MUL", "MUL comes out wrong in 2 of 5 models: no room"),
        failed("SUB", "SUB comes out wrong in 1 of 1 models: too slow"),
    ))  # fmt: skip
    assert card.text().splitlines()[-3:] == [
        "  numbers: ADD: ADD comes out wrong in 3 of 3 models: no room",
        "    the same in 1 more check: MUL",
        "  numbers: SUB: SUB comes out wrong in 1 of 1 models: too slow",
    ]
    assert len(card.to_json()["delegates"][0]["checks"]) == 3
