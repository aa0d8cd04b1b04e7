"""Messages of the Open Inference Protocol for gRPC, as protobuf classes.

``_MESSAGES`` has the names and numbers of the public protocol. The classes are in a separate
descriptor pool, so that a client library can be used in the same process.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "inference"

SERVICE = f"{PACKAGE}.GRPCInferenceService"
"""Full name of the service."""

_CONTENTS = (
    "bool_contents bool* 1, int_contents int32* 2, int64_contents int64* 3, "
    "uint_contents uint32* 4, uint64_contents uint64* 5, fp32_contents float* 6, "
    "fp64_contents double* 7, bytes_contents bytes* 8"
)
_TENSOR = "name string 1, datatype string 2, shape int64* 3"
_DATA = f"{_TENSOR}, parameters Parameter% 4, contents InferTensorContents 5"

_MESSAGES = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "live bool 1",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "ready bool 1",
    "ModelReadyRequest": "name string 1, version string 2",
    "ModelReadyResponse": "ready bool 1",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "name string 1, version string 2, extensions string* 3",
    "ModelMetadataRequest": "name string 1, version string 2",
    "TensorMetadata": _TENSOR,
    "ModelMetadataResponse": "name string 1, versions string* 2, platform string 3, "
    "inputs TensorMetadata* 4, outputs TensorMetadata* 5",
    "Parameter": "bool_param bool? 1, int64_param int64? 2, string_param string? 3, "
    "double_param double? 4, uint64_param uint64? 5",
    "InferTensorContents": _CONTENTS,
    "InferInputTensor": _DATA,
    "InferRequestedOutputTensor": "name string 1, parameters Parameter% 2",
    "ModelInferRequest": "model_name string 1, model_version string 2, id string 3, "
    "parameters Parameter% 4, inputs InferInputTensor* 5, "
    "outputs InferRequestedOutputTensor* 6, raw_input_contents bytes* 7",
    "InferOutputTensor": _DATA,
    "ModelInferResponse": "model_name string 1, model_version string 2, id string 3, "
    "parameters Parameter% 4, outputs InferOutputTensor* 5, raw_output_contents bytes* 6",
    "RepositoryIndexRequest": "repository_name string 1, ready bool 2",
    "ModelIndex": "name string 1, version string 2, state string 3, reason string 4",
    "RepositoryIndexResponse": "models ModelIndex* 1",
    "RepositoryModelLoadRequest": "repository_name string 1, model_name string 2",
    "RepositoryModelLoadResponse": "",
    "RepositoryModelUnloadRequest": "repository_name string 1, model_name string 2",
    "RepositoryModelUnloadResponse": "",
}
"""Mapping from a message's name to its fields, each with name, type and number.

``*`` means a repeated field, ``%`` a map from texts, ``?`` a member of a oneof.
"""


@cache
def message(name: str) -> Any:
    """Return the protobuf class of the message *name*."""
    found = _pool().FindMessageTypeByName(f"{PACKAGE}.{name}")
    return message_factory.GetMessageClass(found)


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(
        name="open_inference.proto", package=PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        entry = file.message_type.add(name=name)
        for field in filter(None, fields.split(", ")):
            _add_field(entry, *field.split(" "))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add_field(entry: Any, name: str, kind: str, number: str) -> None:
    field = entry.field.add(name=name, number=int(number), label=1)
    mark = kind[-1] if kind[-1] in "*%?" else ""
    kind = kind.rstrip("*%?")
    if mark == "*":
        field.label = 3
    if mark == "?":
        if not entry.oneof_decl:
            entry.oneof_decl.add(name="choice")
        field.oneof_index = 0
    if mark == "%":
        inner = entry.nested_type.add(name=f"{name.capitalize()}Entry")
        inner.options.map_entry = True
        _add_field(inner, "key", "string", "1")
        _add_field(inner, "value", kind, "2")
        field.label = 3
        kind = f"{entry.name}.{inner.name}"
    types = descriptor_pb2.FieldDescriptorProto
    scalar = getattr(types, f"TYPE_{kind.upper()}", None)
    field.type = types.TYPE_MESSAGE if scalar is None else scalar
    if scalar is None:
        field.type_name = f".{PACKAGE}.{kind}"
