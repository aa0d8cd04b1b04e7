"""The C delegates of these tests, compiled when they are needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "c"

COMPILER = shutil.which("gcc") or shutil.which("cc")

needs_compiler = pytest.mark.skipif(
    COMPILER is None, reason="there is no C compiler (gcc or cc) to make the delegates with"
)


def compile_library(name: str, folder: Path) -> Path:
    """Compile ``c/NAME.c`` to ``libNAME.so`` in a folder; return its path."""
    assert COMPILER is not None
    target = folder / f"lib{name}.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wno-unused"]
    source = str(SOURCES / f"{name}.c")
    subprocess.run([COMPILER, *flags, "-o", str(target), source], check=True)
    return target
