"""Recognises files that are not TFLite models, to tell in errors how to convert them.

Only the first and last bytes of a file are compared.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

_HEAD_BYTES = 4096
_TAIL_BYTES = 1 << 20  # bytes at the end, where a zip has its list of files
_NAMES_TOLD = 3

_PICTURE = "pictures are inputs: delegraph run MODEL --input PICTURE"
_UNPACK = "unpack it first"
_SECTION = "give the path of the file, and FILE#SECTION where it has several models"
_FROM_TENSORFLOW = "convert it: delegraph flex convert, of delegraph-flex"
_FROM_TORCH = "convert it with litert-torch"
_WEIGHTS = "it has weights and no graph: export the model itself to TFLite"

_FORMATS: tuple[tuple[bytes, str, str], ...] = (
    (rb"\x89PNG\r\n", "a picture (PNG)", _PICTURE),
    (rb"\xff\xd8\xff", "a picture (JPEG)", _PICTURE),
    (rb"GIF8[79]a", "a picture (GIF)", _PICTURE),
    (rb"BM.{4}\0\0\0\0", "a picture (BMP)", _PICTURE),
    (rb"II\*\0|MM\0\*", "a picture (TIFF)", _PICTURE),
    (rb"RIFF.{4}WEBP", "a picture (WebP)", _PICTURE),
    (rb"RIFF.{4}WAVE", "a sound (WAV)", "sounds are inputs: delegraph run MODEL --input SOUND"),
    (rb"\x93NUMPY", "a NumPy array", "arrays are inputs: delegraph run MODEL --input ARRAY.npy"),
    (rb"\x89HDF\r\n\x1a\n", "a Keras model or other HDF5 file", _FROM_TENSORFLOW),
    (rb"GGUF|lmgg|tjgg", "a GGUF file", _WEIGHTS),
    (rb".{5}\0\0\0\{[\s\"]", "a safetensors file", _WEIGHTS),
    (rb"LITERTLM", "a LiteRT-LM bundle", _SECTION),
    (rb".{4}ORTM", "an ONNX Runtime model", "start from what it was made of"),
    (rb".{4}ET\d\d", "an ExecuTorch program", "start from what it was made of"),
    (rb"\x1f\x8b|BZh|\xfd7zXZ\0|7z\xbc\xaf|\x28\xb5\x2f\xfd", "a compressed file", _UNPACK),
    (rb".{257}ustar", "a tar archive", _UNPACK),
    (rb"\x7fELF|MZ|\xcf\xfa\xed\xfe", "a program or library", "--delegate takes libraries"),
    (rb"\x80[\x02-\x05]", "a Python pickle, as torch.save writes it", _FROM_TORCH),
    (rb"version https://git-lfs", "a Git LFS pointer", "fetch the file itself: git lfs pull"),
    (
        rb"(?i:\s*<(?:!doctype html|html|\?xml))",
        "a web page or XML",
        "download the file itself again",
    ),
    (rb"\x08\x01\x12", "a SavedModel (saved_model.pb)", f"give its folder; {_FROM_TENSORFLOW}"),
    (rb"\x08[\x01-\x1f][\x12\x1a\x22\x2a\x32\x3a\x42]", "an ONNX model", "convert it with onnx2tf"),
    (rb"\x0a[^\n]{1,3}\x0a", "a TensorFlow graph (GraphDef)", _FROM_TENSORFLOW),
    (rb"\s*[\{\[]", "a text file (JSON)", "give the .tflite file"),
    (
        rb"#![^\n]*python|\"{3}|from [\w.]+ import |import \w",
        "a Python file",
        "delegates in Python are given by --delegate-file",
    ),
    (
        rb"(?:[\t\r\n\x20-\x7e]|[\xc2-\xf4][\x80-\xbf]{1,3}){8}",
        "a text file",
        "give the .tflite file",
    ),
)
"""For each format: pattern of a file's first bytes, description, advice. The first match counts."""

_ZIPS: tuple[tuple[bytes, str, str], ...] = (
    (rb"\.tflite", "a zip with a .tflite file in it", _SECTION),
    (rb"model\.weights\.h5", "a Keras model (.keras)", _FROM_TENSORFLOW),
    (rb"constants\.pkl|archive_format", "a TorchScript or torch.export model", _FROM_TORCH),
    (rb"data\.pkl", "weights of PyTorch", f"start from the model they are for; {_FROM_TORCH}"),
    (rb"\.npy", "NumPy arrays (.npz)", "arrays are inputs: delegraph run MODEL --input FILE.npz"),
    (rb"", "a zip", _UNPACK),
)
"""For each kind of zip: pattern of names in it, description, advice. The first match counts."""


def other_format(content: NDArray[np.uint8]) -> str:
    """Text with the format of *content* and advice; empty for an unknown format.

    >>> other_format(np.frombuffer(b"GGUF....", np.uint8))
    'it is a GGUF file, no TFLite model: it has weights and no graph: export the model ...'

    Args:
        content: the bytes of a file, ``[bytes], uint8``.
    """
    head = content[:_HEAD_BYTES].tobytes()
    formats, searched = _FORMATS, head
    if head.startswith(b"PK\x03\x04"):
        formats, searched = _ZIPS, head + content[-_TAIL_BYTES:].tobytes()
    for pattern, what, advice in formats:
        find = re.search if formats is _ZIPS else re.match
        if find(pattern, searched, re.DOTALL):
            return _sentence(what, advice)
    return ""


def other_folder(path: str | os.PathLike[str]) -> str:
    """Text with the kind of the folder *path*, and advice on getting a model from it."""
    names = sorted(os.listdir(path))
    if "saved_model.pb" in names:
        return _sentence("a SavedModel", _FROM_TENSORFLOW)
    if "Manifest.json" in names and PurePath(path).suffix == ".mlpackage":
        return _sentence("a Core ML model", "start from what it was made of")
    models = [name for name in names if name.endswith((".tflite", ".lite"))]
    if models:
        more = ", ..." if len(models) > _NAMES_TOLD else ""
        return _sentence("a folder", f"it has {', '.join(models[:_NAMES_TOLD])}{more}")
    return _sentence("a folder", "give the .tflite file")


def _sentence(what: str, advice: str) -> str:
    return f"it is {what}, no TFLite model: {advice}"
