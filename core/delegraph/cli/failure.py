"""Failure of a command: a line of text, a JSON object and an exit code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import click

from delegraph.cli.exit_codes import CHECK_FAILED, INTERRUPTED, exit_code_of
from delegraph.errors import (
    DelegateError,
    DelegraphError,
    MalformedModelError,
    blamed,
    in_words,
    printable,
)
from delegraph.json_records import JsonRecord
from delegraph.tools.user_code import origin


class CheckFailed(click.ClickException):
    """Error: the command's check failed; its answer is still printed."""

    exit_code = CHECK_FAILED


@dataclass(frozen=True, slots=True)
class Failure(JsonRecord):
    """Failure of a command, with its text and exit code.

    Attributes:
        type: class name of the error; ``UsageError`` for all mistakes on the command line.
        message: text of the error, on one line.
        exit_code: exit code of the process.
        is_expected: whether the error was raised on purpose.
        is_authors: whether the code of a delegate raised it; the message says where.
    """

    type: str
    message: str
    exit_code: int
    is_expected: bool = field(default=True, metadata={"json_key": None})
    is_authors: bool = field(default=False, metadata={"json_key": None})

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return the failure for an error."""
        kind = type(error).__name__
        if isinstance(error, click.Abort | KeyboardInterrupt):
            return cls("KeyboardInterrupt", "interrupted", INTERRUPTED)
        if isinstance(error, click.UsageError):
            return cls("UsageError", _on_one_line(_with_help(error)), error.exit_code)
        if isinstance(error, click.ClickException):
            return cls(kind, _on_one_line(error.format_message()), error.exit_code)
        code = exit_code_of(error) if isinstance(error, Exception) else None
        if code is not None:
            by = _by(error)
            text = f"{by}: {in_words(error)}" if by else f"{error}{_advice(error)}"
            text, place = _on_one_line(text), origin(error)
            if place is not None and f", line {place.line}" not in text:
                text += f"; at {place}"
            return cls(kind, text, code, is_authors=place is not None)
        return cls(kind, _on_one_line(f"unexpected {kind}: {error}"), CHECK_FAILED, False)


_RANGE = re.compile(r"is not a valid (integer|float)( range)?$")
"""What click says of a word in place of a number."""

_SUGGESTION = re.compile(r"\.? \(?Did you mean (.*)\?\)?$")
"""Pattern of a suggestion at the end of a message of click's."""

_INSTALLED = re.compile(r"""(?:[A-Za-z]:)?[\\/][^\s'"()]*[\\/](?:site|dist)-packages[\\/]""")
"""Pattern of the folder that packages are installed in, at the start of the path of a file."""

_DAMAGED = re.compile(r"is not a valid Flatbuffer|^'.*' is empty$")
"""Pattern of what is said of a file that is no TFLite model, or not all of one."""


def _by(error: BaseException) -> str:
    """Return the delegate and phase to blame; empty if the message names them, or for others."""
    if not isinstance(error, DelegateError):
        return blamed(error)
    if not error.delegate or repr(error.delegate) in str(error):
        return ""
    return f"delegate {error.delegate!r} failed in {error.phase or 'use'}"


def _advice(error: BaseException) -> str:
    """Return advice on an error whose message has none; empty for other errors."""
    text = str(error)
    if isinstance(error, MalformedModelError) and _DAMAGED.search(text) and "no TFLite" not in text:
        return "; check that it is a .tflite file, and copy or download it again"
    return ""


def _on_one_line(message: str) -> str:
    """Return a message on one line, its lines joined by blanks or semicolons.

    Files of installed packages are named from the package on.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    joined = "".join(line + (" " if line[-1] in ".:;," else "; ") for line in lines)
    return printable(_INSTALLED.sub("", joined.rstrip("; ")))


def _with_help(error: click.UsageError) -> str:
    """Return a usage error's message, with a hint at help and at where an option belongs."""
    message = error.format_message()
    if error.ctx is None:
        return message
    message = _SUGGESTION.sub(r" (did you mean \1?)", message)
    message = _RANGE.sub(r"is no \1", message.rstrip(".")).replace("is no float", "is no number")
    group = error.ctx.command
    if message.startswith("No such command") and isinstance(group, click.Group):
        message += f"; expected one of: {', '.join(group.list_commands(error.ctx))}"
    if isinstance(error, click.NoSuchOption) and error.option_name in _options(
        error.ctx.find_root().command
    ):
        message += f"; it goes before {error.ctx.command_path.split()[1]!r}"
    return f"{message} (see '{error.ctx.command_path} --help')"


def speak_of_options(error: DelegraphError, command: click.Command) -> None:
    """Replace argument names in an error's message by option names; see :func:`with_options`."""
    message, *rest = error.args or ("",)
    error.args = (with_options(str(message), command), *rest)


def with_options(message: str, command: click.Command) -> str:
    """Return a message with *command*'s option names in place of ``Interpreter`` arguments.

    An argument without an option stays unchanged.
    """
    from delegraph.runtime.options import PLACES  # imported here because few commands fail

    options = _options(command)
    names = {place: f"--{name.replace('_', '-')}" for name, place in PLACES.items()}

    def option(match: re.Match[str]) -> str:
        name = names.get((match[1], match[2]))
        return name if name in options else match[0]

    return re.sub(r"Interpreter\((\w+)=\w+\((\w+)=\.\.\.\)\)", option, message)


def _options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}
