"""Executables: partitions as models, in an envelope with a checksum.

The real compiler's executables are flatbuffers with the identifier ``DWN1`` and instructions of a
processor that is not documented. Executables of this package have the partition as an ordinary
``.tflite`` model after a header of 64 bytes. Their identifier, ``DGE1``, is at the same position:

======  ====  ============================================================
byte    size  what (little-endian)
======  ====  ============================================================
0       4     where the model starts: 64
4       4     ``DGE1``
8       4     version of this format: 1
12      4     oldest runtime version that may execute it
16      8     parameter caching token, not 0
24      8     bytes of parameters
32      8     bytes of them that are cached on the chip
40      8     multiply-adds of one inference
48      8     bytes of the model
56      4     CRC-32 of the model
60      4     CRC-32 of bytes 0 to 59
64            the model, then zeros up to a multiple of 4096
======  ====  ============================================================

Source:
    executable/executable.fbs of google-coral/libedgetpu, for the content of real executables.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from delegraph_edgetpu.errors import ExecutableError

IDENTIFIER = b"DGE1"
REAL_IDENTIFIER = b"DWN1"
FORMAT_VERSION = 1
PAGE = 4096
"""Number of bytes of which the length of every executable is a multiple."""

_HEADER = struct.Struct("<I4sIIQQQQQI")
_CHECKSUM = struct.Struct("<I")
_MODEL_START = _HEADER.size + _CHECKSUM.size


@dataclass(frozen=True)
class RealExecutable:
    """An executable of the real compiler, which only the device can run.

    Attributes:
        content: bytes of the executable.
    """

    content: bytes


@dataclass(frozen=True)
class Executable:
    """A partition in the form that the custom operator stores.

    Attributes:
        model: bytes of the partition as a ``.tflite`` file.
        caching_token: executables with the same token share the parameter cache; 1 to 2**64 - 1.
        parameter_bytes: bytes of weights and biases.
        runtime_version: oldest runtime version that may run the executable.
        cached_bytes: the part of *parameter_bytes* that is in the cache; all other bytes are
            streamed.
        multiply_adds: number of multiply-adds in one inference.

    >>> executable = Executable(b"a model", 7, 100, 14)
    >>> len(executable.pack()), parse(executable.pack()) == executable
    (4096, True)
    """

    model: bytes
    caching_token: int
    parameter_bytes: int
    runtime_version: int
    cached_bytes: int = 0
    multiply_adds: int = 0

    def pack(self) -> bytes:
        """Return the executable as bytes, whose length is a multiple of 4096."""
        header = _HEADER.pack(
            _MODEL_START,
            IDENTIFIER,
            FORMAT_VERSION,
            self.runtime_version,
            self.caching_token,
            self.parameter_bytes,
            self.cached_bytes,
            self.multiply_adds,
            len(self.model),
            zlib.crc32(self.model),
        )
        content = header + _CHECKSUM.pack(zlib.crc32(header)) + self.model
        return content + bytes(-len(content) % PAGE)


def parse(content: bytes) -> Executable | RealExecutable:
    """Return the executable in *content*, in the format of this package or the real compiler.

    Raises:
        ExecutableError: *content* is no executable, or is damaged; the message names the fault and
            its byte.
    """
    identifier = content[4:8]
    if identifier == REAL_IDENTIFIER:
        return RealExecutable(content)
    if len(content) < _MODEL_START:
        raise ExecutableError(
            f"the executable has {len(content)} bytes, expected at least {_MODEL_START}"
        )
    if identifier != IDENTIFIER:
        found = identifier.decode("ascii", "backslashreplace")
        raise ExecutableError(
            f"byte 4 of the executable: identifier '{found}', expected 'DGE1' (made by `delegraph "
            "edgetpu compile`) or 'DWN1' (made by the real compiler)"
        )
    return _parse_own(content)


def _parse_own(content: bytes) -> Executable:
    header = content[: _HEADER.size]
    start, _, version, runtime, token, parameters, cached, multiply_adds, length, model_sum = (
        _HEADER.unpack(header)
    )
    (header_sum,) = _CHECKSUM.unpack_from(content, _HEADER.size)
    if version != FORMAT_VERSION:
        raise ExecutableError(
            f"byte 8 of the executable: format version {version}, expected {FORMAT_VERSION}; "
            "compile the model with this version of delegraph-edgetpu"
        )
    _require_checksum(header, header_sum, "bytes 0 to 59", _HEADER.size)
    if start != _MODEL_START:
        raise ExecutableError(
            f"byte 0 of the executable: the model starts at {start}, expected {_MODEL_START}"
        )
    padded = start + length + -(start + length) % PAGE
    if len(content) != padded:
        raise ExecutableError(
            f"the executable has {len(content)} bytes, expected {padded}: a model of {length} "
            f"bytes from byte {start} on, and zeros up to a multiple of {PAGE}"
        )
    if token == 0:
        raise ExecutableError("byte 16 of the executable: caching token 0, expected another number")
    model = content[start : start + length]
    _require_checksum(model, model_sum, f"bytes {start} to {start + length - 1}", 56)
    if content[start + length :].strip(b"\0"):
        raise ExecutableError(
            f"the executable holds something behind its model, from byte {start + length} on; "
            "expected zeros"
        )
    return Executable(model, token, parameters, runtime, cached, multiply_adds)


def _require_checksum(content: bytes, expected: int, where: str, byte: int) -> None:
    found = zlib.crc32(content)
    if found != expected:
        raise ExecutableError(
            f"the executable is damaged: {where} have the checksum {found:#010x}, expected "
            f"{expected:#010x} (byte {byte})"
        )
