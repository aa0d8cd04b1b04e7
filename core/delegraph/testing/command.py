"""Runs the ``delegraph`` command inside a test's process."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

from importlib_metadata import distribution

WIDTH = 160
"""Width of the output in columns, on every terminal."""


@dataclass(frozen=True)
class CommandResult:
    """Output and exit code of a command.

    Attributes:
        code: exit code; 0 means success.
        out: standard output.
        err: standard error.
    """

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of standard output, in which each run of blanks is a single blank."""
        return [" ".join(line.split()) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        """Standard output, parsed as JSON."""
        return json.loads(self.out)


def run_command(*words: object) -> CommandResult:
    """Run ``delegraph`` with *words* as its arguments, and return output and exit code.

    The output is :data:`WIDTH` columns wide and without colours, so it is the same everywhere::

        result = run_command("plugins", "info", "my_delegate")
        assert result.code == 0

    The command sees the plugins and operators that this process has registered.
    """
    out, err = _stream(), _stream()
    with (
        patch.dict(os.environ, {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = _main()([str(word) for word in words])
    return CommandResult(code, _text(out), _text(err))


@cache
def _main() -> Callable[[Sequence[str]], int]:
    """Return the function behind the ``delegraph`` command.

    The command line belongs to a higher layer, so it is found through its entry point.
    """
    scripts = distribution("delegraph").entry_points
    (script,) = scripts.select(group="console_scripts", name="delegraph")
    main: Callable[[Sequence[str]], int] = script.load()
    return main


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
