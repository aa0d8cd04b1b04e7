"""Zips that are not what they seem."""

from __future__ import annotations

import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from delegraph.bundles.bundle import MAX_SECTIONS
from delegraph.bundles.zip_archive import read_zip
from delegraph.errors import MalformedModelError, ModelError
from delegraph.graph.loader import load_model
from support.bundles import FLOAT, INT8, entry, file_of, zipped

TWO = zipped({"a": INT8, "b": FLOAT})
PACKED = zipped({"a": INT8}, zipfile.ZIP_DEFLATED)


def test_members_lie_where_zipfile_reads_them() -> None:
    content = zipped({"a": INT8, "sub/b": FLOAT})
    bundle = read_zip(np.frombuffer(content, np.uint8))
    assert [s.name for s in bundle.sections] == ["a", "sub/b"]
    assert [content[s.begin : s.end] for s in bundle.sections] == [INT8, FLOAT]


def test_large_archives_have_64_bit_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    content = zipped({"a": INT8, "b": FLOAT})
    monkeypatch.undo()
    assert b"PK\x06\x06" in content
    bundle = read_zip(np.frombuffer(content, np.uint8))
    assert [content[s.begin : s.end] for s in bundle.sections] == [INT8, FLOAT]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TWO[:-30], "the zip is damaged"),
        (TWO[: len(TWO) // 2], "the zip is damaged: File is not a zip file"),
        (entry(TWO, "b", at=0), "'b' of the zip has the header of another file at byte 0"),
        (entry(TWO, "b", at=len(TWO)), "outside of the zip"),
        (entry(TWO, "b", at=7), "has the header of another file at byte 7"),
        (entry(TWO, "a", packed=len(TWO), size=len(TWO)), "runs past the end of the zip's files"),
        (entry(TWO, "a", packed=100_000, size=100_000), "'a' and 'b' of the zip overlap"),
        (entry(TWO, "a", size=9), "is stored uncompressed, and its two sizes differ"),
        (entry(TWO, "a", method=8), "has the header of another file at byte 0"),
        (entry(PACKED, "a", size=9), "section 0 .* has more than its 9 bytes"),
        (entry(PACKED, "a", size=100_000), "is cut off: 55928 of 100000 bytes"),
        (entry(PACKED, "a", crc=9), "its checksum differs"),
        (entry(PACKED, "a", size=0xFFFFFF0), "more than 64 times the file"),
        (zipped({"/etc/passwd": INT8}), "'/etc/passwd', which is no name inside of a zip"),
        (zipped({"x/../../m": INT8}), "no name inside of a zip"),
        (zipped({"C:m": INT8}), "no name inside of a zip"),
        (zipped({"..\\m": INT8}), "no name inside of a zip"),
    ],
)
def test_damaged_archives_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = file_of(tmp_path, content)
    with pytest.raises(MalformedModelError, match=message):
        load_model(f"{path}#a" if b"a" in content[:40] else path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_deflated_members_are_inflated(tmp_path: Path, method: int) -> None:
    path = file_of(tmp_path, zipped({"m": INT8}, method))
    with pytest.raises(MalformedModelError, match=rf"packed in an unknown way \({method}\)"):
        load_model(f"{path}#m")


def test_encrypted_members_are_not_read(tmp_path: Path) -> None:
    content = bytearray(zipped({"m": INT8}))
    for at in (6, content.rfind(b"PK\x01\x02") + 8):
        struct.pack_into("<H", content, at, 1)
    with pytest.raises(MalformedModelError, match="is encrypted"):
        load_model(f"{file_of(tmp_path, bytes(content))}#m")


def test_an_archive_has_a_limited_number_of_files(tmp_path: Path) -> None:
    content = zipped({str(number): b"" for number in range(MAX_SECTIONS + 1)})
    with pytest.raises(MalformedModelError, match="has 4097 files, more than 4096"):
        load_model(file_of(tmp_path, content))
    long = zipped({"x" * 300 + str(number): b"" for number in range(MAX_SECTIONS)})
    with pytest.raises(MalformedModelError, match=r"its list of files takes .* bytes"):
        load_model(file_of(tmp_path, long))


def test_members_of_one_name_are_addressed_by_number(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = tmp_path / "twice.task"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("m", INT8)
            archive.writestr("m", FLOAT)
    with pytest.raises(ModelError, match="'m' names sections 0, 1"):
        load_model(f"{path}#m")
    assert load_model(f"{path}#1").content.tobytes() == FLOAT
