"""Files that a command writes: their option type, and the check that none of them is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from delegraph.cli.options.arguments import ModelPath
from delegraph.cli.options.kinds import Command


class OutputFile(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic since 8.2
    """Option type: a file to write, in an existing folder.

    Args:
        endings: accepted endings of its name; empty accepts every name.
    """

    name = "file"

    def __init__(self, *endings: str) -> None:
        self.endings = endings

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the path, if a file can be written there."""
        path = os.fsdecode(value)
        if os.path.isdir(path):
            self.fail(f"{path!r} is a folder, give the name of a file", param, ctx)
        if self.endings and not path.lower().endswith(self.endings):
            expected = " or ".join(self.endings)
            self.fail(f"{path!r}: expected a file ending in {expected}", param, ctx)
        folder = Path(path).parent
        if not folder.is_dir():
            self.fail(f"{path!r}: there is no folder {str(folder)!r}", param, ctx)
        return path

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """Return the word of a shell's completion that stands for any file."""
        return [CompletionItem(incomplete, type="file")]


def output_option(
    name: str, metavar: str, text: str, *endings: str
) -> Callable[[Command], Command]:
    """Return a decorator that adds an option for a file to write; see :class:`OutputFile`."""
    return click.option(name, type=OutputFile(*endings), metavar=metavar, help=text)


save_option = output_option("--save", "FILE.npz", "Save all outputs, by name.", ".npz")
"""Decorator that adds ``--save``, which writes the outputs to a file."""


def require_other_files(context: click.Context) -> None:
    """Check that no file which the command writes is its model, or another file that it reads.

    Raises:
        UsageError: a file would be written over.
    """
    for name, path in _files_to_read(context):
        _require_other(context, name, path)


def require_other_model(model: str) -> None:
    """Check that the running command writes no file that is *model*, such as ``--against`` names.

    Raises:
        UsageError: the model would be written over.
    """
    context = click.get_current_context(silent=True)
    if context is not None:
        _require_other(context, "the model", model)


def _files_to_read(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the kind and the path of each file that arguments and options of the command name."""
    for parameter in context.command.params:
        words = _INPUTS.get(parameter.name or "")
        is_path = isinstance(parameter.type, click.Path) and parameter.name not in _RENEWED
        if words is None and not is_path:
            continue
        name = f"the file of {parameter.opts[-1]}"
        if isinstance(parameter, click.Argument):
            is_model = isinstance(parameter.type, ModelPath)
            name = "the model" if is_model else (parameter.name or "").upper()
        value = context.params.get(parameter.name or "")
        given: Iterable[Any] = value if isinstance(value, tuple) else (value,)
        for path in map(os.fsdecode, (each for each in given if each is not None)):
            yield from ((name, each) for each in (words(path) if words is not None else (path,)))


def _paths_in_input(word: str) -> list[str]:
    """Return the possible paths in a text ``[NAME=]FILE``, as names may contain ``=``.

    >>> _paths_in_input("a=b=c.png")
    ['a=b=c.png', 'b=c.png', 'c.png']
    """
    parts = word.split("=")
    return ["=".join(parts[start:]) for start in range(len(parts))]


def _path_of_delegate(word: str) -> list[str]:
    from delegraph.tools.setup import file_and_options

    return [file_and_options(word)[0]]


_RENEWED = ("check", "compare_with")
"""Options that name a file of an earlier command, which the same command may write again."""

_INPUTS = {"inputs": _paths_in_input, "delegate_files": _path_of_delegate}
"""Functions that find paths in the texts of options, by the option's name in Python."""


def _require_other(context: click.Context, name: str, path: str) -> None:
    from delegraph.bundles.opening import split_address

    read = split_address(path)[0]
    for option in context.command.params:
        written = context.params.get(option.name or "")
        if not isinstance(option.type, OutputFile) or written is None:
            continue
        if os.path.exists(written) and os.path.exists(read) and os.path.samefile(written, read):
            text = f"{written!r} is {name} itself: give {_short(option)} another name"
            raise click.UsageError(text, context)


def _short(option: click.Parameter) -> str:
    """Return the shortest name of an option, ``-o`` of ``-o`` and ``--output``."""
    return min(option.opts, key=len)
