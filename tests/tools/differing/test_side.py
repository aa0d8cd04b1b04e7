"""One of two compared set-ups, with its interpreter."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from delegraph.tools.differing.side import Side
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
