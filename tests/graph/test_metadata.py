from __future__ import annotations

import io
import struct
import zipfile
from itertools import cycle

import numpy as np
import pytest

from delegraph.errors import MalformedModelError
from delegraph.graph.associated_files import MAX_BYTES
from delegraph.graph.loader import load_model, parse_model
from delegraph.graph.metadata import BoxLayout, ModelMetadata, TensorMetadata, read_metadata
from delegraph.schema.metadata import (
    AudioProperties,
    BoundingBoxProperties,
    BoundingBoxType,
    CoordinateType,
    FeatureProperties,
    ImageProperties,
    ImageSize,
)
from delegraph.schema.options import SplitOptions
from delegraph.testing import constant, one_op_model, tensor
from support.corpus import corpus_file, needs_corpus
from support.described_models import of_tensor, with_entry, with_metadata, zipped

RELU = one_op_model("RELU", [tensor((1, 3))], [tensor((1, 3))])
LABELS = {"labels.txt": b"ant\nbee\ncat\n"}


def read(content: bytes) -> ModelMetadata:
    metadata = read_metadata(parse_model(content))
    assert metadata is not None
    return metadata


def labelled(zip_content: bytes) -> bytes:
    return with_metadata(RELU, outputs=(of_tensor(axis_labels="labels.txt"),)) + zip_content


def test_a_model_without_metadata_and_zip_has_none() -> None:
    assert read_metadata(parse_model(RELU)) is None


def test_inputs_and_outputs_are_described_by_tensor() -> None:
    content = with_metadata(
        RELU,
        (of_tensor("x", FeatureProperties(), mean=(1.0,), std=(2.0,)),),
        (of_tensor("y", threshold=0.25, axis_labels="labels.txt"),),
        LABELS,
        name="toy",
        author="me",
    )
    metadata = read(content)
    assert (metadata.name, metadata.author, metadata.version) == ("toy", "me", "")
    assert metadata.files == {"labels.txt": 12}
    assert metadata.faults == ()
    assert metadata.inputs == (TensorMetadata(0, "x", content="features", mean=(1.0,), std=(2.0,)),)
    output = metadata.tensor(1)
    assert output.axis_labels == ("ant", "bee", "cat")
    assert (output.name, output.score_threshold) == ("y", 0.25)
    assert output.files == {"labels.txt": "tensor axis labels"}
    assert metadata.tensor(9) == TensorMetadata()


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (
            ImageProperties(default_size=ImageSize(width=4, height=3)),
            {"content": "image", "size": (4, 3)},
        ),
        (
            AudioProperties(sample_rate=8000, channels=2),
            {"content": "audio", "sample_rate": 8000, "channels": 2},
        ),
        (AudioProperties(), {"content": "audio", "sample_rate": None, "channels": None}),
        (
            BoundingBoxProperties(type=BoundingBoxType.BOUNDARIES, index=(1, 0, 3, 2)),
            {"boxes": BoxLayout("boundaries", (1, 0, 3, 2))},
        ),
        (
            BoundingBoxProperties(
                type=BoundingBoxType.CENTER, coordinate_type=CoordinateType.PIXEL
            ),
            {"boxes": BoxLayout("center", (0, 1, 2, 3), is_pixels=True)},
        ),
        (BoundingBoxProperties(), {"content": "bounding boxes", "boxes": None}),
    ],
)
def test_contents_have_their_properties(properties: ImageProperties, expected: object) -> None:
    (found,) = read(with_metadata(RELU, (of_tensor("x", properties),))).inputs
    assert isinstance(expected, dict)
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_first_labels_are_taken_the_others_are_translations() -> None:
    two = of_tensor(axis_labels="labels.txt")
    both = two.associated_files + of_tensor(axis_labels="de.txt").associated_files
    files = {**LABELS, "de.txt": b"Ameise\nBiene\nKatze\n"}
    content = with_metadata(RELU, outputs=(two.replace(associated_files=both),), files=files)
    assert read(content).outputs[0].axis_labels == ("ant", "bee", "cat")


def test_labels_keep_their_numbers_and_lose_a_byte_order_mark() -> None:
    labels = {"labels.txt": b"\xef\xbb\xbfant\r\n\r\ncat\r\n\r\n"}
    assert read(labelled(zipped(labels))).outputs[0].axis_labels == ("ant", "", "cat")


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_labels_are_stored_or_deflated(packing: int) -> None:
    assert read(labelled(zipped(LABELS, packing))).outputs[0].axis_labels[0] == "ant"


def test_a_zip_with_a_comment_is_found() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("labels.txt", "ant")
        archive.comment = b"made by hand"
    assert read(labelled(target.getvalue())).outputs[0].axis_labels == ("ant",)


def test_a_zip_without_metadata_lists_its_files() -> None:
    assert read(RELU + zipped({"notes.txt": b"?"})).files == {"notes.txt": 1}


BOMB = zipped({"labels.txt": bytes(MAX_BYTES + 1)})
UTF_16 = zipped({"labels.txt": "ant\n".encode("utf-16")})


def zip_end(files: int, list_bytes: int, list_offset: int) -> bytes:
    fields = (0, 0, files, files, list_bytes, list_offset, 0)
    return struct.pack("<4sHHHHIIH", b"PK\x05\x06", *fields)


MANY = zip_end(0, MAX_BYTES + 1, 0)
ZIP64 = b"PK\x06\x07" + bytes(16) + zip_end(0, 0, 0)
LIES = zip_end(1, 46, 1 << 30)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (labelled(zipped({"a": b""})), "has no 'labels.txt'; it has 'a'"),
        (labelled(BOMB), "has more than 1048576 bytes"),
        (labelled(UTF_16), "'labels.txt' of the zip after the model is no text"),
        (labelled(zipped(LABELS, zipfile.ZIP_LZMA)), "packed in an unknown way"),
        (with_entry(RELU, b"\0" * 8), "TFLITE_METADATA is damaged: its file identifier"),
        (with_entry(RELU, b"\xff" * 4 + b"M001" + b"\0" * 8), "TFLITE_METADATA is damaged: Model"),
        (RELU + MANY, "the zip after the model has too many files"),
        (RELU + ZIP64, "the zip after the model has too many files"),
        (RELU + LIES, "the zip after the model is damaged: "),
        (
            with_metadata(RELU, (of_tensor(), of_tensor())),
            "TFLITE_METADATA describes 2 inputs, the model has 1",
        ),
        (
            with_metadata(RELU, (of_tensor("x", mean=(1.0,), std=(0.0,)),)),
            "the normalization of 'x' has 1 means and 1 deviations, or a deviation of 0",
        ),
        (
            with_metadata(
                RELU, (of_tensor("x", BoundingBoxProperties(index=(7, 0, 1, 2), type=2)),)
            ),
            "the order of a box's numbers is [7, 0, 1, 2]",
        ),
    ],
)
def test_what_is_wrong_is_left_out_and_told(content: bytes, fault: str) -> None:
    (found,) = read(content).faults
    assert fault in found


SPLIT = one_op_model(
    "SPLIT",
    [constant(np.int32(0)), tensor((6,))],
    [tensor((1,)) for _ in range(6)],
    SplitOptions(num_splits=6),
)


def test_one_file_of_labels_serves_many_tensors() -> None:
    labels = {"labels.txt": b"ant\n" + bytes(MAX_BYTES - 9)}
    outputs = tuple(of_tensor(axis_labels="labels.txt") for _ in range(6))
    metadata = read(with_metadata(SPLIT, outputs=outputs, files=labels))
    assert metadata.faults == ()
    assert {output.axis_labels[0] for output in metadata.outputs} == {"ant"}


def test_all_files_together_are_bounded() -> None:
    names = [f"{i}.txt" for i in range(6)]
    labels = {name: b"ant\n" + bytes(MAX_BYTES - 9) for name in names}
    outputs = tuple(of_tensor(axis_labels=name) for name in names)
    metadata = read(with_metadata(SPLIT, outputs=outputs, files=labels))
    assert [bool(output.axis_labels) for output in metadata.outputs] == [True] * 4 + [False] * 2
    assert metadata.faults == (
        "the files of the zip after the model have more than 4194304 bytes together",
    )


def test_labels_without_a_zip_are_told() -> None:
    assert read(labelled(b"")).faults == ("no zip with 'labels.txt' follows the model",)


def test_names_that_leave_the_folder_are_only_names() -> None:
    files = {"../../etc/labels.txt": b"ant\n"}
    content = with_metadata(
        RELU, outputs=(of_tensor(axis_labels="../../etc/labels.txt"),), files=files
    )
    assert read(content).outputs[0].axis_labels == ("ant",)


def test_damage_anywhere_is_a_fault_or_is_not_seen() -> None:
    """Change each byte of metadata and zip: it is read, or one of our errors says why not."""
    content = bytearray(
        with_metadata(RELU, (of_tensor("x", mean=(1.0,), std=(2.0,)),), (of_tensor(),), LABELS)
        + zipped(LABELS)
    )
    start = bytes(content).index(b"M001") - 4
    for at, flip in zip(range(start, len(content)), cycle((0x80, 0xFF, 0x01)), strict=False):
        damaged = content.copy()
        damaged[at] ^= flip
        try:
            model = parse_model(damaged)
        except MalformedModelError:
            continue  # the byte was one of the model's own
        read_metadata(model)


@needs_corpus
def test_labels_of_a_real_detector() -> None:
    model = load_model(corpus_file("support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29"))
    metadata = read_metadata(model)
    assert metadata is not None
    assert metadata.faults == ()
    assert [t.name for t in metadata.outputs] == [
        "locations",
        "classes",
        "scores",
        "number of detections",
    ]
    assert metadata.outputs[0].boxes == BoxLayout("boundaries", (1, 0, 3, 2))
    assert metadata.outputs[1].value_labels[:2] == ("person", "bicycle")
    assert metadata.inputs[0].mean == (127.5,)
