from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.ground_truth_proto import read_ground_truth_proto

FIELDS = {
    "Box": [
        ("normalized_top", 1, 2),
        ("normalized_bottom", 2, 2),
        ("normalized_left", 3, 2),
        ("normalized_right", 4, 2),
    ],
    "Instance": [("class_id", 1, 5), ("bounding_box", 2, "Box"), ("score", 3, 2)],
    "Result": [("objects", 1, ["Instance"]), ("image_name", 2, 9), ("image_id", 3, 3)],
    "Truth": [("detection_results", 1, ["Result"])],
}
"""Messages of evaluation_stages.proto: fields, their numbers, and their types as descriptor.proto
numbers them."""


def message_type() -> Any:
    """Return the class of the whole message, made by the official package."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="made.proto", package="made", syntax="proto2")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            inner = kind[0] if isinstance(kind, list) else kind
            is_message = isinstance(inner, str)
            message.field.add(
                name=field,
                number=number,
                label=3 if isinstance(kind, list) else 1,
                type=11 if is_message else inner,
                type_name=f".made.{inner}" if is_message else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("made.Truth"))


def test_it_reads_what_the_official_package_writes(tmp_path: Path) -> None:
    truth = message_type()()
    for number, name in ((391895, "b.jpg"), (-7, "a.jpg")):
        result = truth.detection_results.add(image_id=number, image_name=name)
        for kind in (18, 1):
            added = result.objects.add(class_id=kind, score=0.5)
            added.bounding_box.normalized_top = 0.25
            added.bounding_box.normalized_left = 0.1
            added.bounding_box.normalized_bottom = 0.75
            added.bounding_box.normalized_right = kind / 100
    path = tmp_path / "ground_truth.pb"
    path.write_bytes(truth.SerializeToString())
    read = read_ground_truth_proto(str(path))
    assert [(p.name, p.id) for p in read.pictures] == [("a.jpg", -7), ("b.jpg", 391895)]
    first = read.pictures[0]
    assert first.classes.tolist() == [18, 1]
    assert first.boxes[0].tolist() == pytest.approx([0.25, 0.1, 0.75, 0.18])
    assert not read.has_pixels


# -- the encoding, by hand ---------------------------------------------------------------------


def nested(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def side(number: int, value: float) -> bytes:
    return bytes([number << 3 | 5]) + struct.pack("<f", value)


NAMED = nested(2, b"a.jpg")


def read(folder: Path, content: bytes) -> Any:
    path = folder / "ground_truth.pb"
    path.write_bytes(content)
    return read_ground_truth_proto(str(path)).pictures


def test_sides_that_are_absent_are_zero(tmp_path: Path) -> None:
    instance = bytes([0x08, 5]) + nested(2, side(4, 0.5))
    (picture,) = read(tmp_path, nested(1, nested(1, instance) + NAMED))
    assert picture.boxes.tolist() == [[0.0, 0.0, 0.0, 0.5]]
    assert (picture.id, picture.classes.tolist()) == (0, [5])


def test_fields_that_nobody_asked_for_are_skipped(tmp_path: Path) -> None:
    others = (
        bytes([9 << 3, 0x96, 1, 10 << 3 | 1]) + b"\x07" * 8 + nested(11, b"xyz") + side(12, 1.0)
    )
    (picture,) = read(tmp_path, nested(1, others + NAMED))
    assert picture.name == "a.jpg"


WRONG = {
    "another file": (b"\xff\xd8\x7f\xe0", "no field has encoding 7"),
    "text": (
        b"detection_results {\n}",
        r"ground_truth\.pb': .* is it an ObjectDetectionGroundTruth",
    ),
    "zeros": (bytes(64), "no field has number 0"),
    "cut": (nested(1, NAMED)[:-2], "expected 7 bytes more"),
    "no name": (nested(1, bytes([0x18, 1])), r"detection_results\[0\]: expected image_name"),
    "no text": (nested(1, nested(2, b"\xff")), r"detection_results\[0\]: image_name is no text"),
    "another encoding": (nested(1, bytes([0x10, 1])), "image_name is encoded as 0, not as 2"),
    "a long number": (bytes([0x08]) + b"\xff" * 11, "a number of more than 64 bits"),
    "no number": (
        nested(1, nested(1, nested(2, side(1, float("nan")))) + NAMED),
        "bounding_box has sides that are no numbers",
    ),
    "a cut side": (nested(1, nested(1, nested(2, b"\x0d\x00")) + NAMED), "expected 4 bytes more"),
    "name twice": (
        nested(1, NAMED) * 2,
        r"detection_results\[1\]: image_name 'a.jpg' occurs before",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, name: str) -> None:
    content, message = WRONG[name]
    with pytest.raises(ArgumentError, match=message):
        read(tmp_path, content)


def test_damaged_files_end_in_one_error(tmp_path: Path) -> None:
    instance = bytes([0x08, 5]) + nested(2, side(4, 0.5) + side(1, 0.25))
    sound = nested(1, nested(1, instance) + NAMED + bytes([0x18, 1]))
    refused = 0
    for at in range(len(sound)):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            damaged = sound[:at] + bytes([value]) + sound[at + 1 :]
            try:
                read(tmp_path, damaged)
            except ArgumentError:
                refused += 1
    assert refused > 20


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"'none\.pb' cannot be read: No such file"):
        read_ground_truth_proto("none.pb")
