"""Compiled kernels as bytes: a line of JSON, then the object code of each kernel.

Whether they are as they were written is the cache's to say, and who wrote them as well; see
:mod:`delegraph.delegation.blob_cache`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

Objects = dict[str, bytes]
"""Kernel name to its object code, in which the kernel is called :func:`symbol_of` it."""


def symbol_of(family: str, kernel: str) -> str:
    """Return the name of a kernel in object code and in libraries."""
    return f"delegraph_{family}_{kernel}"


def pack(objects: Mapping[str, bytes]) -> bytes:
    """Return kernels as bytes."""
    header = [[name, len(code)] for name, code in objects.items()]
    return json.dumps(header).encode() + b"\n" + b"".join(objects.values())


def unpack(packed: bytes) -> Objects:
    """Return the kernels that :func:`pack` made bytes of.

    Raises:
        ValueError: it made others; no size leads outside.
    """
    try:
        end = packed.index(b"\n")
        kernels = [(_text(name), _size(size)) for name, size in json.loads(packed[:end])]
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError("compiled kernels are not as they were packed") from error
    objects, start = {}, end + 1
    for name, size in kernels:
        objects[name] = packed[start : start + size]
        start += size
    if not objects or start != len(packed):
        raise ValueError("compiled kernels are not as they were packed")
    return objects


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("no name")
    return value


def _size(value: object) -> int:
    if type(value) is not int or value <= 0:
        raise ValueError("no size")
    return value
