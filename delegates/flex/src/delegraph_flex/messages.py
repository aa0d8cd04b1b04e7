"""Protocol buffer messages of a NodeDef, declared here because TensorFlow may not be installed.

The messages are in a separate descriptor pool, because TensorFlow registers the same messages in
the default pool, and both may be loaded. Enums are read as integers.

Source:
    tensorflow/core/framework: node_def.proto, attr_value.proto, tensor.proto, tensor_shape.proto.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "delegraph_flex"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "double": _Field.TYPE_DOUBLE,
    "enum": _Field.TYPE_INT32,
    "float": _Field.TYPE_FLOAT,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}

# One line a field: number, name, type; "*" after the type means repeated, "map" a mapping from
# strings to the type. The fields of AttrValue exclude each other.
_MESSAGES = {
    "Dim": ["1 size int64", "2 name string"],
    "TensorShape": ["2 dim Dim*", "3 unknown_rank bool"],
    "Tensor": [
        "1 dtype enum",
        "2 tensor_shape TensorShape",
        "4 tensor_content bytes",
        "5 float_val float*",
        "6 double_val double*",
        "7 int_val int32*",
        "8 string_val bytes*",
        "9 scomplex_val float*",
        "10 int64_val int64*",
        "11 bool_val bool*",
        "12 dcomplex_val double*",
        "13 half_val int32*",
        "16 uint32_val uint32*",
        "17 uint64_val uint64*",
    ],
    "ListValue": [
        "2 s bytes*",
        "3 i int64*",
        "4 f float*",
        "5 b bool*",
        "6 type enum*",
        "7 shape TensorShape*",
        "8 tensor Tensor*",
        "9 func NameAttrList*",
    ],
    "AttrValue": [
        "1 list ListValue",
        "2 s bytes",
        "3 i int64",
        "4 f float",
        "5 b bool",
        "6 type enum",
        "7 shape TensorShape",
        "8 tensor Tensor",
        "9 placeholder string",
        "10 func NameAttrList",
    ],
    "NameAttrList": ["1 name string", "2 attr map AttrValue"],
    "NodeDef": [
        "1 name string",
        "2 op string",
        "3 input string*",
        "4 device string",
        "5 attr map AttrValue",
    ],
}
_ONE_OF = {"AttrValue": "value"}


def _add_field(message: Any, name: str, number: int, type: str, one_of: bool) -> None:
    repeated = type.endswith("*")
    field = message.field.add(
        name=name,
        number=number,
        label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL,
        type=_SCALARS.get(type.rstrip("*"), _Field.TYPE_MESSAGE),
    )
    if field.type == _Field.TYPE_MESSAGE:
        field.type_name = f".{_PACKAGE}.{type.rstrip('*')}"
    if one_of:
        field.oneof_index = 0


def _add_map(message: Any, name: str, number: int, type: str) -> None:
    """Add a field *name* with *number* to *message*, of type map<string, *type*>.

    protobuf encodes maps as repeated entries.
    """
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    _add_field(entry, "key", 1, "string", False)
    _add_field(entry, "value", 2, type, False)
    _add_field(message, name, number, f"{message.name}.{entry.name}*", False)


def _declared() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{_PACKAGE}/messages.proto", package=_PACKAGE, syntax="proto3"
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        if message_name in _ONE_OF:
            message.oneof_decl.add(name=_ONE_OF[message_name])
        for line in fields:
            number, name, *kind = line.split()
            if kind[0] == "map":
                _add_map(message, name, int(number), kind[1])
            else:
                _add_field(message, name, int(number), kind[0], message_name in _ONE_OF)
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_declared())  # type: ignore[no-untyped-call, unused-ignore]


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


NodeDefMessage = _message("NodeDef")
"""Message class of a NodeDef."""

TensorMessage = _message("Tensor")
"""Message class of a tensor."""
