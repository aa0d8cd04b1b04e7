from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import ArgumentError, MalformedModelError
from delegraph.graph.loader import load_model, parse_model
from delegraph.graph.other_formats import other_format
from delegraph.testing import one_op_model, tensor


def zip_of(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name in names:
            packed.writestr(name, b"?" * 9000)
    return file.getvalue()


FORMATS = [
    (b"\x89PNG\r\n\x1a\n" + b"\0" * 9, r"a picture \(PNG\), no TFLite model: pictures are inputs"),
    (b"\xff\xd8\xff\xe0" + b"\0" * 9, r"a picture \(JPEG\)"),
    (b"RIFF\x24\0\0\0WAVEfmt ", r"a sound \(WAV\), .*sounds are inputs"),
    (b"\x89HDF\r\n\x1a\n" + b"\0" * 9, "a Keras model or other HDF5 .* delegraph flex convert"),
    (b"GGUF\x03\0\0\0", "a GGUF file, .* it has weights and no graph"),
    (b'\x40\0\0\0\0\0\0\0{"w":{"dtype":"F32"}}', "a safetensors file"),
    (b"\x08\x08\x12\x07pytorch\x1a\x03", "an ONNX model, .*onnx2tf"),
    (b"\x08\x0a:\x05\x0a\x03", "an ONNX model"),
    (b"\x08\x01\x12\xf0\x10\x0a\x05", "a SavedModel .*give its folder"),
    (b"\x0a\x1d\x0a\x05input\x12\x0bPlaceholder", "a TensorFlow graph"),
    (b"\x80\x02\x8a\x0al\xfc\x9c", "a Python pickle"),
    (b"\x93NUMPY\x01\0v\0", "a NumPy array"),
    (b"\x1f\x8b\x08\0\0\0\0\0", "a compressed file, .* unpack it first"),
    (b"\x7fELF\x02\x01\x01\0", "a program or library, .*--delegate takes libraries"),
    (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer, .*git lfs pull"),
    (b"\n<!DOCTYPE html><html>", "a web page or XML"),
    (b'{"format": "layers-model"}', r"a text file \(JSON\)"),
    (b"# My model\n\nIt finds cats.", "a text file, .*give the .tflite file"),
    ("Это модель".encode(), "a text file"),
    (b"import numpy as np\n", "a Python file, .*--delegate-file"),
    (zip_of("archive/data.pkl", "archive/code/x.py", "archive/constants.pkl"), "a TorchScript"),
    (zip_of("archive/data.pkl", "archive/data/0"), "weights of PyTorch"),
    (zip_of("config.json", "model.weights.h5"), r"a Keras model \(.keras\)"),
    (zip_of("hand/detector.tflite"), "a zip with a .tflite file in it"),
    (zip_of("x.npy"), r"NumPy arrays \(.npz\)"),
    (zip_of("notes.txt"), "a zip, "),
]


@pytest.mark.parametrize(("content", "what"), FORMATS)
def test_another_format_is_named_with_what_to_do(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "model.tflite"
    content += bytes(9)
    path.write_bytes(content)
    official = "Model provided has model identifier"
    with pytest.raises(MalformedModelError, match=f"model.tflite: it is {what}.*{official}"):
        load_model(path)
    with pytest.raises(ValueError, match=f"^it is {what}"):
        Interpreter(model_content=content)


def test_an_identifier_that_is_no_text_is_shown_on_one_line() -> None:
    with pytest.raises(MalformedModelError, match=r"has model identifier '\\r\\n\\x1a\\xff', sh"):
        parse_model(b"abcd\r\n\x1a\xffefgh")


def test_what_is_not_known_keeps_the_official_words() -> None:
    for content in (b"no\1model at all", b"\0" * 100):
        with pytest.raises(MalformedModelError, match=r"^Model provided has model identifier"):
            parse_model(content)


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\x89PNG", b"GGUF", b"\x80\x02\0\0"])
def test_a_damaged_model_is_not_taken_for_something_else(start: bytes) -> None:
    model = one_op_model("ADD", [tensor((2,)), tensor((2,))], [tensor((2,))])
    with pytest.raises(MalformedModelError) as caught:
        parse_model(start + model[4:])
    assert "no TFLite model" not in str(caught.value)


def test_no_bytes_are_too_few() -> None:
    for length in range(12):
        assert other_format(np.zeros(length, np.uint8)) == ""


@pytest.mark.parametrize(
    ("files", "what"),
    [
        (["saved_model.pb", "fingerprint.pb"], "a SavedModel, .* delegraph flex convert"),
        (["b.tflite", "a.tflite", "x"], "a folder, no TFLite model: it has a.tflite, b.tflite$"),
        ([], "a folder, no TFLite model: give the .tflite file"),
    ],
)
def test_a_folder_is_named_with_what_to_do(tmp_path: Path, files: list[str], what: str) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(ArgumentError, match=f"Could not open '.*': it is {what}"):
        load_model(tmp_path)
