"""Badges are well-formed pictures, and say what failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from delegraph.errors import ArgumentError
from delegraph.testing.badge import Badge, require_badge_ending
from delegraph.testing.conformance.scorecard import Scorecard


def card(*outcomes: str, sample: str = "") -> Scorecard:
    note: dict[str, Any] = {"delegate": "chip", "section": "numbers", "message": ""}
    note |= {"types": {"FLOAT32": "1/1"}, "sample": sample}
    return Scorecard.of(
        {**note, "check": f"OP{i}", "outcome": outcome} for i, outcome in enumerate(outcomes)
    )


def test_a_badge_of_the_kit_counts_operators_or_failures() -> None:
    assert card("passed").badge() == Badge("1 operator", "passed")
    assert card("passed", "skipped").badge() == Badge("2 operators", "passed")
    assert card("passed", sample="one").badge() == Badge("1 operator, a sample", "sampled")
    assert card("passed", "failed").badge() == Badge("1 of 2 checks failed", "failed")


def test_a_picture_is_well_formed_whatever_the_text() -> None:
    picture = ElementTree.fromstring(Badge("<2> & more", "failed").svg())
    assert picture.get("aria-label") == "Delegraph kit: <2> & more"


def test_a_file_of_another_ending_or_without_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"ends in \.svg or \.json"):
        require_badge_ending("badge.png")
    with pytest.raises(ArgumentError, match="cannot be written"):
        Badge("1 operator", "passed").write(str(tmp_path / "none" / "badge.svg"))
