"""Compiled kernels as bytes: a checksum, a line of JSON, then the object code of each kernel.

The checksum covers all that comes after it, and the place in the cache for which the bytes were
made: a file that is damaged, or was moved from another version or processor, is as good as none.
It does not tell who wrote them; see :mod:`delegraph.delegation.cache_files`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

Objects = dict[str, tuple[str, bytes]]
"""Kernel name to the symbol of its entry and its object code."""

_DIGEST = 32  # bytes of a SHA-256


def pack(objects: Mapping[str, tuple[str, bytes]], place: str) -> bytes:
    """Return kernels as bytes that are good for one place in the cache."""
    header = [[name, symbol, len(code)] for name, (symbol, code) in objects.items()]
    body = b"".join(code for _, code in objects.values())
    content = json.dumps(header).encode() + b"\n" + body
    return _checksum(content, place) + content


def unpack(packed: bytes, place: str) -> Objects | None:
    """Return the kernels that :func:`pack` made bytes of; None when they are not as it left them.

    Nothing is looked at before the checksum is right. Even then no size may lead outside.
    """
    if packed[:_DIGEST] != _checksum(memoryview(packed)[_DIGEST:], place):
        return None
    try:
        end = packed.index(b"\n", _DIGEST)
        header = json.loads(packed[_DIGEST:end])
        kernels = [(_text(name), _text(symbol), _size(size)) for name, symbol, size in header]
    except (ValueError, TypeError, RecursionError):
        return None
    objects, start = {}, end + 1
    for name, symbol, size in kernels:
        objects[name] = (symbol, packed[start : start + size])
        start += size
    return objects if objects and start == len(packed) else None


def _checksum(content: bytes | memoryview, place: str) -> bytes:
    digest = hashlib.sha256(place.encode() + b"\0")
    digest.update(content)
    return digest.digest()


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("no name")
    return value


def _size(value: object) -> int:
    if type(value) is not int or value <= 0:
        raise ValueError("no size")
    return value
