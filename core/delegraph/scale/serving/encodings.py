"""Converts tensors of the Open Inference Protocol from and to bytes and JSON numbers."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.scale.serving.refusals import invalid
from delegraph.scale.serving.tensors import DATATYPES

DTYPES = {datatype: np.dtype(name).newbyteorder("<") for name, datatype in DATATYPES.items()}
"""Mapping from the protocol's datatype to the dtype of its bytes; texts are ``BYTES``."""

_LENGTH = struct.Struct("<I")


def require_shape(name: str, shape: object) -> tuple[int, ...]:
    """Return *shape*, which a request gives for the input *name*, after checking its dimensions."""
    if not isinstance(shape, list | tuple):
        raise invalid(f"input {name!r}: its shape is {_short(shape)}, expected a list of integers")
    for size in shape:
        if type(size) is not int or size < 0:
            raise invalid(
                f"input {name!r}: its shape is {_short(list(shape))}, expected no dimension but "
                "integers of 0 or more"
            )
    return tuple(shape)


def require_datatype(name: str, datatype: object) -> str:
    """Return *datatype*, which a request gives for the input *name*, after checking it."""
    known = sorted([*DTYPES, "BYTES"])
    if not isinstance(datatype, str) or datatype not in known:
        raise invalid(
            f"input {name!r}: its datatype is {_short(datatype)}, expected one of "
            f"{', '.join(known)}"
        )
    return datatype


def from_bytes(
    name: str, datatype: str, shape: tuple[int, ...], content: bytes | memoryview
) -> NDArray[Any]:
    """Return a tensor from its bytes, which are not copied.

    Args:
        name: name of the input, for the message.
        datatype: datatype in the protocol.
        shape: stated shape.
        content: values in row-major order, little-endian; each text follows its length.

    Raises:
        Refusal: the bytes are too few or too many for datatype and shape.
    """
    count = math.prod(shape)
    if datatype == "BYTES":
        return _texts(name, count, content).reshape(shape)
    dtype = DTYPES[datatype]
    if len(content) != count * dtype.itemsize:
        raise invalid(
            f"input {name!r} has {len(content)} bytes, expected {count * dtype.itemsize} for "
            f"{datatype} of shape {list(shape)}"
        )
    values = np.frombuffer(content, dtype)
    if datatype == "BOOL" and values.size and values.view(np.uint8).max() > 1:
        raise invalid(f"input {name!r} is BOOL and has bytes that are neither 0 nor 1")
    return values.reshape(shape)


def _texts(name: str, count: int, content: bytes | memoryview) -> NDArray[Any]:
    found: list[bytes] = []
    place = 0
    while place < len(content) and len(found) < count:
        start = place + _LENGTH.size
        size = _LENGTH.unpack_from(content, place)[0] if start <= len(content) else 0
        if start + size > len(content):
            raise invalid(
                f"input {name!r}: text {len(found)} ends after byte {start + size}, and its data "
                f"have {len(content)} bytes"
            )
        found.append(bytes(content[start : start + size]))
        place = start + size
    if place != len(content) or len(found) != count:
        raise invalid(
            f"input {name!r} has {len(found)} texts in {place} of its {len(content)} bytes, "
            f"expected {count} in all of them"
        )
    return _objects(found)


def _objects(items: Sequence[object]) -> NDArray[Any]:
    values = np.empty(len(items), object)
    values[:] = items
    return values


def from_json(name: str, datatype: str, shape: tuple[int, ...], data: object) -> NDArray[Any]:
    """Return the tensor of input *name* from JSON values, nested like *shape* or flat.

    Raises:
        Refusal: the values do not fit datatype or shape.
    """
    if not isinstance(data, list):
        raise invalid(f"input {name!r}: its data are {_short(data)}, expected a list")
    values = np.array(data, object)  # any other dtype would widen all texts to the longest one
    if values.shape not in (shape, (math.prod(shape),)):
        raise invalid(
            f"input {name!r} has data of shape {list(values.shape)}, expected {list(shape)} or "
            f"[{math.prod(shape)}]"
        )
    items = values.ravel().tolist()
    allowed = _JSON_TYPES["O" if datatype == "BYTES" else DTYPES[datatype].kind]
    types = {*map(type, items)}
    if not types <= allowed:
        found = next(item for item in items if type(item) not in allowed)
        expected = _JSON_WORDS["O" if datatype == "BYTES" else DTYPES[datatype].kind]
        raise invalid(f"input {name!r} is {datatype} and has {_short(found)}, expected {expected}")
    if datatype == "BYTES":
        return values.reshape(shape)
    return _converted(name, datatype, items, float in types).reshape(shape)


_JSON_TYPES: Mapping[str, set[type]] = {
    "b": {bool},
    "i": {int, float},
    "u": {int, float},
    "f": {int, float},
    "O": {str},
}
"""Mapping from the kind of a dtype to the types of JSON values that it takes."""

_JSON_WORDS: Mapping[str, str] = {
    "b": "true or false",
    "i": "integers",
    "u": "integers",
    "f": "numbers",
    "O": "texts",
}


def _converted(name: str, datatype: str, items: list[Any], has_floats: bool) -> NDArray[Any]:
    """Return the numbers *items* in the datatype's dtype; raise an error if a number changes.

    *name* is the input, for errors; *has_floats* says whether any item is a float.
    """
    dtype = np.dtype(DTYPES[datatype].type)
    if dtype.kind in "iu" and items:
        if has_floats:
            items = _integers(name, datatype, items)
        _require_range(name, datatype, items, dtype)
    if dtype.kind != "f":
        return np.array(items, dtype)
    try:
        exact = np.array(items, np.float64)
    except OverflowError as error:
        raise invalid(f"input {name!r} is {datatype}: {error}") from error
    with np.errstate(over="ignore"):
        values = exact.astype(dtype)
    lost = np.isinf(values) & np.isfinite(exact)
    if lost.any():
        raise invalid(f"input {name!r} is {datatype} and has {exact[lost][0]!s}")
    return values


def _integers(name: str, datatype: str, items: list[Any]) -> list[int]:
    for item in items:
        if type(item) is float and not item.is_integer():
            raise invalid(f"input {name!r} is {datatype} and has {item}, expected integers")
    return [*map(int, items)]


def _require_range(name: str, datatype: str, items: list[int], dtype: np.dtype[Any]) -> None:
    info = np.iinfo(dtype)
    for extreme in (min(items), max(items)):
        if not info.min <= extreme <= info.max:
            raise invalid(
                f"input {name!r} is {datatype} and has {_short(extreme)}, expected {info.min} to "
                f"{info.max}"
            )


def to_bytes(values: NDArray[Any]) -> bytes:
    """Return a tensor's values as the binary data of the Open Inference Protocol.

    Numbers are little-endian; each string is its length as uint32, then its bytes.
    """
    if values.dtype.kind in "OSU":
        texts = [text.encode() if isinstance(text, str) else bytes(text) for text in values.flat]
        return b"".join(part for text in texts for part in (_LENGTH.pack(len(text)), text))
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def to_json(values: NDArray[Any]) -> bytes:
    """Return a tensor's values as a flat JSON array.

    The array is made in pieces, so that other threads are not blocked for long.
    """
    flat, pieces = values.ravel(), []
    for start in range(0, flat.size, _PIECE):
        items = flat[start : start + _PIECE].tolist()
        if values.dtype.kind in "OS":
            items = [_text(item) for item in items]
        pieces.append(json.dumps(items, separators=(",", ":"))[1:-1])
    return f"[{','.join(pieces)}]".encode()


_PIECE = 2**13
"""Number of values that are converted to JSON at a time."""


def _text(item: Any) -> Any:
    return item.decode(errors="replace") if isinstance(item, bytes) else item


def _short(value: object) -> str:
    """Return a value as text for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
