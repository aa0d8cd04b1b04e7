"""One of two compared set-ups, with its interpreter."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from delegraph.tools.differing.side import Side, explained
from delegraph.tools.setup import Setup


def test_no_values_are_kept_that_were_given_for_one_computation(chain: str) -> None:
    with ExitStack() as stack:
        side = Side(stack, Setup(chain, delegates=("none",)), None)
        (entry,) = side.inputs
        side.compute_on([np.ones(entry["shape"], np.float32)])
        assert side.values == []
        with pytest.raises(ValueError, match="Got value of type FLOAT64"):
            side.compute_on([np.ones(entry["shape"], np.float64)])
        assert side.values == []


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (
            "X (1 node): delegate 'flex' is there for it and was not applied: delegates=['flex']",
            'applied; for both sides: -d flex --reference "-d flex --no-default-delegates"',
        ),
        (
            "Select TensorFlow op(s), included in the given model, is(are) not supported",
            '-d flex --reference "-d flex"',
        ),
        ("Node number 24 (TfLiteXNNPackDelegate) failed", "-d none turns off on that side"),
        ("x is wrong", "x is wrong"),
    ],
)
def test_an_error_names_options_that_avoid_it(text: str, advice: str) -> None:
    assert explained(text).endswith(advice)
