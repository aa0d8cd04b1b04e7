"""Messages of gRPC have the protocol's names and numbers, and are checked as strictly as JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

pytest.importorskip("google.protobuf")

from delegraph.scale.serving.grpc_messages import message
from delegraph.scale.serving.grpc_protocol import (
    model_of,
    read_message,
    split_message,
    write_message,
)
from delegraph.scale.serving.refusals import Refusal
from delegraph.scale.serving.requests import InferResponse, OutputTensor


def request(*inputs: dict[str, Any], **more: Any) -> bytes:
    found = message("ModelInferRequest")(model_name="m", model_version="2", **more)
    for each in inputs:
        found.inputs.add(**{"name": "x", "datatype": "FP32", "shape": [2], **each})
    content: bytes = found.SerializeToString()
    return content


def test_messages_are_those_of_a_client_that_is_not_ours() -> None:
    service = pytest.importorskip("tritonclient.grpc.service_pb2")
    names = [
        *("ServerMetadataResponse", "ModelMetadataResponse", "ModelInferRequest"),
        *("ModelInferResponse", "RepositoryIndexResponse", "RepositoryModelLoadRequest"),
    ]
    for name in names:
        found = fields(message(name).DESCRIPTOR)
        theirs = fields(service.DESCRIPTOR.message_types_by_name[name])
        assert found.items() <= theirs.items(), name


def fields(descriptor: Any) -> dict[str, Any]:
    """Return number, type and fields of each field, by name."""
    return {
        each.name: (
            each.number,
            each.type,
            sorted(fields(each.message_type).items()) if each.message_type else None,
        )
        for each in descriptor.fields
        if each.name not in ("parameters",)
    }


def test_parameters_have_their_kinds() -> None:
    content = request({}, parameters={"a": message("Parameter")(int64_param=3)})
    with pytest.raises(Refusal, match="no contents"):
        read_message(content)
    content = request({}, parameters={"sequence_id": message("Parameter")(int64_param=3)})
    with pytest.raises(Refusal, match="'sequence_id', which this server does not support"):
        read_message(content)


def test_raw_tensors_are_views_of_the_message() -> None:
    raw = np.array([1, 2], np.float32).tobytes()
    content = request({}, {"name": "y"}, raw_input_contents=[raw, raw], id="7")
    found = read_message(content)
    assert (model_of(content), found.id) == (("m", "2"), "7")
    assert {name: each.values.tolist() for name, each in found.inputs.items()} == {
        "x": [1, 2],
        "y": [1, 2],
    }
    assert not found.inputs["x"].values.flags.owndata
    rest, parts = split_message(content)
    assert len(rest) < len(content)
    assert [bytes(part) for part in parts] == [raw, raw]


@pytest.mark.parametrize(
    ("datatype", "contents", "expected"),
    [
        ("FP32", {"fp32_contents": [1.5, 2]}, [1.5, 2]),
        ("INT8", {"int_contents": [-128, 2]}, [-128, 2]),
        ("UINT64", {"uint64_contents": [2**64 - 1, 2]}, [2**64 - 1, 2]),
        ("BOOL", {"bool_contents": [True, False]}, [True, False]),
        ("BYTES", {"bytes_contents": [b"a", b"\xff"]}, [b"a", b"\xff"]),
    ],
)
def test_typed_contents(datatype: str, contents: Any, expected: Any) -> None:
    found = read_message(request({"datatype": datatype, "contents": contents}))
    assert found.inputs["x"].values.tolist() == expected


RAW = np.zeros(2, np.float32).tobytes()


@pytest.mark.parametrize(
    ("inputs", "raw", "error"),
    [
        ([{}, {}], [RAW, RAW], "input 'x' occurs twice"),
        ([{"shape": [-1]}], [RAW], r"its shape is \[-1\]"),
        ([{"datatype": "FP8"}], [RAW], "its datatype is 'FP8'"),
        ([{}], [RAW, RAW], "1 inputs and 2 raw_input_contents"),
        ([{}], [RAW[1:]], "has 7 bytes, expected 8"),
        ([{"contents": {"fp32_contents": [1, 2]}}], [RAW], "has contents and raw_input_contents"),
        (
            [{"contents": {"fp64_contents": [1, 2]}}],
            [],
            "has fp64_contents, expected fp32_contents",
        ),
        ([{"contents": {"fp32_contents": [1]}}], [], r"data of shape \[1\], expected \[2\]"),
        ([{"datatype": "INT8", "contents": {"int_contents": [1, 200]}}], [], "has 200, expected"),
        ([{"datatype": "FP16"}], [], "has no contents, expected raw_input_contents"),
        (
            [{"datatype": "BYTES", "contents": {"bytes_contents": [b"a"]}}],
            [],
            r"has 1 texts, expected \[2\]",
        ),
    ],
)
def test_requests_that_are_none(inputs: Any, raw: list[bytes], error: str) -> None:
    with pytest.raises(Refusal, match=error):
        read_message(request(*inputs, raw_input_contents=raw))


def test_messages_that_are_cut_are_refused_or_shorter() -> None:
    content = request({}, raw_input_contents=[RAW])
    for size in range(len(content)):
        with suppress(Refusal):  # and no other error
            assert not read_message(content[:size]).inputs


@pytest.mark.parametrize(
    "content", [b"\xff" * 30, b"\x0b", b"\x3a\x05ab", b"\x09\0", b"\x0a\x01\xff"]
)
def test_bytes_that_are_no_message(content: bytes) -> None:
    with pytest.raises(Refusal):
        read_message(content)


def test_a_response() -> None:
    outputs = (OutputTensor("y", "INT8", np.array([[1, 2]], np.int8)),)
    content = write_message(InferResponse("m", "2", "7", outputs))
    found = message("ModelInferResponse").FromString(content)
    assert (found.model_name, found.model_version, found.id) == ("m", "2", "7")
    assert (found.outputs[0].name, list(found.outputs[0].shape)) == ("y", [1, 2])
    assert found.raw_output_contents == [b"\1\2"]


@pytest.mark.parametrize("field", [b"\x0a\0", b"\x10\1", b"\x3a\0"])
def test_messages_of_too_many_fields(field: bytes) -> None:
    for read in (split_message, model_of):
        with suppress(Refusal):  # where another kind of field ends the search
            assert read(field * 20_000) == ("", "")
    with pytest.raises(Refusal, match="more than 10000 fields"):
        split_message(field * 20_000)
