from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.testing import graph_model
from delegraph.tools import Setup
from support.layer_models import CHAIN, WrongProduct, file, setup_of
from support.seeded_faults import with_kernel


@pytest.fixture
def chain(tmp_path: Path) -> str:
    """y = ((x + x) * x + x) + (x + x) on ``[4], float32``."""
    return file(tmp_path, graph_model(CHAIN, inputs="x", outputs="y"))


@pytest.fixture
def wrong(chain: str) -> Setup:
    """The chain with a delegate for all of it that is wrong in node 1, MUL."""
    return setup_of(chain, "delegraph", with_kernel(WrongProduct)())
