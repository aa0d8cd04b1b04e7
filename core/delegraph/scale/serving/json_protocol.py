"""Bodies of REST requests and responses: JSON, followed by the bytes of binary tensors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from delegraph.errors import did_you_mean
from delegraph.scale.serving.encodings import (
    from_bytes,
    from_json,
    require_datatype,
    require_shape,
    to_bytes,
    to_json,
)
from delegraph.scale.serving.limits import Limits
from delegraph.scale.serving.refusals import Kind, Refusal, invalid
from delegraph.scale.serving.requests import InferRequest, InferResponse
from delegraph.scale.serving.tensors import GivenTensor

_REQUEST = ("id", "inputs", "model_name", "model_version", "outputs", "parameters")
_INPUT = ("data", "datatype", "name", "parameters", "shape")
_OUTPUT = ("name", "parameters")

UNSUPPORTED = {
    "classification",
    "sequence_end",
    "sequence_id",
    "sequence_start",
    "shared_memory_byte_size",
    "shared_memory_offset",
    "shared_memory_region",
}
"""Request parameters that this server lacks and that would change the answer."""


def read_request(
    body: bytes | bytearray | memoryview, header_length: int | None, limits: Limits
) -> InferRequest:
    """Return the request in a REST body.

    Args:
        body: JSON, then the bytes of binary tensors, which are not copied.
        header_length: number of bytes of JSON; None if the body is JSON only.
        limits: limits of the JSON.

    Raises:
        Refusal: the body is not a request of the protocol.
    """
    view = memoryview(body)
    length = len(view) if header_length is None else header_length
    if length > len(view):
        raise invalid(
            f"Inference-Header-Content-Length is {length}, expected at most the {len(view)} bytes "
            "of the body"
        )
    content = _object(read_json(bytes(view[:length]), limits), "the request", _REQUEST)
    parameters = _parameters(content, "the request")
    inputs = _inputs(_list(content, "inputs"), view[length:])
    return InferRequest(
        inputs,
        _outputs(_list(content, "outputs")),
        _text(content, "id"),
        _flag(parameters, "binary_data_output") or False,
        _text(content, "model_name"),
    )


def read_json(text: bytes, limits: Limits) -> Any:
    """Return the value of a JSON text.

    Raises:
        Refusal: the text is not JSON, or has more values or deeper nesting than the limits allow.
    """
    _require_limits(text, limits)
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise invalid(f"the request is not JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has {twice!r} twice")
    return found


_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _require_limits(text: bytes, limits: Limits) -> None:
    """Check that depth and number of values of the JSON *text* are within *limits*."""
    if len(text) <= limits.json_depth:
        return
    plain = _TEXT.sub(b"", text)
    steps = np.frombuffer(plain.translate(None, _NO_BRACKETS), np.uint8)
    opens = (steps == ord("[")) | (steps == ord("{"))
    depth = np.cumsum(np.where(opens, 1, -1), dtype=np.int32)
    if depth.size and depth.max() > limits.json_depth:
        raise invalid(
            f"the request's JSON has {depth.max()} levels, expected at most {limits.json_depth}"
        )
    values = plain.count(b",") + int(opens.sum()) + 1
    if values > limits.json_values:
        raise Refusal(
            Kind.TOO_LARGE,
            f"the request's JSON has {values} values, expected at most {limits.json_values}; send "
            "tensors as binary data",
        )


def _object(value: object, what: str, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid(f"{what} is a JSON {_kind(value)}, expected an object")
    for name in value:
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise invalid(f"{what} has {name!r}{hint}, expected {', '.join(known)}")
    return value


def _kind(value: object) -> str:
    names = {list: "array", str: "text", type(None): "null", bool: "truth value"}
    return names.get(type(value), "number")


def _list(content: Mapping[str, Any], key: str) -> list[Any]:
    value = content.get(key)
    if value is None and key == "outputs":
        return []
    if not isinstance(value, list):
        found = f"has no {key!r}" if key not in content else f"has {key!r} as {_kind(value)}"
        raise invalid(f"the request {found}, expected an array")
    return value


def _text(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    if value is not None and not isinstance(value, str):
        raise invalid(f"the request has {key!r} as {_kind(value)}, expected a text")
    return value or ""


def _parameters(content: Mapping[str, Any], what: str) -> dict[str, Any]:
    value = content.get("parameters")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid(f"{what} has 'parameters' as {_kind(value)}, expected an object")
    require_supported(value, what)
    return value


def require_supported(parameters: Mapping[str, Any], what: str) -> None:
    """Check that this server supports all *parameters*; *what* names their place in the error.

    Raises:
        Refusal: a parameter would change the answer.
    """
    for name in sorted(UNSUPPORTED & parameters.keys()):
        raise invalid(f"{what} has the parameter {name!r}, which this server does not support")


def _flag(parameters: Mapping[str, Any], name: str) -> bool | None:
    value = parameters.get(name)
    if value is not None and not isinstance(value, bool):
        raise invalid(f"parameter {name!r} is {_kind(value)}, expected true or false")
    return value


def _name(entry: Mapping[str, Any], what: str, others: Mapping[str, Any]) -> str:
    name = entry.get("name")
    if not isinstance(name, str):
        found = "no name" if name is None else f"a {_kind(name)} as name"
        raise invalid(f"{what} has {found}, expected a text")
    if name in others:
        raise invalid(f"{what} {name!r} occurs twice, expected once")
    return name


def _inputs(entries: list[Any], binary: memoryview) -> dict[str, GivenTensor]:
    inputs: dict[str, GivenTensor] = {}
    place = 0
    for index, value in enumerate(entries):
        entry = _object(value, f"input {index}", _INPUT)
        name = _name(entry, "input", inputs)
        shape = require_shape(name, entry.get("shape"))
        datatype = require_datatype(name, entry.get("datatype"))
        size = _binary_size(name, entry)
        if size is None:
            values = from_json(name, datatype, shape, entry.get("data"))
        else:
            if size > len(binary) - place:
                raise invalid(
                    f"input {name!r} has a binary_data_size of {size}, and the body has "
                    f"{len(binary) - place} bytes for it after the JSON and other inputs"
                )
            values = from_bytes(name, datatype, shape, binary[place : place + size])
            place += size
        inputs[name] = GivenTensor(datatype, values)
    if place != len(binary):
        raise invalid(
            f"the body has {len(binary)} bytes after the JSON, expected the {place} of all "
            "binary_data_size together"
        )
    return inputs


def _binary_size(name: str, entry: Mapping[str, Any]) -> int | None:
    size = _parameters(entry, f"input {name!r}").get("binary_data_size")
    if size is None:
        return None
    if type(size) is not int or size < 0:
        raise invalid(f"input {name!r} has a binary_data_size of {size!r}, expected 0 or more")
    if "data" in entry:
        raise invalid(f"input {name!r} has 'data' and 'binary_data_size', expected one of them")
    return size


def _outputs(entries: list[Any]) -> dict[str, bool | None]:
    outputs: dict[str, bool | None] = {}
    for index, value in enumerate(entries):
        entry = _object(value, f"output {index}", _OUTPUT)
        name = _name(entry, "output", outputs)
        outputs[name] = _flag(_parameters(entry, f"output {name!r}"), "binary_data")
    return outputs


def write_response(response: InferResponse, request: InferRequest) -> tuple[bytes, int | None]:
    """Return the body of a response, and the length of its JSON if binary tensors follow it.

    The length is None if no tensor is binary. *request* determines which outputs are binary.
    """
    outputs, parts = [], []
    for output in response.outputs:
        entry: dict[str, Any] = {
            "name": output.name,
            "datatype": output.datatype,
            "shape": list(output.values.shape),
        }
        data = b""
        if request.is_binary(output.name):
            parts.append(to_bytes(output.values))
            entry["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            data = b',"data":' + to_json(output.values)
        outputs.append(_text_of(entry)[:-1] + data + b"}")
    content: dict[str, Any] = {"model_name": response.model}
    if response.version:
        content["model_version"] = response.version
    if response.id:
        content["id"] = response.id
    text = _text_of(content)[:-1] + b',"outputs":[' + b",".join(outputs) + b"]}"
    return b"".join([text, *parts]), len(text) if parts else None


def _text_of(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
