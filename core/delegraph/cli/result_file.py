"""Writes the result of a command to the file that an option names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from delegraph.cli.printing import finite


def write_result(path: str, result: Mapping[str, Any], option: str) -> None:
    """Write a result as JSON; a file is written whole or not at all.

    Args:
        path: of the file; a device or a pipe is written as it is.
        result: NaN and infinities, which JSON lacks, become null.
        option: that names the path, for errors.

    Raises:
        UsageError: the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    text = json.dumps(finite(result), indent=2) + "\n"
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        partial = target.with_name(f"{target.name}.partial")
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, target)
    except OSError as error:
        raise click.UsageError(f"{option} {path!r}: {error.strerror or error}") from error
