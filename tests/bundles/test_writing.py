"""Bundles in which a model was replaced."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.bundles.writing import write_bundle
from delegraph.errors import SectionError
from delegraph.graph.loader import load_model
from delegraph.graph.model_files import bundle_at, bundles_of
from support.bundles import BLOCK, FLOAT, GENERIC, INT8, MODEL, facts, file_of, litertlm, zipped


def replaced(address: str, model: bytes, out: Path) -> Path:
    """Write a bundle with another model at *address* and return the path."""
    with open(out, "w+b") as stream:
        write_bundle(stream, bundles_of(address), np.frombuffer(model, np.uint8))
    return out


@pytest.mark.parametrize(("first", "second"), [(INT8, FLOAT), (FLOAT, INT8), (INT8, INT8[:100])])
def test_other_sections_of_a_litertlm_file_stay(
    tmp_path: Path, first: bytes, second: bytes
) -> None:
    sections = [(GENERIC, b"one", ""), (MODEL, first, "a"), (MODEL, FLOAT, "b"), (GENERIC, b"", "")]
    path = file_of(tmp_path, litertlm(sections, system=facts(author="me", later="x")))
    out = replaced(f"{path}#a", second, tmp_path / "out.litertlm")
    sections[1] = (MODEL, second, "a")
    assert out.read_bytes() == litertlm(sections, system=facts(author="me", later="x"))
    bundle = bundle_at(out)
    assert bundle is not None
    assert all(section.begin % BLOCK == 0 for section in bundle.sections)


def test_the_builder_reads_what_was_written(tmp_path: Path) -> None:
    builder: Any = pytest.importorskip("litert_lm_builder.litertlm_builder")
    peek: Any = pytest.importorskip("litert_lm_builder.litertlm_peek")
    made = builder.LitertLmFileBuilder()
    made.add_system_metadata(builder.Metadata("author", "me", builder.DType.STRING))
    int8, other = file_of(tmp_path, INT8, "m.tflite"), file_of(tmp_path, b"other", "other.bin")
    made.add_tflite_model(str(int8), builder.TfLiteModelType.PREFILL_DECODE)
    made.add_generic_binary_data(str(other))
    with open(tmp_path / "built.litertlm", "wb") as stream:
        made.build(stream)
    out = replaced(f"{tmp_path / 'built.litertlm'}#0", FLOAT, tmp_path / "out.litertlm")
    text = io.StringIO()
    peek.peek_litertlm_file(str(out), str(tmp_path / "parts"), text)
    assert "author, Value (String): me" in text.getvalue()
    parts = [path.read_bytes() for path in sorted((tmp_path / "parts").glob("Section*"))]
    assert parts == [FLOAT, b"other"]


def test_other_members_of_a_zip_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.task"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("first", b"1" * 37)
        info = zipfile.ZipInfo("aligned", (2020, 2, 2, 2, 2, 2))
        info.extra = b"\x35\xd9" + (d := -(archive.fp.tell() + 41) % 64).to_bytes(2, "little")  # type: ignore[union-attr]  # it is open
        info.extra += bytes(d)
        archive.writestr(info, FLOAT)
        archive.writestr("m\u00f6del", INT8)
        archive.writestr("packed", b"x" * 999, zipfile.ZIP_DEFLATED)
    before, out = bundle_at(path), replaced(f"{path}#m\u00f6del", FLOAT, tmp_path / "out.task")
    after = bundle_at(out)
    assert before is not None
    assert after is not None
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out) as new:
        assert new.testzip() is None
        for member, again in zip(old.infolist(), new.infolist(), strict=True):
            kept = ("filename", "compress_type", "date_time", "external_attr")
            assert [getattr(again, k) for k in kept] == [getattr(member, k) for k in kept]
            expected = FLOAT if member.filename == "m\u00f6del" else old.read(member)
            assert new.read(again) == expected
    assert before.sections[1].begin % 64 == after.sections[1].begin % 64 == 0
    assert after.sections[2].begin % 64 == 0


def test_a_packed_model_becomes_a_stored_one_and_can_be_mapped(tmp_path: Path) -> None:
    path = file_of(tmp_path, zipped({"m": INT8}, zipfile.ZIP_DEFLATED))
    out = replaced(f"{path}#m", FLOAT, tmp_path / "out.zip")
    with zipfile.ZipFile(out) as archive:
        assert archive.getinfo("m").compress_type == zipfile.ZIP_STORED
    assert load_model(out).content.tobytes() == FLOAT


def test_models_above_two_gigabytes_keep_their_alignment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(tmp_path, zipped({"x": b"1", "m": INT8}))
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    out = replaced(f"{path}#m", FLOAT, tmp_path / "out.zip")
    monkeypatch.undo()
    bundle = bundle_at(out)
    assert bundle is not None
    assert bundle.sections[1].begin % 64 == 0
    assert load_model(f"{out}#m").content.tobytes() == FLOAT


def test_a_model_of_a_bundle_in_a_bundle_is_replaced(tmp_path: Path) -> None:
    inner = zipped({"m": INT8, "n": FLOAT})
    path = file_of(tmp_path, litertlm([(GENERIC, inner, ""), (MODEL, INT8, "a")]))
    out = replaced(f"{path}#0#m", FLOAT, tmp_path / "out.litertlm")
    for address, expected in (("#0#m", FLOAT), ("#0#n", FLOAT), ("#a", INT8)):
        assert load_model(f"{out}{address}").content.tobytes() == expected


def test_a_file_after_a_model_is_not_replaced(tmp_path: Path) -> None:
    path = file_of(tmp_path, INT8 + zipped({"inner": FLOAT}), "m.tflite")
    with pytest.raises(SectionError, match="stands after a model, and cannot be replaced"):
        replaced(f"{path}#inner", INT8, tmp_path / "out.tflite")
