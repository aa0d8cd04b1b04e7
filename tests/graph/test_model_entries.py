"""Entries in a model file: the model stays as it is, and damage leaves a model without entries."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from delegraph.errors import MalformedModelError
from delegraph.graph import model_entries
from delegraph.graph.associated_files import AssociatedFiles, with_associated_files
from delegraph.graph.loader import load_model, parse_model
from delegraph.graph.model_entries import ALIGNMENT, find_entries, with_entries
from support.by_name import sines

MODEL = sines()

ENTRIES = {"engine/1/a": b"content" * 9, "engine/2/b": b"", "other/1/c": bytes(range(256))}

FILE = with_entries(MODEL, ENTRIES)


def found(content: bytes) -> dict[str, bytes]:
    """Return the entries of a file."""
    entries = find_entries(np.frombuffer(content, np.uint8))
    places = {} if entries is None else entries.places
    return {name: content[at : at + length] for name, (at, length) in places.items()}


def test_entries_follow_an_unchanged_model_at_aligned_places(tmp_path: Path) -> None:
    assert FILE.startswith(MODEL)
    assert found(FILE) == ENTRIES
    path = tmp_path / "model.tflite"
    path.write_bytes(FILE)
    entries = load_model(path).entries
    assert entries is not None
    assert entries.model_bytes == len(MODEL)
    assert all(place % ALIGNMENT == 0 for place, _ in entries.places.values())
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {n: archive.read(f"delegraph/{n}") for n in ENTRIES} == ENTRIES


def test_a_model_without_entries_has_none() -> None:
    stream = io.BytesIO(MODEL)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("labels.txt", "one\ntwo\n")
    for content in (MODEL, stream.getvalue()):
        assert parse_model(content).entries is None


def test_labels_stay_beside_entries() -> None:
    stream = io.BytesIO(MODEL)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("labels.txt", "one\ntwo\n")
    labelled = np.frombuffer(stream.getvalue(), np.uint8)
    both = with_associated_files(FILE, labelled)
    assert found(both) == ENTRIES
    files = AssociatedFiles(np.frombuffer(both, np.uint8))
    assert files.read("labels.txt") == b"one\ntwo\n"
    assert files.model_bytes == len(MODEL)
    alone = with_associated_files(MODEL, np.frombuffer(both, np.uint8))
    assert list(AssociatedFiles(np.frombuffer(alone, np.uint8)).sizes) == ["labels.txt"]


def test_the_model_is_read_from_its_own_bytes_alone() -> None:
    data = bytearray(FILE)
    data[0:4] = (len(MODEL) + 64).to_bytes(4, "little")  # the root table lies among the entries
    with pytest.raises(MalformedModelError):
        parse_model(bytes(data))


def test_a_damaged_zip_has_no_entries_and_never_others() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        data = bytearray(FILE)
        for at in rng.integers(len(MODEL), len(FILE), rng.integers(1, 4)):
            data[at] ^= 1 << int(rng.integers(8))
        for content in found(bytes(data)).values():
            assert len(content) <= len(FILE)
    for size in range(len(MODEL), len(FILE)):
        assert not found(FILE[:size])
    assert not found(FILE + b"\0")


def test_compressed_entries_count_as_missing() -> None:
    stream = io.BytesIO(MODEL)
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("delegraph/engine/1/a", bytes(1000))
    assert found(stream.getvalue()) == {}


def test_a_file_beyond_the_offsets_of_a_zip_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_entries, "MAX_FILE", len(FILE))
    with pytest.raises(MalformedModelError, match="over 4 GB"):
        with_entries(MODEL, ENTRIES)
