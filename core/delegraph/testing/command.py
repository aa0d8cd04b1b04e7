"""Runs the ``delegraph`` command inside a test's own process."""

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

from importlib_metadata import entry_points

WIDTH = 160
"""Columns of the output, whatever the terminal is."""


@dataclass(frozen=True)
class CommandResult:
    """Output and exit status of a command.

    Attributes:
        code: the exit code; 0 when all is well.
        out: standard output.
        err: standard error.
    """

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of standard output, with each run of blanks replaced by one."""
        return [" ".join(line.split()) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        """Standard output, parsed as JSON."""
        return json.loads(self.out)


def run_command(*words: object) -> CommandResult:
    """Run ``delegraph`` with the arguments *words* and return output and exit status.

    The output is :data:`WIDTH` columns wide and without colours, so it is the same everywhere::

        result = run_command("plugins", "info", "my_delegate")
        assert result.code == 0

    What the process has installed or registered holds for the command too.
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
    """Return the function that pip's ``delegraph`` script calls.

    The command line is a layer above this one, so it is found as pip finds it.
    """
    (script,) = entry_points(group="console_scripts", name="delegraph")
    main: Callable[[Sequence[str]], int] = script.load()
    return main


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
