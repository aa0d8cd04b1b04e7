"""The official module and Delegraph's: each test with ``api`` runs with both."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

OFFICIAL, OURS = "ai_edge_litert.compiled_model", "delegraph.compiled_model"


@pytest.fixture(params=[OFFICIAL, OURS])
def api(request: pytest.FixtureRequest) -> Any:
    """One of the two modules."""
    return import_module(request.param)


@pytest.fixture
def ours() -> Any:
    """Delegraph's module, for what the official one does not survive or cannot do."""
    return import_module(OURS)
