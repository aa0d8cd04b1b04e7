"""Reads the text that C code passes to ``ReportError(context, format, ...)``.

ctypes only supports callbacks with a fixed number of arguments. But each platform's calling
convention fixes the registers and stack slots of variable arguments. So a callback that declares
all these registers and slots receives the arguments, with unrelated values after them. The callback
makes a ``va_list`` of all values, and libc's ``vsnprintf`` reads as many as the format needs.

========================  =======================================================================
x86-64 Linux and macOS    four integer registers, eight vector registers, then the stack
AArch64 Linux             six integer registers, eight vector registers, then the stack
AArch64 macOS             the stack alone
elsewhere                 not known: the format is reported as it is
========================  =======================================================================

Source:
    System V ABI, AMD64 supplement, 3.5.7; Procedure Call Standard for the Arm 64-bit Architecture,
    appendix on variable arguments; Apple, "Writing ARM64 code for Apple platforms".
"""

from __future__ import annotations

import ctypes
import logging
import platform
import sys
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_char_p, c_double, c_int, c_uint64, c_void_p
from typing import Any, NamedTuple

from delegraph.native.abi import libc

logger = logging.getLogger(__name__)

STACK_WORDS = 16
"""Number of 8-byte words read from the caller's stack; arguments after these are read as 0."""

_LONGEST = 4096  # bytes of a message


class Convention(NamedTuple):
    """Registers and stack that contain the caller's arguments after context and format.

    Attributes:
        integers: number of integer registers for arguments.
        vectors: number of vector registers for arguments.
        skipped: whether variable arguments are never in integer registers.
    """

    integers: int
    vectors: int
    skipped: bool = False


_CONVENTIONS = {
    ("linux", "x86_64"): Convention(4, 8),
    ("darwin", "x86_64"): Convention(4, 8),
    ("linux", "aarch64"): Convention(6, 8),
    ("darwin", "arm64"): Convention(6, 0, skipped=True),
}


def convention() -> Convention | None:
    """Return this platform's calling convention, or None if it is not known."""
    return _CONVENTIONS.get((sys.platform, platform.machine()))


def report_error_callback(receive: Callable[[int, str], None]) -> Any:
    """Return a C function for the field ``TfLiteContext.ReportError``.

    Args:
        receive: function that is called with the context's address and the formatted text; it must
            not raise an error.
    """
    known = convention()
    if known is None:

        def without_arguments(context: int, text: bytes | None) -> None:
            receive(context, in_text(text or b""))

        return CFUNCTYPE(None, c_void_p, c_char_p)(without_arguments)

    words = known.integers

    def report(context: int, text: bytes | None, *places: Any) -> None:
        text = text or b""
        try:
            if b"%" in text:
                doubles = places[words : words + known.vectors]
                stack = places[words + known.vectors :]
                text = formatted(text, known, places[:words], doubles, stack)
        except Exception:
            logger.warning("a delegate's message %r cannot be formatted", text, exc_info=True)
        receive(context, in_text(text))

    arguments = [c_uint64] * words + [c_double] * known.vectors + [c_uint64] * STACK_WORDS
    return CFUNCTYPE(None, c_void_p, c_char_p, *arguments)(report)


def in_text(message: bytes) -> str:
    """Return the C string *message* as Python text."""
    return message.decode("utf-8", errors="replace").strip()


def formatted(
    text: bytes,
    known: Convention,
    integers: Sequence[int],
    doubles: Sequence[float],
    stack: Sequence[int],
) -> bytes:
    """Return *text* formatted as by ``printf``, with arguments from registers and stack.

    *integers*, *doubles* and *stack* are the values in registers and on the stack; *known* is the
    calling convention.
    """
    overflow = (c_uint64 * (len(stack) + 64))(*stack)  # zeros for missing arguments
    if known.skipped:
        return _vsnprintf(text, ctypes.addressof(overflow))
    arguments: Any
    saved: Any
    if known.integers == 4:
        saved, arguments = _x86_64(integers, doubles, overflow)
    else:
        saved, arguments = _aarch64(integers, doubles, overflow)
    message = _vsnprintf(text, ctypes.addressof(arguments))
    del saved  # the arguments pointed into it until now
    return message


class _X86List(ctypes.Structure):
    """C struct of ``va_list`` on x86-64 System V."""

    _fields_ = [
        ("gp_offset", c_int),
        ("fp_offset", c_int),
        ("overflow_arg_area", c_void_p),
        ("reg_save_area", c_void_p),
    ]


class _ArmList(ctypes.Structure):
    """C struct of ``va_list`` on AArch64 Linux."""

    _fields_ = [
        ("stack", c_void_p),
        ("gr_top", c_void_p),
        ("vr_top", c_void_p),
        ("gr_offs", c_int),
        ("vr_offs", c_int),
    ]


def _x86_64(integers: Sequence[int], doubles: Sequence[float], stack: Any) -> tuple[Any, Any]:
    """Return the saved registers, and an x86-64 ``va_list`` that points to them and to *stack*.

    *integers* and *doubles* are the values of the integer and vector registers.
    """
    saved = (ctypes.c_uint8 * (6 * 8 + 8 * 16))()
    start = ctypes.addressof(saved)
    (c_uint64 * 4).from_address(start + 16)[:] = [*integers]
    for i, value in enumerate(doubles):
        c_double.from_address(start + 48 + 16 * i).value = value
    return saved, _X86List(16, 48, ctypes.addressof(stack), start)


def _aarch64(integers: Sequence[int], doubles: Sequence[float], stack: Any) -> tuple[Any, Any]:
    """Return the saved registers, and an AArch64 ``va_list`` that points to them and to *stack*.

    *integers* and *doubles* are the values of the integer and vector registers, without the two
    registers of the context and the format.
    """
    saved = (ctypes.c_uint8 * (6 * 8 + 8 * 16))()
    start = ctypes.addressof(saved)
    (c_uint64 * 6).from_address(start)[:] = [*integers]
    for i, value in enumerate(doubles):
        c_double.from_address(start + 48 + 16 * i).value = value
    top = start + 48
    return saved, _ArmList(ctypes.addressof(stack), top, top + 128, -48, -128)


def _vsnprintf(text: bytes, arguments: int) -> bytes:
    """Return *text* formatted with *arguments*, the address of a ``va_list`` or of plain words."""
    message = ctypes.create_string_buffer(_LONGEST)
    print_to = CFUNCTYPE(c_int, c_void_p, ctypes.c_size_t, c_char_p, c_void_p)(
        ("vsnprintf", libc())
    )
    print_to(ctypes.addressof(message), _LONGEST, text, arguments)
    return message.value
