"""Compiled kernels as bytes: a line of JSON, then the object code of each kernel.

The cache, :mod:`delegraph.delegation.blob_cache`, checks the digest and the owner of its files.
"""

from __future__ import annotations

from collections.abc import Mapping

Objects = dict[str, bytes]
"""Mapping from a kernel's name to its object code; :func:`symbol_of` gives the symbol's name in
it."""


def symbol_of(family: str, kernel: str) -> str:
    """Return the name of a kernel's symbol in object code and in shared libraries.

    Args:
        family: name of the kernel's family.
        kernel: name of the kernel.
    """
    return f"delegraph_{family}_{kernel}"


def pack(objects: Mapping[str, bytes]) -> bytes:
    """Return the object code of several kernels as one byte string, which :func:`unpack` reads.

    Args:
        objects: object code by the kernel's name.
    """
    import json  # here, and below: a start with a library does without

    header = [[name, len(code)] for name, code in objects.items()]
    return json.dumps(header).encode() + b"\n" + b"".join(objects.values())


def unpack(packed: bytes) -> Objects:
    """Return the object code of each kernel from the bytes that :func:`pack` made.

    Raises:
        ValueError: :func:`pack` did not make the bytes; sizes are checked before use.
    """
    import json

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
