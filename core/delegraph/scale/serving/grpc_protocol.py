"""Converts inference requests and responses from and to gRPC messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from delegraph.scale.serving.encodings import (
    from_bytes,
    from_json,
    require_datatype,
    require_shape,
    to_bytes,
)
from delegraph.scale.serving.grpc_messages import message
from delegraph.scale.serving.json_protocol import require_supported
from delegraph.scale.serving.refusals import invalid
from delegraph.scale.serving.requests import InferRequest, InferResponse
from delegraph.scale.serving.tensors import GivenTensor

_RAW_INPUTS = 7
"""Number of the field that has the raw bytes of inputs."""

_MOST_FIELDS = 10_000
"""Largest number of fields of a message, which limits the time to read it."""

_FIELDS: Mapping[str, str] = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""Mapping from a datatype to the field with its values; FP16 has only raw bytes."""


def split_message(content: bytes) -> tuple[bytes, list[memoryview]]:
    """Return a request message without its input tensors' bytes, and these bytes as views.

    Raises:
        Refusal: the content is not a message of protobuf.
    """
    view, place = memoryview(content), 0
    rest, raw, count = bytearray(), [], 0
    while place < len(view):
        start = place
        count = _counted(count)
        key, place = _varint(view, place)
        kind = key & 7
        if kind == 0:
            _, place = _varint(view, place)
        elif kind == 2:
            size, place = _varint(view, place)
            place += size
        elif kind in (1, 5):
            place += 8 if kind == 1 else 4
        else:
            raise invalid(f"the message has no field at byte {start}")
        if place > len(view):
            raise invalid(f"the field at byte {start} of the message is longer than the message")
        if key == _RAW_INPUTS << 3 | 2:
            raw.append(view[place - size : place])
        else:
            rest += view[start:place]
    return bytes(rest), raw


def _counted(count: int) -> int:
    if count >= _MOST_FIELDS:
        raise invalid(f"the message has more than {_MOST_FIELDS} fields")
    return count + 1


def _varint(view: memoryview, place: int) -> tuple[int, int]:
    """Return the variable-length number at offset *place* in *view*, and the next offset."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(view):
            break
        byte = view[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise invalid(f"the message has no number before byte {place}")


def read_message(content: bytes) -> InferRequest:
    """Return the request in the message bytes *content*; raw tensors are views of them.

    Raises:
        Refusal: the message is not a request of the protocol.
    """
    rest, raw = split_message(content)
    try:
        found = message("ModelInferRequest").FromString(rest)
    except DecodeError as error:
        raise invalid(f"the message is not a ModelInferRequest: {error}") from error
    require_supported(found.parameters, "the request")
    return InferRequest(_inputs(found.inputs, raw), _outputs(found.outputs), found.id)


def model_of(content: bytes) -> tuple[str, str]:
    """Return name and version of the model that a request names.

    Raises:
        Refusal: the content is not a message of protobuf.
    """
    view, place, found, count = memoryview(content), 0, {1: "", 2: ""}, 0
    while place < len(view):
        count = _counted(count)
        key, place = _varint(view, place)
        if key & 7 != 2:
            break
        size, place = _varint(view, place)
        if key >> 3 in found:
            found[key >> 3] = bytes(view[place : place + size]).decode(errors="replace")
        place += size
    return found[1], found[2]


def _inputs(entries: Any, raw: list[memoryview]) -> dict[str, GivenTensor]:
    if raw and len(raw) != len(entries):
        raise invalid(
            f"the request has {len(entries)} inputs and {len(raw)} raw_input_contents, expected as "
            "many of one as of the other"
        )
    inputs: dict[str, GivenTensor] = {}
    for place, entry in enumerate(entries):
        name = entry.name
        if name in inputs:
            raise invalid(f"input {name!r} occurs twice, expected once")
        require_supported(entry.parameters, f"input {name!r}")
        shape = require_shape(name, list(entry.shape))
        datatype = require_datatype(name, entry.datatype)
        given = entry.contents.ListFields()
        if raw and given:
            raise invalid(f"input {name!r} has contents and raw_input_contents, expected one")
        if raw:
            values = from_bytes(name, datatype, shape, raw[place])
        else:
            values = _from_contents(name, datatype, shape, given)
        inputs[name] = GivenTensor(datatype, values)
    return inputs


def _from_contents(
    name: str, datatype: str, shape: tuple[int, ...], given: list[Any]
) -> NDArray[Any]:
    """Return the tensor of input *name* from *given*, pairs of typed field and numbers."""
    expected = _FIELDS.get(datatype, "raw_input_contents")
    fields = [field.name for field, _ in given]
    if fields != [expected] and (given or 0 not in shape):
        found = " and ".join(fields) or "no contents"
        raise invalid(f"input {name!r} is {datatype} and has {found}, expected {expected}")
    items = list(given[0][1]) if given else []
    if datatype != "BYTES":
        return from_json(name, datatype, shape, items)
    values = np.empty(len(items), object)
    values[:] = items
    if values.shape != (int(np.prod(shape, dtype=object)),):
        raise invalid(f"input {name!r} has {len(items)} texts, expected {list(shape)} of them")
    return values.reshape(shape)


def _outputs(entries: Any) -> dict[str, bool | None]:
    outputs: dict[str, bool | None] = {}
    for entry in entries:
        if entry.name in outputs:
            raise invalid(f"output {entry.name!r} occurs twice, expected once")
        require_supported(entry.parameters, f"output {entry.name!r}")
        outputs[entry.name] = None
    return outputs


def write_message(response: InferResponse) -> bytes:
    """Return a response as message bytes, with the outputs as raw bytes."""
    found = message("ModelInferResponse")(
        model_name=response.model, model_version=response.version, id=response.id
    )
    for output in response.outputs:
        found.outputs.add(name=output.name, datatype=output.datatype, shape=output.values.shape)
        found.raw_output_contents.append(to_bytes(output.values))
    content: bytes = found.SerializeToString()
    return content
