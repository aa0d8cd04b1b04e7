"""NodeDef: a TensorFlow operator's name and attributes, stored in a Flex operator's options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType, zeros
from delegraph_flex.messages import NodeDefMessage

MAX_TENSOR_BYTES = 1 << 26
"""Largest size in bytes of a constant inside a NodeDef; the file is untrusted."""


class NodeDefError(ValueError):
    """Error: bytes are not a valid NodeDef, or have a value that a NodeDef cannot have."""


@dataclass(frozen=True, slots=True)
class Function:
    """Value of an attribute that names a function of the model.

    Attributes:
        name: name of the subgraph with the function's body.
        attrs: attributes of the call.
    """

    name: str
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)


Shape = tuple[int, ...] | None
"""Dimensions, -1 for unknown dimensions; None if even the rank is unknown."""

Scalar = bytes | int | float | bool | DataType | Function | Shape | NDArray[Any]

AttrValue = Scalar | list[Any]
"""Value of an attribute in Python: list for list, tuple for shape, array for tensor."""


@dataclass(frozen=True, slots=True)
class NodeDef:
    """A TensorFlow operator: its name, its attributes and its number of inputs.

    Attributes:
        op: TensorFlow's name of the operator.
        attrs: mapping from each stored attribute to its value; TensorFlow's defaults are not
            stored.
        num_inputs: number of inputs in the NodeDef.
    """

    op: str
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)
    num_inputs: int = 0

    @classmethod
    def parse(cls, data: bytes) -> NodeDef:
        """Return the NodeDef in *data*, serialised bytes; unknown fields are skipped.

        Raises:
            NodeDefError: the bytes are not a NodeDef.
        """
        message = NodeDefMessage()
        try:
            message.ParseFromString(bytes(data))
        except DecodeError as error:
            raise NodeDefError(f"{len(data)} bytes are no NodeDef: {error}") from error
        if not message.op:
            raise NodeDefError("the NodeDef names no operator")
        return cls(message.op, _attrs(message.attr), len(message.input))

    def serialise(self) -> bytes:
        """Return the NodeDef as bytes, with empty input names, as the converter writes it."""
        message = NodeDefMessage(op=self.op)
        message.input.extend([""] * self.num_inputs)
        for name, value in self.attrs.items():
            _write(message.attr[name], value)
        return bytes(message.SerializeToString(deterministic=True))


def _attrs(messages: Mapping[str, Any]) -> dict[str, AttrValue]:
    return {name: _value(name, message) for name, message in messages.items()}


def _value(name: str, message: Any) -> AttrValue:
    kind = message.WhichOneof("value")
    if kind is None:
        raise NodeDefError(f"attribute {name!r} has no value of a known kind")
    if kind == "list":
        return [
            _scalar(name, listed.name, item)
            for listed, items in message.list.ListFields()
            for item in items
        ]
    return _scalar(name, kind, getattr(message, kind))


def _scalar(name: str, kind: str, value: Any) -> Scalar:
    try:
        if kind == "type":
            return DataType(value)
        if kind == "shape":
            return _shape(value)
        if kind == "tensor":
            return _tensor(value)
    except ValueError as error:
        raise NodeDefError(f"attribute {name!r}: {error}") from error
    if kind == "func":
        return Function(value.name, _attrs(value.attr))
    if kind == "placeholder":
        raise NodeDefError(f"attribute {name!r} is a placeholder, which only functions have")
    result: Scalar = value
    return result


def _shape(message: Any) -> Shape:
    return None if message.unknown_rank else tuple(dim.size for dim in message.dim)


_LISTS = {
    DataType.FLOAT32: "float_val",
    DataType.FLOAT64: "double_val",
    DataType.STRING: "string_val",
    DataType.INT64: "int64_val",
    DataType.BOOL: "bool_val",
    DataType.UINT32: "uint32_val",
    DataType.UINT64: "uint64_val",
    DataType.COMPLEX64: "scomplex_val",
    DataType.COMPLEX128: "dcomplex_val",
    DataType.FLOAT16: "half_val",
    DataType.BFLOAT16: "half_val",
}
"""Mapping from a type to the field with a tensor's values; ``int_val`` for other types."""


def _tensor(message: Any) -> NDArray[Any]:
    """Return the value of *message*, a constant, from raw bytes or from a list of values.

    The last value of a list is repeated.
    """
    type = DataType(message.dtype)
    shape = _shape(message.tensor_shape)
    if shape is None or min(shape, default=0) < 0:
        raise ValueError(f"a tensor of shape {shape}, expected known dimensions")
    count, dtype = math.prod(shape), type.dtype
    if count * dtype.itemsize > MAX_TENSOR_BYTES:
        raise ValueError(f"a tensor of {count * dtype.itemsize} bytes, limit {MAX_TENSOR_BYTES}")
    if message.tensor_content:
        if len(message.tensor_content) != count * dtype.itemsize or dtype.hasobject:
            raise ValueError(
                f"a tensor {type.name}{list(shape)} of {len(message.tensor_content)} bytes"
            )
        return np.frombuffer(message.tensor_content, dtype).reshape(shape)
    listed = _listed(type, getattr(message, _LISTS.get(type, "int_val")))
    if len(listed) > count:
        raise ValueError(f"a tensor {type.name}{list(shape)} of {len(listed)} values")
    values = zeros((count,), dtype)
    values[: len(listed)] = listed
    if len(listed):
        values[len(listed) :] = listed[-1]
    return values.reshape(shape)


def _listed(type: DataType, values: Sequence[Any]) -> Any:
    if type in (DataType.FLOAT16, DataType.BFLOAT16):
        return np.array(values, np.uint16).view(type.dtype)
    if type in (DataType.COMPLEX64, DataType.COMPLEX128):
        return np.array(values, np.float64).view(np.complex128)
    return list(values)


def _write(message: Any, value: AttrValue) -> None:
    """Store *value* in *message*, the protobuf message of an attribute."""
    if isinstance(value, list):
        message.list.SetInParent()
        for item in value:
            _append(message.list, item)
        return
    kind = _kind(value)
    if kind in ("shape", "tensor", "func"):
        _fill(getattr(message, kind), kind, value)
    else:
        setattr(message, kind, value)


def _append(message: Any, value: Any) -> None:
    kind = _kind(value)
    if kind in ("shape", "tensor", "func"):
        _fill(getattr(message, kind).add(), kind, value)
    else:
        getattr(message, kind).append(value)


def _kind(value: Any) -> str:
    """Return the name of the protobuf field that stores *value*, such as ``"s"`` for bytes."""
    if isinstance(value, DataType):
        return "type"
    if isinstance(value, bool):
        return "b"
    if value is None or isinstance(value, tuple):
        return "shape"
    kinds = {bytes: "s", int: "i", float: "f", np.ndarray: "tensor", Function: "func"}
    for python_type, kind in kinds.items():
        if isinstance(value, python_type):
            return kind
    raise NodeDefError(f"{value!r} cannot be an attribute of a NodeDef")


def _fill(message: Any, kind: str, value: Any) -> None:
    message.SetInParent()
    if kind == "shape" and value is None:
        message.unknown_rank = True
    elif kind == "shape":
        for size in value:
            message.dim.add(size=size)
    elif kind == "func":
        message.name = value.name
        for name, inner in value.attrs.items():
            _write(message.attr[name], inner)
    else:
        message.dtype = _data_type(value)
        _fill(message.tensor_shape, "shape", value.shape)
        if value.dtype.hasobject:
            message.string_val.extend(value.reshape(-1).tolist())
        else:
            message.tensor_content = value.tobytes()


def _data_type(value: NDArray[Any]) -> DataType:
    return DataType.STRING if value.dtype.hasobject else DataType[value.dtype.name.upper()]
