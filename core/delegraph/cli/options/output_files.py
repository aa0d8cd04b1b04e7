"""Files that a command writes: their option type, and the check that none of them is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from delegraph.cli.options.arguments import ModelPath

Command = TypeVar("Command", bound=Callable[..., Any])


class OutputFile(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic since 8.2
    """Option type: a file to write, which is no folder and lies in an existing one.

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


def save_option(command: Command) -> Command:
    """Add ``--save``, which writes the outputs to a file."""
    return click.option(
        "--save",
        type=OutputFile(".npz"),
        metavar="FILE.npz",
        help="Save all outputs, by name.",
    )(command)


def require_other_files(context: click.Context) -> None:
    """Check that no file which the command writes is its model, or another argument's file.

    Raises:
        UsageError: a file would be written over.
    """
    for name, path in _arguments(context):
        _require_other(context, name, path)


def require_other_model(model: str) -> None:
    """Check that no file which the running command writes is *model*, of ``--against`` and so on.

    Raises:
        UsageError: the model would be written over.
    """
    context = click.get_current_context(silent=True)
    if context is not None:
        _require_other(context, "the model", model)


def _arguments(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of each file that an argument of the command names."""
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if not isinstance(parameter, click.Argument) or not isinstance(parameter.type, click.Path):
            continue
        name = "the model" if isinstance(parameter.type, ModelPath) else parameter.name.upper()
        given: Iterable[Any] = value if isinstance(value, tuple) else (value,)
        yield from ((name, os.fsdecode(path)) for path in given if path is not None)


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
