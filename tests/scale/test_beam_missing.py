"""What is said where Apache Beam is missing."""

from __future__ import annotations

import importlib
import sys

import pytest


def test_a_missing_beam_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "delegraph.scale.beam", raising=False)
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.setitem(sys.modules, "apache_beam.metrics", None)
    with pytest.raises(ImportError, match=r"pip install 'delegraph\[beam\]'"):
        importlib.import_module("delegraph.scale.beam")
