"""The immutable, typed view of a model."""

from __future__ import annotations

from delegraph.graph.loader import load_model, parse_model

__all__ = ["load_model", "parse_model"]
