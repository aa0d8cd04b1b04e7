"""Generated models say nothing about a delegate where a value is not finite."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph.schema.options import AddOptions
from delegraph.testing import fed, operator_case, subject_of
from delegraph.testing.conformance.composition import Composition
from delegraph.testing.conformance.generated import judged
from support import seeded_faults as faulty


@pytest.mark.parametrize("root_of", [4.0, -4.0])
@pytest.mark.parametrize("root_is_first", [True, False])
def test_nothing_is_said_when_any_value_is_nan(root_of: float, root_is_first: bool) -> None:
    x = fed(np.ones(3, np.float32))
    add = operator_case("ADD", [x, x], ["FLOAT32"], AddOptions())
    root = operator_case("SQRT", [fed(np.float32([root_of]))], ["FLOAT32"])
    model = Composition()
    for case in (root, add) if root_is_first else (add, root):
        model.add(case, {})
    verdict = judged(subject_of(faulty.SoundDelegate), model.case("ADD", model.unread()))
    assert verdict == ("" if root_of > 0 else None)
