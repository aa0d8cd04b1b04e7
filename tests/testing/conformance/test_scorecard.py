"""The scorecard of the kit, as a terminal shows it."""

from __future__ import annotations

from delegraph.testing.conformance.scorecard import Result, Scorecard


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
