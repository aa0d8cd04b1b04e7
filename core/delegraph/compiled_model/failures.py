"""Errors of ``CompiledModel`` with the status codes and first words of the official class."""

from __future__ import annotations

from enum import IntEnum

from delegraph.errors import ArgumentTypeError, CompiledModelError
from delegraph.runtime.arguments import as_index, require_c_int


class Status(IntEnum):
    """Status codes of errors. Source: LiteRtStatus, litert/c/litert_common.h."""

    INVALID_ARGUMENT = 1
    RUNTIME_FAILURE = 3
    NOT_FOUND = 6
    INDEX_OUT_OF_RANGE = 1000


def failure(status: Status, message: str, cause: str = "") -> CompiledModelError:
    """Return an error with *status* and *message*, and with *cause* on a separate line."""
    text = f"CompiledModel error: code={int(status)}, message={message}"
    return CompiledModelError(f"{text}\n└ {cause}" if cause else text, code=int(status))


def run_failure(cause: str) -> CompiledModelError:
    """Return the error of a run that failed for *cause*."""
    return failure(Status.RUNTIME_FAILURE, "Failed to invoke the compiled model", cause)


def allocation_failure(cause: str = "") -> CompiledModelError:
    """Return the error of a call that needs allocated tensors; *cause* prevented the allocation."""
    return failure(Status.RUNTIME_FAILURE, "Failed to allocate tensors", cause)


def checked_text(what: str, value: object) -> str:
    """Return *value*, text or UTF-8 bytes, as text; *what* names it in the error.

    Raises:
        ArgumentTypeError: the value is neither text nor bytes.
    """
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} is text, not {value!r}")
    return value


def checked_c_int(what: str, value: object) -> int:
    """Return *value* as an int that fits a C ``int``; *what* names it in the error.

    Raises:
        ArgumentTypeError: the value is no integer, or does not fit.
    """
    number = as_index(what, value)
    require_c_int(what, number)
    return number
