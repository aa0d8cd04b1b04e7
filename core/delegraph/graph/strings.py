"""Encoding of STRING tensors in the model file: count, offsets, bytes of the strings.

The buffer begins with little-endian ``int32`` numbers: the number of strings N, and N + 1 offsets
from the start of the buffer. The last offset is the end of the buffer. The bytes of all strings
follow the numbers.

Source:
    tflite/string_util.h; ``VerifyStringTensorBuffer``, tflite/core/tools/verifier_internal.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import MalformedModelError

_INT32 = np.dtype("<i4")


def decode_strings(raw: NDArray[np.uint8], shape: Sequence[int]) -> NDArray[np.object_]:
    """Return the strings of a STRING tensor.

    Args:
        raw: ``[bytes], uint8``; bytes after the last string do not count.
        shape: dimensions of the result.

    Returns:
        ``shape``, object: each item ``bytes``.

    Raises:
        MalformedModelError: *raw* is too short, an offset points outside of it or backwards, or the
            number of strings does not fit *shape*.

    >>> raw = encode_strings(np.array([b"one", b""], object))
    >>> decode_strings(raw, (1, 2)).tolist()
    [[b'one', b'']]
    """
    if len(raw) < 4:
        raise MalformedModelError(f"string tensor has {len(raw)} bytes, too few for a count")
    count = int(raw[:4].view(_INT32)[0])
    if count < 0 or 8 + 4 * count > len(raw):
        raise MalformedModelError(f"string tensor of {len(raw)} bytes cannot hold {count} strings")
    if count != math.prod(shape):
        raise MalformedModelError(f"string tensor of shape {tuple(shape)} holds {count} strings")
    offsets = raw[4 : 8 + 4 * count].view(_INT32)
    ordered = bool((np.diff(offsets) >= 0).all())
    if not ordered or offsets[0] < 8 + 4 * count or offsets[-1] > len(raw):
        raise MalformedModelError(f"string tensor of {len(raw)} bytes has damaged offsets")
    content, bounds = raw.tobytes(), offsets.tolist()
    strings = np.empty(count, object)
    strings[:] = [content[a:b] for a, b in pairwise(bounds)]
    return strings.reshape(tuple(shape))


def encode_strings(strings: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the stored form of an array of ``bytes`` or ``str``, ``[bytes], uint8``.

    Args:
        strings: any shape; items of type ``str`` are stored as UTF-8.
    """
    items = [s.encode() if isinstance(s, str) else bytes(s) for s in strings.reshape(-1).tolist()]
    header = 4 * (len(items) + 2)
    ends = header + np.cumsum([0, *map(len, items)])
    prefix = np.array([len(items), *ends.tolist()], _INT32).tobytes()
    return np.frombuffer(prefix + b"".join(items), np.uint8)
