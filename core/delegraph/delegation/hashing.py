"""SHA-256 of short content without importing ``hashlib``.

``hashlib`` loads OpenSSL, which takes longer than the few hashes of a start with kept programs. The
standard library's ``random`` avoids the import in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash
    from hashlib import sha256 as _sha256

    from typing_extensions import Buffer
else:
    try:
        from _sha2 import sha256 as _sha256  # from Python 3.12 on
    except ImportError:
        try:
            from _sha256 import sha256 as _sha256
        except ImportError:  # Python was built without its own hash functions
            from hashlib import sha256 as _sha256

SHORT = 1 << 20
"""Number of bytes from which on ``hashlib`` is faster, including its import."""


def sha256(content: Buffer = b"") -> _Hash:
    """Return the SHA-256 hash object of *content*, with the methods of ``hashlib``'s.

    >>> sha256(b"abc").hexdigest()[:16]
    'ba7816bf8f01cfea'
    """
    return _sha256(content)


def hex_digest(*pieces: memoryview | bytes) -> str:
    """Return the SHA-256 of the concatenated *pieces*, in hexadecimal digits."""
    found = sha256()
    if sum(memoryview(piece).nbytes for piece in pieces) >= SHORT:
        import hashlib

        found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()
