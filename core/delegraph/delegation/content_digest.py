"""SHA-256 digests of model files, remembered while the files do not change.

If all else is cached, hashing a large model takes most of an interpreter's start. So a digest is
stored under the file's identity, see ``settled_identity``. A file changed in the last few seconds
is always hashed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.delegation.blob_cache import BlobCache
from delegraph.delegation.hashing import hex_digest
from delegraph.graph.model_files import mapped_file, settled_identity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.delegation.cache_files import AnyPath
    from delegraph.graph.model import Model

NAMESPACE, VERSION = "model-digests", "1"

LEAST = 1 << 20
"""Number of bytes of a file from which on its digest is stored."""


def model_digest(model: Model, cache_dir: AnyPath | None = None) -> str:
    """Return the SHA-256 of a model and its external constants, but not of its entries.

    Args:
        model: the model.
        cache_dir: the folder of the cache; None for the user's own.
    """
    size = None if model.entries is None else model.entries.model_bytes
    digest = content_digest(model.content[:size], cache_dir)
    if not model.external_buffers.files:
        return digest
    parts = [content_digest(file, cache_dir) for file in model.external_buffers.files]
    return hex_digest("".join([digest, *parts]).encode())


def content_digest(content: NDArray[Any], cache_dir: AnyPath | None = None) -> str:
    """Return the SHA-256 of *content* in hexadecimal digits; a mapped file's digest is cached.

    Args:
        content: ``[bytes], uint8``; a mapped file, a part of one, or any other memory.
        cache_dir: the folder of the cache; None for the user's own.
    """
    file = mapped_file(content)
    status = None if file is None else file.status
    if file is None or status is None or content.nbytes < LEAST:
        return hex_digest(content.data)
    identity = settled_identity(status)
    if identity is None:
        return hex_digest(content.data)
    place: tuple[int, ...] = ()
    if content.nbytes != status.st_size:  # a section, or the model without its entries
        begin = content.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
        place = begin, content.nbytes
    key = " ".join(map(str, (*identity, *place)))
    cache = BlobCache(NAMESPACE, VERSION, cache_dir)
    found = cache.read(key)
    if found is not None and len(found) == 64:
        return found.decode("ascii", "replace")
    digest = hex_digest(content.data)
    cache.keep(key, digest.encode())
    return digest
