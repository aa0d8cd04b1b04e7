"""Files to write: refused before any work where they cannot be, or would replace the model."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from delegraph.cli import COMMANDS
from delegraph.cli import delegraph as group
from delegraph.cli.options.output_files import OutputFile
from support.command import Refused

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(DIGITS, tmp_path / "m.tflite"))


@pytest.mark.parametrize(
    "words",
    [
        "compile m.tflite -d numba_cpu -o m.tflite",
        "explain m.tflite -d numba_cpu --lock ./m.tflite",
        "memory m.tflite --write-offline m.tflite",
        "benchmark m.tflite --result-json m.tflite",
        "benchmark m.tflite --trace m.tflite",
        "evaluate custom m.tflite rows.npz --metric rmse -o m.tflite",
        "evaluate custom m.tflite rows.npz --metric rmse -o rows.npz",
        "predict m.tflite rows.npz -o rows.npz",
        "diff m.svg --layers --plot m.svg",
        "benchmark m.tflite --against other.html --result-json other.html",
        "diff m.tflite --reference other.html --html other.html",
        "report m.tflite --benchmark --against other.html -o other.html",
        "memory m.svg --draw m.svg",
        "run m.tflite -i photo.png --draw photo.png",
        "run m.tflite -i image=photo.png --draw ./photo.png",
        "run m.tflite -i rows.npz --save rows.npz",
        "diff m.tflite --delegate-file other.html:a=1 --html other.html",
        "run m.tflite --labels photo.png --draw photo.png",
    ],
)
def test_no_file_that_is_read_is_written_over(refused: Refused, model: Path, words: str) -> None:
    before = model.read_bytes()
    model.with_suffix(".svg").hardlink_to(model)
    for name in ("rows.npz", "photo.png"):
        model.with_name(name).write_bytes(b"rows")
    other = Path(shutil.copy(DIGITS, "other.html"))
    assert "itself: give -" in refused(*words.split())
    assert model.read_bytes() == other.read_bytes() == before
    for name in ("rows.npz", "photo.png"):
        assert model.with_name(name).read_bytes() == b"rows"


def _options(command: click.Command) -> Iterator[click.Option]:
    for each in getattr(command, "commands", {}).values():
        yield from _options(each)
    yield from (each for each in command.params if isinstance(each, click.Option))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_that_writes_a_file_is_checked(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    for option in _options(command):
        help_text, metavar = option.help or "", option.metavar or ""
        if help_text.startswith(("Write", "Save", "Draw")) and metavar.startswith(("FILE", "OUT.")):
            assert isinstance(option.type, OutputFile), (name, option.opts)


@pytest.mark.repetition(1)
@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["diff", "-d", "none", "--runs", "1", "--html"], "page.html"),
        (["explain", "-d", "numba_cpu", "--lock"], "placement.lock"),
        (["memory", "--write-offline"], "planned.tflite"),
    ],
)
def test_files_are_written_before_a_reader_ends(
    tmp_path: Path, words: list[str], file: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "delegraph", words[0], str(DIGITS), *words[1:], file]
    with open(writing, "wb") as closed:
        subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    assert (tmp_path / file).stat().st_size > 0
