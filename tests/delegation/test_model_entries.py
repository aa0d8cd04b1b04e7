"""What a delegate keeps in a model file, as the delegate sees it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delegraph.delegation import ModelEntries
from delegraph.errors import ArgumentError
from delegraph.graph.loader import load_model, parse_model
from delegraph.graph.model import Model
from delegraph.graph.model_entries import ALIGNMENT, with_entries
from support.by_name import sines

MODEL = sines()


def kept(content: bytes) -> bytes:
    """Return a model with an entry of a delegate."""
    written: dict[str, bytes] = {}
    entries = ModelEntries(parse_model(MODEL), "engine", written)
    assert entries.keep("1", "key", content)
    return with_entries(MODEL, written)


def opened(model: Model, namespace: str = "engine") -> ModelEntries:
    return ModelEntries(model, namespace, None)


def test_what_was_kept_is_found_by_version_and_key() -> None:
    entries = opened(parse_model(kept(b"content")))
    assert entries
    assert entries.versions == {"1"}
    assert entries.read("1", "key") == bytes(entries.map("1", "key") or b"") == b"content"
    for version, key in (("2", "key"), ("1", "other")):
        assert entries.map(version, key) is None
        assert entries.read(version, key) is None
    assert not opened(parse_model(kept(b"content")), "eng")
    assert not opened(parse_model(MODEL))


def test_content_is_read_only_and_aligned_mapped_or_not(tmp_path: Path) -> None:
    content, path = bytes(range(256)) * 16, tmp_path / "model.tflite"
    path.write_bytes(kept(content))
    for model in (load_model(path), parse_model(kept(content))):
        found = opened(model).map("1", "key")
        assert found == content
        assert found.readonly
        address = np.frombuffer(found, np.uint8).__array_interface__["data"][0]
        assert address % ALIGNMENT == 0
        first = model.content.__array_interface__["data"][0]
        assert (first < address < first + len(model.content)) == (first % ALIGNMENT == 0)


def test_damaged_content_is_not_read() -> None:
    data = bytearray(kept(b"content"))
    data[data.index(b"content")] ^= 1
    assert opened(parse_model(bytes(data))).read("1", "key") is None


def test_while_a_model_is_compiled_there_is_no_content() -> None:
    written: dict[str, bytes] = {}
    entries = ModelEntries(parse_model(kept(b"content")), "engine", written)
    assert entries.is_writing
    assert entries.map("1", "key") is None
    assert not opened(parse_model(MODEL)).keep("1", "key", b"content")


def test_names_are_checked() -> None:
    with pytest.raises(ArgumentError, match="namespace of entries"):
        opened(parse_model(MODEL), "a/b")
    with pytest.raises(ArgumentError, match="version of entries"):
        opened(parse_model(MODEL)).map("../1", "key")
