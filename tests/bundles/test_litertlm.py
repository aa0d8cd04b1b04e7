"""``.litertlm`` files: made by ``litert-lm-builder``, and damaged."""

from __future__ import annotations

import io
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.bundles.litertlm import offset_positions, read_litertlm
from delegraph.errors import MalformedModelError, ModelError
from delegraph.graph.loader import load_model
from delegraph.graph.model_files import bundle_at
from delegraph.schema import litertlm as tables
from support.bundles import (
    BLOCK,
    FLOAT,
    GENERIC,
    HF_TOKENIZER,
    INT8,
    MODEL,
    MODELS,
    facts,
    file_of,
    litertlm,
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file by the official builder, with values of all types."""
    builder: Any = pytest.importorskip("litert_lm_builder.litertlm_builder")
    folder = tmp_path_factory.mktemp("built")
    made = builder.LitertLmFileBuilder()
    for number, dtype in enumerate(builder.DType):
        value: Any = 100 + number
        if dtype in (builder.DType.FLOAT32, builder.DType.DOUBLE):
            value = 0.25
        elif dtype is builder.DType.BOOL:
            value = True
        elif dtype is builder.DType.STRING:
            value = "me"
        made.add_system_metadata(builder.Metadata(dtype.value, value, dtype))
    int8, float_ = MODELS / "digits_int8.tflite", MODELS / "digits_float.tflite"
    made.add_tflite_model(str(int8), builder.TfLiteModelType.PREFILL_DECODE)
    made.add_tflite_model(str(float_), builder.TfLiteModelType.EMBEDDER, backend_constraint="cpu")
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text('{"model": {"vocab": {"a": 0}}}')
    made.add_hf_tokenizer(str(tokenizer))
    made.add_generic_binary_data(str(tokenizer))
    path = folder / "built.litertlm"
    with open(path, "wb") as stream:
        made.build(stream)
    return path


def test_all_that_the_builder_writes_is_read(built: Path) -> None:
    bundle = bundle_at(built)
    assert bundle is not None
    numbers = dict(list(bundle.metadata.items())[:12])
    assert numbers == {
        "int8": 100, "int16": 101, "int32": 102, "int64": 103, "uint8": 104, "uint16": 105,
        "uint32": 106, "uint64": 107, "float32": 0.25, "double": 0.25, "bool": True, "string": "me",
    }  # fmt: skip
    assert [section.type for section in bundle.sections] == [
        "TFLiteModel", "TFLiteModel", "HF_Tokenizer_Zlib", "GenericBinaryData",
    ]  # fmt: skip
    assert bundle.sections[1].items["backend_constraint"] == "cpu"
    assert bundle.sections[2].bytes == bundle.sections[3].bytes == 30


def test_models_are_those_that_the_builder_unpacks(built: Path, tmp_path: Path) -> None:
    peek: Any = pytest.importorskip("litert_lm_builder.litertlm_peek")
    peek.peek_litertlm_file(str(built), str(tmp_path), io.StringIO())
    for number, name in enumerate(("tf_lite_prefill_decode", "tf_lite_embedder")):
        (unpacked,) = tmp_path.glob(f"Section{number}_*")
        for section in (number, name, name.removeprefix("tf_lite_")):
            assert load_model(f"{built}#{section}").content.tobytes() == unpacked.read_bytes()


def test_unknown_keys_and_values_of_unknown_types_are_kept() -> None:
    system = (*facts(another="x"), tables.KeyValuePair(key="from later"))
    content = litertlm([(99, b"new", "")], system=system)
    bundle = read_litertlm(np.frombuffer(content, np.uint8))
    assert bundle.metadata == {"another": "x", "from later": None}
    assert bundle.sections[0].type == "type 99"


ONE = [(MODEL, INT8, "")]
TWO = [(MODEL, INT8, "a"), (MODEL, FLOAT, "b")]
SECOND = BLOCK + 4 * BLOCK
SIZE = len(litertlm(TWO))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"LITERTLM", "bundle of 8 bytes has no header"),
        (litertlm(ONE, major=2), r"of version 2\.0\.0, expected 1"),
        (litertlm(ONE, header_end=31), "the header ends at byte 31, expected 33 to"),
        (litertlm(ONE, header_end=2**63), "the header ends at byte 9223372036854775808"),
        (litertlm(ONE)[:60], "the header ends at byte"),
        (litertlm(ONE, header_end=40), "Flatbuffer"),
        (litertlm([*ONE, (GENERIC, bytes(2 << 20), "")], header_end=2 << 20), "more than 1048576"),
        (litertlm(TWO, [(BLOCK, SECOND), (SECOND - 1, SIZE)]), "sections 0 and 1 overlap"),
        (litertlm(TWO, [(BLOCK, SECOND), (SECOND, SIZE + 1)]), "section 1 is bytes"),
        (litertlm(TWO, [(BLOCK, SECOND), (SECOND, SECOND - 1)]), "section 1 is bytes"),
        (litertlm(TWO, [(40, SECOND), (SECOND, SIZE)]), "section 0 is bytes 40 to"),
        (litertlm(TWO, [(BLOCK, SECOND), (2**64 - 1, 2**64 - 1)]), "section 1 is bytes"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(MalformedModelError, match=message):
        load_model(f"{file_of(tmp_path, content)}#0")


def test_a_section_that_is_no_model_says_so(tmp_path: Path) -> None:
    path = file_of(tmp_path, litertlm([(MODEL, b"not a model at all", "")]))
    with pytest.raises(MalformedModelError, match="has model identifier"):
        load_model(f"{path}#0")


@pytest.mark.parametrize("said", [1000, 1 << 40])
def test_zlib_bombs_are_not_inflated(tmp_path: Path, said: int) -> None:
    bomb = struct.pack("<Q", said) + zlib.compress(bytes(50 << 20))
    path = file_of(tmp_path, litertlm([(HF_TOKENIZER, bomb, "")]))
    with pytest.raises(ModelError, match=r"has more than its 1000 bytes|takes more than"):
        load_model(f"{path}#0")


def test_many_sections_are_refused_at_once(tmp_path: Path) -> None:
    many = litertlm([(GENERIC, b"", "")] * 5000)
    start = time.process_time()
    with pytest.raises(MalformedModelError, match="5000 sections, more than 4096"):
        load_model(file_of(tmp_path, many))
    assert time.process_time() - start < 5


def test_the_places_of_sections_are_where_the_file_has_them() -> None:
    content = np.frombuffer(litertlm(TWO), np.uint8)
    found = [
        tuple(struct.unpack_from("<Q", content, at)[0] for at in pair)
        for pair in offset_positions(content)
    ]
    assert found == [(s.begin, s.end) for s in read_litertlm(content).sections]
