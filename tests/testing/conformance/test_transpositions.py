"""Engines that move transpositions across an operator with a wrong axis are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import SkipTest

import pytest

from delegraph import Capabilities, Claim
from delegraph.testing.conformance import numbers
from delegraph.testing.conformance.sampling import FULL, QUICK, Effort
from delegraph.testing.conformance.subject import Subject, subject_of
from delegraph.testing.conformance.transpositions import transposed_are_right
from support import many_claims as engines

FEW = replace(FULL, random_cases=8, enough=4)


def subject(kind: type, folder: Path, effort: Effort = FEW) -> Subject:
    return replace(subject_of(kind), folder=folder, effort=effort)


@pytest.mark.repetition(1)
@pytest.mark.parametrize("effort", [FEW, QUICK])
def test_a_wrong_axis_between_transpositions_is_named(effort: Effort, tmp_path: Path) -> None:
    tested = subject(engines.MovesTranspositions, tmp_path, effort)
    numbers.results_are_right(tested, "CUMSUM")  # alone it is right
    with pytest.raises(
        AssertionError,
        match=r"(?s)CUMSUM is right alone and wrong between TRANSPOSEs: output 0: .*with a wrong "
        r"axis.*saved: .*engine-CUMSUM-transposed\.tflite",
    ):
        transposed_are_right(tested)


def test_an_engine_that_moves_nothing_passes(tmp_path: Path) -> None:
    class Sound(engines.EngineDelegate):
        claims = engines.MovesTranspositions.claims

    transposed_are_right(subject(Sound, tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_without_a_claim_of_transpose_there_is_nothing_to_try(tmp_path: Path) -> None:
    class Without(engines.EngineDelegate):
        claims = Capabilities([Claim("CUMSUM", ["FLOAT32", "INT32"]), Claim("TRANSPOSE", "INT8")])

    with pytest.raises(SkipTest, match="claims no TRANSPOSE of the types"):
        transposed_are_right(subject(Without, tmp_path))
