"""The sweep as a check of the kit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import SkipTest

import pytest

pytest.importorskip("resource", reason="a sweep's workers are POSIX processes")

from delegraph import Capabilities, Claim
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.sweeping import sweep_finds_nothing
from support.faulty_delegate import Faulty, off_by

ADD = Capabilities([Claim("ADD", "INT32")])
MINUTES = 1 / 60


def test_a_sound_delegate_passes(tmp_path: Path) -> None:
    sweep_finds_nothing(Subject("mine", lambda: Faulty("ADD"), ADD, folder=tmp_path), MINUTES, 0)
    assert not list(tmp_path.iterdir())


@pytest.mark.repetition(0)  # it takes long
def test_the_message_says_what_was_found_and_what_repeats_it(tmp_path: Path) -> None:
    faulty = Subject("mine", lambda: Faulty("ADD", fault=off_by(1)), ADD, folder=tmp_path)
    with pytest.raises(AssertionError) as caught:
        sweep_finds_nothing(faulty, MINUTES, 5)
    message = str(caught.value)
    assert "ADD(INT32 INT32): differs (" in message
    assert "again: --delegate-seed 5" in message
    assert any(str(path) in message for path in tmp_path.glob("*.tflite"))
    installed = replace(faulty, address="mine")
    with pytest.raises(AssertionError, match="again: delegraph test-operators mine --seed 5"):
        sweep_finds_nothing(installed, MINUTES, 5)


def test_claims_of_custom_operators_alone_have_no_sweep() -> None:
    own = Capabilities([Claim("Mine", "FLOAT32")])
    with pytest.raises(SkipTest, match="no generated models"):
        sweep_finds_nothing(Subject("mine", lambda: Faulty("Mine"), own), MINUTES, 0)
