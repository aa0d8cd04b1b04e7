"""Reads ``ground_truth.pb``, which the official tool's script makes from COCO's annotations.

The file is one message of Protocol Buffers, ``ObjectDetectionGroundTruth``. It has only eleven
fields, in four kinds of messages. So this module reads the encoding itself, without a package for
Protocol Buffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.ground_truth import GroundTruth, TruePicture
from delegraph.tools.whole_file import read_whole

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # how a field is encoded

# Numbers of fields, and how each is encoded.
_RESULTS = {"detection_results": (1, _BYTES)}
_PICTURE = {"objects": (1, _BYTES), "image_name": (2, _BYTES), "image_id": (3, _VARINT)}
_OBJECT = {"class_id": (1, _VARINT), "bounding_box": (2, _BYTES)}
_BOX = {
    "normalized_top": (1, _FIXED32),
    "normalized_bottom": (2, _FIXED32),
    "normalized_left": (3, _FIXED32),
    "normalized_right": (4, _FIXED32),
}
_SIDES = ("normalized_top", "normalized_left", "normalized_bottom", "normalized_right")


class _WrongBytes(Exception):
    """Error: the bytes do not follow the protocol buffer encoding."""


def read_ground_truth_proto(path: str) -> GroundTruth:
    """Return the objects of the ``ground_truth.pb`` at *path*.

    The file has no picture sizes, areas or crowds, so COCO's definition needs the ``.json`` file.

    Raises:
        ArgumentError: the file cannot be read, or does not hold ground truth; the message names the
            entry.

    Source:
        ObjectDetectionGroundTruth, tflite/tools/evaluation/proto/evaluation_stages.proto;
        https://protobuf.dev/programming-guides/encoding/
    """
    data = read_whole(path)
    place = repr(path)
    pictures: dict[str, TruePicture] = {}
    try:
        for i, content in enumerate(_all(data, "detection_results", _RESULTS)):
            place = f"{path!r}: detection_results[{i}]"
            picture = _picture(content)
            if picture.name in pictures:
                raise _WrongBytes(f"image_name {picture.name!r} occurs before")
            pictures[picture.name] = picture
    except _WrongBytes as error:
        raise ArgumentError(f"{place}: {error}; is it an ObjectDetectionGroundTruth?") from error
    return GroundTruth(path, tuple(pictures[name] for name in sorted(pictures)))


def _picture(data: bytes) -> TruePicture:
    try:
        name = _one(data, "image_name", _PICTURE, b"").decode()
    except UnicodeDecodeError as error:
        raise _WrongBytes("image_name is no text") from error
    if not name:
        raise _WrongBytes("expected image_name, found none")
    objects = list(_all(data, "objects", _PICTURE))
    boxes = [_sides(_one(content, "bounding_box", _OBJECT, b"")) for content in objects]
    classes = [_signed(_one(content, "class_id", _OBJECT, 0)) for content in objects]
    return TruePicture(
        _signed(_one(data, "image_id", _PICTURE, 0)),
        name,
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(classes, np.int64),
    )


def _sides(data: bytes) -> list[float]:
    sides = [struct.unpack("<f", _one(data, name, _BOX, bytes(4)))[0] for name in _SIDES]
    if not np.isfinite(sides).all():
        raise _WrongBytes(f"bounding_box has sides that are no numbers: {sides}")
    return sides


def _signed(value: int) -> int:
    """Return the signed number whose 64-bit two's complement is *value*."""
    return value - 2**64 if value >= 2**63 else value


def _one(data: bytes, name: str, fields: dict[str, tuple[int, int]], default: Any) -> Any:
    """Return the value of the field *name* in the message *data*; *default* if it is missing.

    If the field occurs several times, the last value counts. *fields* has number and encoding of
    each field, by name.
    """
    return [default, *_all(data, name, fields)][-1]


def _all(data: bytes, name: str, fields: dict[str, tuple[int, int]]) -> Iterator[Any]:
    """Yield every value of the field *name* of the message *data*.

    *fields* has number and encoding of each field, by name.
    """
    number, encoding = fields[name]
    for found, used, value in _fields(data):
        if found == number:
            if used != encoding:
                raise _WrongBytes(f"{name} is encoded as {used}, not as {encoding}")
            yield value


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield number, encoding and value of each field of the message *data*."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, encoding = tag >> 3, tag & 7
        value: Any
        if number == 0:
            raise _WrongBytes(f"byte {at} of a message of {len(data)}: no field has number 0")
        if encoding == _VARINT:
            value, at = _varint(data, at)
        elif encoding in (_FIXED32, _FIXED64):
            value, at = _cut(data, at, 4 if encoding == _FIXED32 else 8)
        elif encoding == _BYTES:
            length, at = _varint(data, at)
            value, at = _cut(data, at, length)
        else:
            raise _WrongBytes(
                f"byte {at} of a message of {len(data)}: no field has encoding {encoding}"
            )
        yield number, encoding, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at offset *at*, stored 7 bits per byte, and the offset after it."""
    value = 0
    for shift in range(0, 64, 7):
        byte, at = _cut(data, at, 1)
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value % 2**64, at
    raise _WrongBytes(f"byte {at} of a message of {len(data)}: a number of more than 64 bits")


def _cut(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise _WrongBytes(f"byte {at} of a message of {len(data)}: expected {length} bytes more")
    return data[at : at + length], at + length
