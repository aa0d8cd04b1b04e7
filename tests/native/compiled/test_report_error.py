"""The text of a C function with variable arguments, read from where the caller has put them."""

from __future__ import annotations

import ctypes
import platform
import sys
from ctypes import CFUNCTYPE, c_char_p, c_double, c_int, c_void_p
from typing import Any

import pytest

from delegraph.native.compiled.report_error import (
    Convention,
    convention,
    formatted,
    report_error_callback,
)

needs_convention = pytest.mark.skipif(
    convention() is None, reason="where variable arguments are passed is not known here"
)

X86_64 = Convention(4, 8)
AARCH64 = Convention(6, 8)


def reported(text: bytes, *arguments: Any) -> str:
    """Call the callback as C would, and return what it received."""
    received: list[tuple[int, str]] = []
    callback = report_error_callback(lambda context, said: received.append((context, said)))
    report = CFUNCTYPE(None, c_void_p, c_char_p, *(type(a) for a in arguments))(
        ctypes.cast(callback, c_void_p).value or 0
    )
    report(4096, text, *arguments)
    ((context, said),) = received
    assert context == 4096
    return said


def test_a_text_without_arguments_is_reported_as_it_is() -> None:
    assert reported(b"no arguments\n") == "no arguments"
    assert reported("größer".encode()) == "größer"
    assert reported(b"\xff") == "�"


@needs_convention
@pytest.mark.skipif(sys.platform == "darwin", reason="a call with fixed arguments differs there")
def test_arguments_are_found_in_registers_and_behind_them() -> None:
    ints = [c_int(i) for i in range(12)]
    assert reported(b" ".join([b"%d"] * 12), *ints) == "0 1 2 3 4 5 6 7 8 9 10 11"
    doubles = [c_double(i + 0.5) for i in range(11)]
    expected = "0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 9.5 10.5"
    assert reported(b" ".join([b"%.1f"] * 11), *doubles) == expected


@needs_convention
@pytest.mark.skipif(sys.platform == "darwin", reason="a call with fixed arguments differs there")
def test_kinds_of_arguments_may_alternate() -> None:
    text = b"%s %d %.2f %-4d| %s %e %x %c%%"
    arguments = (c_char_p(b"a"), c_int(-1), c_double(2.5), c_int(3), c_char_p(b"b"))
    more = (c_double(1e6), c_int(255), c_int(33))
    assert reported(text, *arguments, *more) == "a -1 2.50 3   | b 1.000000e+06 ff !%"


def test_a_platform_that_is_not_known_reports_the_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert convention() is None
    assert reported(b"%d of %s") == "%d of %s"


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [
        ("linux", "x86_64", X86_64),
        ("darwin", "x86_64", X86_64),
        ("linux", "aarch64", AARCH64),
        ("darwin", "arm64", Convention(6, 0, skipped=True)),
        ("win32", "AMD64", None),
    ],
)
def test_conventions(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, expected: Convention | None
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert convention() == expected


@pytest.mark.skipif(convention() != X86_64, reason="the arguments are laid out for x86-64")
def test_a_long_message_is_cut_and_arguments_far_away_read_as_zero() -> None:
    far = b" ".join([b"%d"] * 30)
    assert formatted(far, X86_64, [1] * 4, [0.0] * 8, [2] * 3) == b" ".join(
        [b"1"] * 4 + [b"2"] * 3 + [b"0"] * 23
    )
    assert len(formatted(b"%9999d", X86_64, [1] * 4, [0.0] * 8, [])) == 4095
