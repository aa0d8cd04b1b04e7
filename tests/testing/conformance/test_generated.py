"""Generated models say nothing about a delegate where a value is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.schema.options import AddOptions, MulOptions
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


@pytest.mark.parametrize(("factor", "is_right"), [(1 + 2**-23, True), (1.1, False)])
def test_a_huge_value_may_be_off_in_its_last_bit(factor: float, is_right: bool) -> None:
    class Inexact(faulty.SoundKernel):
        def result(self, *node: Any) -> Any:
            y = super().result(*node)
            return np.where(y > 1e30, y * np.float32(factor), y)

    class Delegate(faulty.SoundDelegate):
        kernel = Inexact

        def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> Any:
            return self.claims.check(registration, node, context)

    x = fed(np.float32([1e17, 2]))
    model = Composition()
    model.add(operator_case("ADD", [x, x], ["FLOAT32"], AddOptions()), {})
    (total,) = model.unread()
    model.add(operator_case("MUL", [x, x], ["FLOAT32"], MulOptions()), {0: total})
    verdict = judged(subject_of(Delegate), model.case("ADD", model.unread()))
    assert verdict is not None
    assert (verdict == "") == is_right
