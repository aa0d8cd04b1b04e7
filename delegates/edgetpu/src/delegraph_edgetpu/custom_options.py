"""Options of ``edgetpu-custom-op``: a FlexBuffer map that contains the executable.

Its keys are those of the real compiler's newer files: ``{"1": 0, "4": executable, "5": -1, "6":
[18], "7": []}``. The meaning of the numbers is not documented; they are copied from such files.
"""

from __future__ import annotations

import struct
from typing import Any

from flatbuffers import flexbuffers

from delegraph_edgetpu.errors import ExecutableError

CUSTOM_OP = "edgetpu-custom-op"
"""Custom code of the operator."""

_EXECUTABLE = "4"


_TAIL = struct.Struct("<16s 5I 3I 5I 5s 3s")
"""Layout of the bytes after the executable.

These are: keys and vectors; offsets of the keys; offset and width of the key vector, and the number
of entries; values; types of the values; the root.
"""


def write_custom_options(executable: bytes) -> bytes:
    """Return *executable* as custom options, in the byte layout of the real compiler.

    The bytes are written here, because the library's builder accepts only text, not binary strings.
    The length of an executable is a multiple of 4. So only the three offsets to positions before
    the executable's end depend on this length. Offsets count backwards.

    >>> read_custom_options(write_custom_options(b"DGE1"))
    b'DGE1'
    """
    size = len(executable)
    if size % 4:
        raise ValueError(f"the executable has {size} bytes, expected a multiple of 4")
    tail = _TAIL.pack(
        b"\x005\x006\x00\x01\x12\x047\x00\x00\x00\x05\x00\x00\x00",
        *(size + 24, size + 26, 23, 25, 24),
        *(20, 4, 5),
        *(0, size + 52, 0xFFFFFFFF, 54, 53),
        bytes([_INT, _STRING, _INT, _VECTOR, _VECTOR]),
        bytes([25, _MAP, 1]),
    )
    return b"1\x004\x00" + size.to_bytes(4, "little") + executable + tail


_INT, _STRING, _MAP, _VECTOR = 1 << 2 | 2, 5 << 2 | 2, 9 << 2 | 2, 10 << 2
"""FlexBuffer types, each with the width of its numbers: 2 means four bytes, 0 one byte."""


def read_custom_options(content: bytes) -> bytes:
    """Return the executable in *content*, the custom options of an ``edgetpu-custom-op``.

    Raises:
        ExecutableError: the options are not a FlexBuffer map, or have no executable.
    """
    what = f"the custom options of {CUSTOM_OP} ({len(content)} bytes)"
    if not content:
        raise ExecutableError(f"{what} are empty, expected a FlexBuffer map with an executable")
    try:
        root: Any = flexbuffers.GetRoot(content)
        entries = _entries(root) if root.IsMap else None
    except Exception as error:  # damage shows as struct.error, IndexError and other errors
        raise ExecutableError(f"{what} are no sound FlexBuffer: {error!r}; truncated?") from error
    if entries is None:
        raise ExecutableError(f"{what} are no FlexBuffer map; truncated?")
    if _EXECUTABLE not in entries:
        keys = ", ".join(map(repr, sorted(entries))) or "none"
        raise ExecutableError(f"{what} have no key '{_EXECUTABLE}' for the executable, but {keys}")
    return _string(entries[_EXECUTABLE], what)


def _entries(root: Any) -> dict[str, Any]:
    """Return the entries of the map *root*, by key, with undecoded values.

    An invalid number of entries is an error.
    """
    entries = root.AsMap
    count, end = len(entries), 64
    if count > end:
        raise ValueError(f"{count} entries, expected 3 to {end}")
    return {
        key.AsKey: value
        for key, value in zip(
            (entries.Keys[i] for i in range(count)),
            (entries.Values[i] for i in range(count)),
            strict=True,
        )
    }


def _string(value: Any, what: str) -> bytes:
    if not value.IsString:
        raise ExecutableError(f"key '{_EXECUTABLE}' of {what} is no string, expected an executable")
    try:
        announced = len(flexbuffers.String(value._Indirect(), value._byte_width))
        content = bytes(value.AsStringBytes)
    except Exception as error:  # damage shows as struct.error, IndexError and other errors
        raise ExecutableError(f"key '{_EXECUTABLE}' of {what} is damaged: {error!r}") from error
    if len(content) != announced:
        raise ExecutableError(
            f"key '{_EXECUTABLE}' of {what} is cut off: {len(content)} of {announced} bytes"
        )
    return content
