"""The corpus of real models that may lie beside the repository, as ``../shared/corpus``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"

needs_corpus = pytest.mark.skipif(
    not (CORPUS / "manifest.json").is_file(), reason=f"there is no corpus in {CORPUS}"
)


def corpus_rows() -> list[dict[str, Any]]:
    """Return the manifest's rows; none when the corpus is absent."""
    manifest = CORPUS / "manifest.json"
    if not manifest.is_file():
        return []
    rows: list[dict[str, Any]] = json.loads(manifest.read_text())["models"]
    return rows


def corpus_file(name: str) -> Path:
    """Return the path of the model called *name*."""
    return CORPUS / "models" / f"{name}.tflite"
