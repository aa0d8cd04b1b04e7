"""Digests of model files: remembered while a file stays as it is, and only then."""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from delegraph.delegation import content_digest as module
from delegraph.delegation.blob_cache import BlobCache
from delegraph.delegation.content_digest import content_digest
from delegraph.graph import load_model, model_files

MODEL = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"


@pytest.fixture(autouse=True)
def small_files_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST", 0)


def digest(path: Path, folder: Path) -> str:
    return content_digest(load_model(path).content, folder)


def copy(folder: Path, byte: int = 0) -> Path:
    """Return a copy of a model with another last byte, which was changed long ago."""
    path = folder / "model.tflite"
    path.write_bytes(MODEL.read_bytes() + bytes([byte]))
    return path


def kept(folder: Path) -> int:
    return len(BlobCache(module.NAMESPACE, "1", folder).entries())


def test_a_digest_is_that_of_the_content_and_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "SETTLED", -1.0)
    path, cache = copy(tmp_path), tmp_path / "cache"
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest(path, cache) == expected
    monkeypatch.setattr(module, "hex_digest", None)  # is not computed
    assert digest(path, cache) == expected


def test_a_changed_file_has_another_digest_though_its_time_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "SETTLED", -1.0)
    path, cache = copy(tmp_path), tmp_path / "cache"
    before, status = digest(path, cache), path.stat()
    while time.time_ns() < status.st_ctime_ns + 20_000_000:  # times of files are coarse
        pass
    os.utime(copy(tmp_path, 1), ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert digest(path, cache) != before


def test_a_file_that_was_just_changed_is_hashed_each_time(tmp_path: Path) -> None:
    digest(copy(tmp_path), tmp_path / "cache")
    assert kept(tmp_path / "cache") == 0


def test_content_that_is_no_file_is_hashed_each_time(tmp_path: Path) -> None:
    content = np.arange(10, dtype=np.uint8)
    assert content_digest(content, tmp_path) == hashlib.sha256(content.data).hexdigest()
    assert kept(tmp_path) == 0


def test_sections_of_a_bundle_are_remembered_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "SETTLED", -1.0)
    path, cache = tmp_path / "x.task", tmp_path / "cache"
    other = MODEL.with_stem("digits_float")
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(MODEL, "a")
        archive.write(other, "b")
    for section, file in (("a", MODEL), ("b", other)):
        expected = hashlib.sha256(file.read_bytes()).hexdigest()
        assert content_digest(load_model(f"{path}#{section}").content, cache) == expected
    assert kept(cache) == 2
    monkeypatch.setattr(module, "hex_digest", None)  # is not computed
    for section in ("a", "b"):
        assert content_digest(load_model(f"{path}#{section}").content, cache)


def test_the_digest_of_a_part_is_another_and_remembered_as_well(tmp_path: Path) -> None:
    content = load_model(MODEL).content
    for _ in range(2):
        for size in (None, len(content), 1000):
            expected = hashlib.sha256(content[:size].data).hexdigest()
            assert content_digest(content[:size], tmp_path) == expected
