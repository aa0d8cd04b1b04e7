"""Files of many small arrays: an index, and the data of all one after the other.

Compressed together they take a fraction of what one file or archive member each would. Nothing is
pickled: strings are lengths and bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - makes NumPy know bfloat16 by name
import numpy as np
from numpy.typing import NDArray

Packed = list[Any]
"""Of one array: dtype, shape, and where its data begins and how long it is."""


def encode(array: NDArray[Any]) -> tuple[str, bytes]:
    """Return the name of a dtype, and an array's data; strings are ``bytes`` objects."""
    if not array.dtype.hasobject:
        return array.dtype.name, array.tobytes()
    strings = [value.encode() if isinstance(value, str) else bytes(value) for value in array.flat]
    return "string", np.array([len(s) for s in strings], "<u4").tobytes() + b"".join(strings)


def pack(arrays: Sequence[NDArray[Any]], data: bytearray) -> list[Packed]:
    """Append *arrays* to the data; return a description by which :func:`unpack` finds them."""
    packed = []
    for array in arrays:
        dtype, content = encode(array)
        packed.append([dtype, list(array.shape), len(data), len(content)])
        data += content
    return packed


def unpack(packed: Sequence[Packed], data: bytes) -> list[NDArray[Any]]:
    """Return the arrays that were packed."""
    return [_decode(dtype, shape, data[at : at + size]) for dtype, shape, at, size in packed]


def save(path: Path, index: Any, data: bytes | bytearray) -> int:
    """Write a file, and return its number of bytes."""
    text = json.dumps(index, separators=(",", ":")).encode()
    np.savez_compressed(
        path, index=np.frombuffer(text, np.uint8), data=np.frombuffer(bytes(data), np.uint8)
    )
    return path.stat().st_size


def load(path: Path) -> tuple[Any, bytes]:
    """Return the index and the data of a file."""
    with np.load(path) as file:
        return json.loads(file["index"].tobytes()), file["data"].tobytes()


def _decode(dtype: str, shape: list[int], content: bytes) -> NDArray[Any]:
    if dtype != "string":
        return np.frombuffer(content, np.dtype(dtype)).reshape(shape)
    result = np.empty(shape, object)
    lengths = np.frombuffer(content, "<u4", result.size).tolist()
    ends = 4 * result.size + np.cumsum(lengths, dtype=np.int64)
    for i, (end, length) in enumerate(zip(ends.tolist(), lengths, strict=True)):
        result.flat[i] = content[end - length : end]
    return result
