"""The models with which the kit tries the contract of a delegate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from delegraph import Capabilities, Claim
from delegraph.testing.conformance.sample_models import specimens
from delegraph.testing.conformance.sampling import FULL
from delegraph.testing.conformance.subject import subject_of
from support import many_claims as engines


def test_no_specimen_has_values_that_stand_for_infinity() -> None:
    """Within a chain they must be exact, and EXP of 70 is so large."""

    class Exponential(engines.EngineDelegate):
        claims = Capabilities([Claim("EXP", "FLOAT32", "many-dims", "scalar")])

    found = specimens(replace(subject_of(Exponential), effort=FULL))
    assert found
    assert max(np.abs(trial.expected[0][0]).max() for trial in found) < 1e18
