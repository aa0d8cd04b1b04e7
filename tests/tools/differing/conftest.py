from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.testing import graph_model
from support.layer_models import CHAIN, file


@pytest.fixture
def chain(tmp_path: Path) -> str:
    """y = ((x + x) * x + x) + (x + x) on ``[4], float32``."""
    return file(tmp_path, graph_model(CHAIN, inputs="x", outputs="y"))
