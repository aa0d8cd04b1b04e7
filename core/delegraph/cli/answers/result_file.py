"""Writes the result file that a command's option names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from delegraph.cli.answers.printing import json_text


def write_result(path: str, result: Mapping[str, Any], option: str) -> None:
    """Write a result as JSON to a file, completely or not at all.

    Args:
        path: path of the file; a device or a pipe is written directly.
        result: data of the file; NaN and infinities, which JSON lacks, become null.
        option: option with the path, for error messages.

    Raises:
        UsageError: the file cannot be written.
    """
    write_text(path, json_text(result) + "\n", option)


def write_text(path: str, text: str, option: str) -> None:
    """Write *text* as UTF-8 to the file *path*, completely or not at all.

    *option* is the option that names the file, for the error.
    """
    from delegraph.tools.whole_file import write_whole

    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise click.UsageError(f"{option} {path!r}: {error.strerror or error}") from error
