"""Executables: what is packed comes back, and every damage is named."""

from __future__ import annotations

import struct
import zlib

import pytest

from delegraph_edgetpu.errors import ExecutableError
from delegraph_edgetpu.executable import PAGE, Executable, RealExecutable, parse

EXECUTABLE = Executable(
    b"model" * 2000, 0xFEDC_BA98_7654_3210, 5000, 13, cached_bytes=4000, multiply_adds=123456789
)
PACKED = EXECUTABLE.pack()


def with_header(position: int, format: str, value: int) -> bytes:
    """Return the executable with one field replaced and a valid header checksum."""
    content = bytearray(PACKED)
    struct.pack_into(format, content, position, value)
    struct.pack_into("<I", content, 60, zlib.crc32(content[:60]))
    return bytes(content)


def test_what_is_packed_comes_back() -> None:
    assert parse(PACKED) == EXECUTABLE


@pytest.mark.parametrize("size", [0, 1, PAGE - 64, PAGE - 63, 3 * PAGE])
def test_length_is_a_multiple_of_a_page(size: int) -> None:
    packed = Executable(bytes(size), 1, 0, 14).pack()
    assert len(packed) % PAGE == 0
    assert len(packed) - size - 64 < PAGE
    assert parse(packed) == Executable(bytes(size), 1, 0, 14)


def test_identifier_stands_where_the_real_one_does() -> None:
    assert PACKED[4:8] == b"DGE1"


def test_real_executable_is_recognised_whatever_else_it_holds() -> None:
    content = b"\xc8\x0f\0\0DWN1" + bytes(100)
    assert parse(content) == RealExecutable(content)


@pytest.mark.parametrize("byte", [*range(64), 64, 5000, 64 + 9999])
def test_any_damaged_byte_is_an_error(byte: int) -> None:
    content = bytearray(PACKED)
    content[byte] ^= 0x10
    with pytest.raises(ExecutableError):
        parse(bytes(content))


@pytest.mark.parametrize("length", [0, 3, 7, 8, 63, 64, 4096, len(PACKED) - 1])
def test_any_truncation_is_an_error_that_names_the_length(length: int) -> None:
    with pytest.raises(ExecutableError, match=rf"has {length} bytes, expected"):
        parse(PACKED[:length])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (PACKED[:4] + b"TFL3" + PACKED[8:], r"byte 4 .*'TFL3', expected 'DGE1'.*'DWN1'"),
        (with_header(8, "<I", 2), r"byte 8 .*format version 2, expected 1"),
        (with_header(0, "<I", 128), r"byte 0 .*starts at 128, expected 64"),
        (with_header(16, "<Q", 0), r"byte 16 .*caching token 0"),
        (with_header(48, "<Q", 1 << 40), r"has 12288 bytes, expected 1099511631872"),
        (PACKED[:70] + b"?" + PACKED[71:], r"bytes 64 to 10063 have the checksum .*byte 56"),
        (PACKED[:20] + b"?" + PACKED[21:], r"bytes 0 to 59 have the checksum .*byte 60"),
        (PACKED[:-1] + b"x", r"behind its model, from byte 10064 on"),
    ],
)
def test_error_names_what_and_where(content: bytes, message: str) -> None:
    with pytest.raises(ExecutableError, match=message):
        parse(content)
