"""Compiled kernels as bytes: a line of JSON, then the object code of each kernel.

Whether they are as they were written is the cache's to say, and who wrote them as well; see
:mod:`delegraph.delegation.blob_cache`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from delegraph.errors import DelegateError

Objects = dict[str, tuple[str, bytes]]
"""Kernel name to the symbol of its entry and its object code."""


def pack(objects: Mapping[str, tuple[str, bytes]]) -> bytes:
    """Return kernels as bytes."""
    header = [[name, symbol, len(code)] for name, (symbol, code) in objects.items()]
    return json.dumps(header).encode() + b"\n" + b"".join(code for _, code in objects.values())


def unpack(packed: bytes) -> Objects:
    """Return the kernels that :func:`pack` made bytes of.

    Raises:
        DelegateError: it made others; no size leads outside.
    """
    try:
        end = packed.index(b"\n")
        header = json.loads(packed[:end])
        kernels = [(_text(name), _text(symbol), _size(size)) for name, symbol, size in header]
    except (ValueError, TypeError, RecursionError) as error:
        raise _ill_formed() from error
    objects, start = {}, end + 1
    for name, symbol, size in kernels:
        objects[name] = (symbol, packed[start : start + size])
        start += size
    if not objects or start != len(packed):
        raise _ill_formed()
    return objects


def _ill_formed() -> DelegateError:
    remedy = "'delegraph cache clear numba_cpu' has them compiled again"
    return DelegateError(f"compiled kernels are not as they were packed; {remedy}")


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("no name")
    return value


def _size(value: object) -> int:
    if type(value) is not int or value <= 0:
        raise ValueError("no size")
    return value
