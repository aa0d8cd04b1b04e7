"""Bodies of REST: strict about names, counts and lengths, and bounded before they are parsed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from delegraph.scale.serving.json_protocol import read_request, write_response
from delegraph.scale.serving.limits import Limits
from delegraph.scale.serving.refusals import Kind, Refusal
from delegraph.scale.serving.requests import InferRequest, InferResponse, OutputTensor

LIMITS = Limits(json_depth=6, json_values=40)


def tensor(name: str = "x", **more: Any) -> dict[str, Any]:
    return {"name": name, "datatype": "INT8", "shape": [2], "data": [1, 2], **more}


def binary(size: object, name: str = "x") -> dict[str, Any]:
    given = tensor(name, parameters={"binary_data_size": size})
    del given["data"]
    return given


def read(content: object, rest: bytes = b"", length: int | None = None) -> InferRequest:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    if length is None and rest:
        length = len(text)
    return read_request(text + rest, length, LIMITS)


def test_json_and_binary_tensors() -> None:
    content = {"id": "7", "inputs": [tensor("a"), binary(2, "b")], "outputs": [{"name": "y"}]}
    request = read(content, b"\3\4")
    assert {name: given.values.tolist() for name, given in request.inputs.items()} == {
        "a": [1, 2],
        "b": [3, 4],
    }
    assert (request.id, dict(request.outputs)) == ("7", {"y": None})
    assert not request.inputs["b"].values.flags.owndata  # a view of the body


def test_what_outputs_are_wanted_as() -> None:
    wanted = [
        {"name": "a", "parameters": {"binary_data": True}},
        {"name": "b", "parameters": {"binary_data": False}},
        {"name": "c"},
    ]
    for default in (False, True):
        parameters = {"binary_data_output": default}
        request = read({"inputs": [tensor()], "outputs": wanted, "parameters": parameters})
        assert [request.is_binary(name) for name in "abc"] == [True, False, default]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1", "not JSON"),
        (b'{"inputs": [], "inputs": []}', "an object has 'inputs' twice"),
        ([], "the request is a JSON array, expected an object"),
        ({}, "the request has no 'inputs', expected an array"),
        ({"inputs": 3}, "has 'inputs' as number"),
        ({"inputs": [3]}, "input 0 is a JSON number, expected an object"),
        ({"inputs": [tensor(), tensor()]}, "input 'x' occurs twice, expected once"),
        ({"inputs": [{}]}, "input has no name, expected a text"),
        ({"inputs": [tensor(shape=[-1])]}, "its shape is [-1]"),
        ({"inputs": [tensor(dtype="INT8")]}, "input 0 has 'dtype'"),
        ({"inputs": [tensor()], "input": []}, "the request has 'input' (did you mean 'inputs'?)"),
        ({"inputs": [tensor()], "outputs": [{"name": "y"}] * 2}, "output 'y' occurs twice"),
        ({"inputs": [tensor()], "outputs": 3}, "'outputs' as number"),
        ({"inputs": [tensor()], "id": 3}, "'id' as number, expected a text"),
        ({"inputs": [tensor()], "parameters": 3}, "'parameters' as number, expected an object"),
        (
            {"inputs": [tensor()], "parameters": {"binary_data_output": 1}},
            "parameter 'binary_data_output' is number, expected true or false",
        ),
        (
            {"inputs": [tensor()], "parameters": {"sequence_id": 1}},
            "the parameter 'sequence_id', which this server does not support",
        ),
        ({"inputs": [tensor(parameters={"binary_data_size": 2})]}, "expected one of them"),
        ({"inputs": [binary(2)]}, "a binary_data_size of 2, and the body has 0 bytes for it"),
        ({"inputs": [binary(-1)]}, "a binary_data_size of -1, expected 0 or more"),
        ({"inputs": [binary("2")]}, "a binary_data_size of '2'"),
        (b"[" * 1000, "has 1000 levels, expected at most 6"),
        (b'{"inputs": "' + b"[" * 1000, "not JSON"),  # in a text, they are no levels
    ],
)
def test_requests_that_are_none(content: Any, message: str) -> None:
    with pytest.raises(Refusal) as caught:
        read(content)
    assert message in caught.value.reason
    assert caught.value.kind is Kind.INVALID


@pytest.mark.parametrize(
    ("rest", "more", "message"),
    [
        (b"123", 0, "the body has 3 bytes after the JSON, expected the 2 of all"),
        (b"1", 0, "a binary_data_size of 2, and the body has 1 bytes for it"),
        (b"12", 100, "Inference-Header-Content-Length is "),
        (b"12", -1, "not JSON"),
        (b"12", 1, "not JSON"),
    ],
)
def test_lengths_that_contradict_each_other(rest: bytes, more: int, message: str) -> None:
    content = {"inputs": [binary(2)]}
    with pytest.raises(Refusal) as caught:
        read(content, rest, len(json.dumps(content)) + more)
    assert message in caught.value.reason


def test_too_many_values() -> None:
    with pytest.raises(
        Refusal, match="has 105 values, expected at most 40; send tensors"
    ) as caught:
        read({"inputs": [tensor(data=[0] * 97)]})
    assert caught.value.kind is Kind.TOO_LARGE
    read({"inputs": [tensor()], "id": "," * 100})  # in a text, they are no values


def test_a_response_has_json_then_bytes() -> None:
    outputs = (
        OutputTensor("y", "INT8", np.array([1, 2], np.int8)),
        OutputTensor("z", "FP32", np.array([[0.5]], np.float32)),
    )
    response = InferResponse("m", "3", "7", outputs)
    body, length = write_response(response, InferRequest({}, {"y": True, "z": False}))
    assert length is not None
    assert body[length:] == b"\1\2"
    assert json.loads(body[:length]) == {
        "model_name": "m",
        "model_version": "3",
        "id": "7",
        "outputs": [
            {"name": "y", "datatype": "INT8", "shape": [2], "parameters": {"binary_data_size": 2}},
            {"name": "z", "datatype": "FP32", "shape": [1, 1], "data": [0.5]},
        ],
    }
    body, length = write_response(response, InferRequest({}))
    assert length is None
    assert json.loads(body)["outputs"][0]["data"] == [1, 2]
