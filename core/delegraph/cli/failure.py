"""Failure of a command: a line of text, a JSON object and an exit code."""

from __future__ import annotations

import contextlib
import errno
import re
from dataclasses import dataclass, field
from pathlib import Path

import click

from delegraph.cli.exit_codes import CHECK_FAILED, INTERRUPTED, exit_code_of
from delegraph.errors import (
    DelegateError,
    DelegraphError,
    MalformedModelError,
    blamed,
    close_names,
    did_you_mean,
    in_words,
    printable,
)
from delegraph.json_records import JsonRecord
from delegraph.tools.user_code import origin


class CheckFailed(click.ClickException):
    """Error of a command that found something wrong; its result is printed all the same."""

    exit_code = CHECK_FAILED


@dataclass(frozen=True, slots=True)
class Failure(JsonRecord):
    """Description of an error that ends a command: message and exit code, for a user to read.

    Attributes:
        type: class name of the error; ``UsageError`` for all mistakes on the command line.
        message: text of the error, on one line.
        exit_code: exit code of the process.
        is_expected: whether the error was raised on purpose.
        place: line of a delegate's code that raised the error; empty if it is not known.
    """

    type: str
    message: str
    exit_code: int
    is_expected: bool = field(default=True, metadata={"json_key": None})
    place: str = field(default="", metadata={"json_key": None})

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Describe *error* for the user of the command line: its message on one line and exit code.

        Args:
            error: exception that ended the command.
        """
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
            is_named = place is None or f", line {place.line}" in text
            return cls(kind, text, code, place="" if is_named else str(place))
        if _is_of_official_runtime(error):
            return cls(kind, _on_one_line(_of_official_runtime(str(error))), CHECK_FAILED)
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            return cls(kind, f"the output cannot be written: {error.strerror}", CHECK_FAILED)
        return cls(kind, _on_one_line(f"unexpected {kind}: {error}"), CHECK_FAILED, False)


_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error codes of the system that mean that there is no room for a file."""

_RANGE = re.compile(r"is not a valid (integer|float)( range)?$")
"""Pattern of click's message for a word where a number is expected."""

_OUTSIDE = re.compile(r"is not in the range (?:([\d.]+)<=)?x([<>]=?)([\d.]+)$")
"""Pattern of click's message for a number that is out of an option's range."""

_OFFICIAL = {"ai_edge_litert", "tensorflow", "tflite_runtime"}
"""Packages of the official runtimes."""

UNRESOLVED_IN_LITERT = re.compile(
    r"(?:unresolved custom op|Select TensorFlow op).*\((.+)\) failed to prepare", re.DOTALL
)
"""Pattern of the official runtime's message about a custom operator without a kernel."""

_LONGEST = 300
"""Number of characters of an official runtime's error that are shown; it may list all tensors."""

_CHOICE = re.compile(r"'([^']*)' is not one of ((?:'[^']+'(?:, )?)+)$")
"""Pattern of click's message for a word that is not among an option's choices."""

_GONE = re.compile(r"(?:File|Path) '(.+)' does not exist")
"""Pattern of click's message for a path that does not exist."""

_EXTRA = re.compile(r"Got unexpected extra arguments? \((.+)\)")
"""Pattern of click's message for words that belong to no option."""

_ADDRESS = re.compile(r"(?:https?|s3|gs):/")
"""Pattern of the start of a network address; as a path, the address has one slash."""

_SUGGESTION = re.compile(r"\.? \(?Did you mean (.*)\?\)?$")
"""Pattern of a suggestion at the end of a message from click."""

_OTHER_NAMES = {
    "--against": "--reference",
    "--arena": "--budget",
    "--atol": "--tolerance",
    "--html": "--output",
    "--image": "--input",
    "--num-runs": "--runs",
    "--reference": "--against",
    "--rtol": "--tolerance",
}
"""Mapping from an option of another command or tool to the option with the same purpose here."""

_INSTALLED = re.compile(r"""(?:[A-Za-z]:)?[\\/][^\s'"()]*[\\/](?:site|dist)-packages[\\/]""")
"""Pattern of the folder in which packages are installed, at the start of a file's path."""

_DAMAGED = re.compile(r"is not a valid Flatbuffer|^'.*' is empty$")
"""Pattern of messages about a file that is no TFLite model, or an incomplete one."""


def _by(error: BaseException) -> str:
    """Return text that names the delegate, and its phase, that raised *error*.

    The text is empty if they are unknown, or if the message names them.
    """
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


def _of_official_runtime(text: str) -> str:
    """Return the text of an error of the official runtime, with advice."""
    is_reference = text.startswith("the reference: ")
    found = None if is_reference else UNRESOLVED_IN_LITERT.search(text)
    if found is not None:
        advice = remedy_in_options(found[1]).replace(" and was not applied:", ",")
        return (
            f"the official runtime has no kernel of {found[1]}, and no delegate takes it: "
            f"{advice}; 'delegraph explain' says why a delegate leaves it"
        )
    advice = "" if is_reference else "; --runtime delegraph may run it, or say more"
    return f"the official runtime fails: {_start(text)}{advice}"


def remedy_in_options(custom_op: str) -> str:
    """Return advice how to get a custom operator, with options in place of arguments."""
    from delegraph.runtime.unresolved_ops import remedy

    return re.sub(_DELEGATE, _DELEGATE_OPTION, remedy(custom_op))


def _is_of_official_runtime(error: BaseException) -> bool:
    """Whether code of LiteRT or TensorFlow Lite raised *error*."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _OFFICIAL


def _start(text: str) -> str:
    """Return *text*, shortened if it exceeds the longest error message of one line."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... (--traceback shows all)"


def _on_one_line(message: str) -> str:
    """Return a message on one line, its lines joined by blanks or semicolons.

    Paths of installed packages' files begin at the package.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    joined = "".join(line + (" " if line[-1] in ".:;," else "; ") for line in lines)
    return printable(_INSTALLED.sub("", joined.rstrip("; ")))


def _with_help(error: click.UsageError) -> str:
    """Return a usage error's message, with advice to use ``--help`` or to move an option."""
    message = error.format_message()
    if error.ctx is None:
        return message
    if isinstance(error, click.NoSuchOption):
        other = _OTHER_NAMES.get(error.option_name)
        if other in _options(error.ctx.command):
            message = f"No such option {error.option_name!r}. Did you mean {other!r}?"
    message = _SUGGESTION.sub(r" (did you mean \1?)", message)
    message = _RANGE.sub(r"is no \1", message.rstrip(".")).replace("is no float", "is no number")
    message = _OUTSIDE.sub(_limits, message)
    if choice := _CHOICE.search(message):
        words = re.findall("'([^']+)'", choice[2])
        if close := close_names(choice[1], words):
            message += f" (did you mean {close[0]!r}?)"
    if gone := _GONE.search(message):
        message += _similar_file(Path(gone[1]))
    if extra := _EXTRA.search(message):
        message += _for_extra(extra[1].split()[0], error.ctx.command)
    group = error.ctx.command
    if message.startswith("No such command") and isinstance(group, click.Group):
        message += f"; expected one of: {', '.join(group.list_commands(error.ctx))}"
    if isinstance(error, click.NoSuchOption) and error.option_name in _options(
        error.ctx.find_root().command
    ):
        message += f"; it goes before {error.ctx.command_path.split()[1]!r}"
    return f"{message} (see '{error.ctx.command_path} --help')"


def _for_extra(word: str, command: click.Command) -> str:
    """Return advice on an unexpected *word*, which is a delegate's name or an input's value."""
    from delegraph.cli.options.official_flags import own_words
    from delegraph.plugins import installed

    options = _options(command)
    if word.endswith(".tflite"):
        has_graph = own_words(command.name or "", ["--graph=MODEL"]) == ["MODEL"]
        return "; MODEL and --graph=MODEL are the same, give one" if has_graph else ""
    if "--delegate" in options and word in {offer.spec.name for offer in installed().offers()}:
        return f"; a delegate needs -d: -d {word}"
    return f"; an input's value needs --input: --input {word}" if "--input" in options else ""


def _limits(outside: re.Match[str]) -> str:
    """Return in words the numbers that an option accepts, for an error about another number.

    Args:
        outside: match of click's error message, with the bounds.
    """
    least, sign, number = outside.groups()
    if least:
        return f"is out of range, expected {least} to {number}"
    words = {">": "more than", ">=": "at least", "<": "less than", "<=": "at most"}
    return f"is out of range, expected {words[sign]} {number}"


def _similar_file(path: Path) -> str:
    """Return a suggestion of a file in the same folder with a similar name; empty if none is."""
    if _ADDRESS.match(str(path)):
        return "; it is an address: download the file first"
    if not path.parent.is_dir():
        return f"; there is no folder {str(path.parent)!r}"
    with contextlib.suppress(OSError):
        files = sorted(path.parent.iterdir())
        names = {each.stem: each.name for each in files if each.suffix == path.suffix}
        same = [each.name for each in files if each.stem == path.stem]
        if close := close_names(path.stem, names):
            return f" (did you mean {names[close[0]]!r}?)"
        return did_you_mean(path.name, same)
    return ""


_PAIR = r"\{'?([^'{}]+?)'?: ([^{}]+)\}"

_DELEGATE, _DELEGATE_OPTION = r"\bdelegates=\['([^']+)'\]", r"-d \1"

_ARGUMENTS = {
    rf"\binputs={_PAIR}": r"--input-column \1=\2",
    rf"\boutputs={_PAIR}": r"--output-column \1=\2",
    r"\brequire='full'": "--require full",
    r"\bisolation='process'": "--isolate-rows",
    r"\bresume=True": "--resume",
    r"\btop=(\d+)": r"--top \1",
    r"\bsignature='([^']+)'": r"--signature \1",
    r"\blabels=\[\.\.\.\]": "--labels FILE",
    r"Delete it to begin anew, or": "--restart deletes it and begins anew; or",
    _DELEGATE: _DELEGATE_OPTION,
    r"delegates=\[MyDelegate\(\)\] applies a class, such as one of (\S+) here": (
        r"--delegate-file \1 applies the delegate of the file here"
    ),
    r"delegates=\[MyDelegate\(\)\] applies a class": (
        "--delegate-file FILE.py applies that of a file"
    ),
    r"XNNPACK is LiteRT's: the official Interpreter applies it by itself": (
        "--runtime litert has XNNPACK, which LiteRT applies by itself"
    ),
}
"""Patterns of Python arguments in messages, with text of the options that mean the same."""

_PYTHON_ADVICE = re.compile(
    r"[,;] delegates=\[MyDelegate\(\)\] applies a class(, such as one of \S+ here)?"
)
"""Advice for which a command has no option."""


def speak_of_options(error: DelegraphError, command: click.Command) -> None:
    """Replace argument names in the error's message by option names; see :func:`with_options`."""
    message, *rest = error.args or ("",)
    error.args = (with_options(str(message), command), *rest)


def with_options(message: str, command: click.Command) -> str:
    """Return a message with *command*'s option names in place of Python arguments.

    An argument without an option stays unchanged.
    """
    from delegraph.runtime.options import PLACES  # imported here because few commands fail

    options = _options(command)
    names = {place: f"--{name.replace('_', '-')}" for name, place in PLACES.items()}

    def option(match: re.Match[str]) -> str:
        name = names.get((match[1], match[2]))
        return name if name in options else match[0]

    message = re.sub(r"Interpreter\((\w+)=\w+\((\w+)=\.\.\.\)\)", option, message)
    for argument, words in _ARGUMENTS.items():
        if words.split()[0] in options:
            message = re.sub(argument, words, message)
    return _PYTHON_ADVICE.sub("", message)


def _options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}
