from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from delegraph.delegation.configuration import CONFIG_VARIABLE
from delegraph.testing import CommandResult, one_op_model, run_command, tensor
from delegraph.testing.command import WIDTH
from support import command_server
from support.chosen_plugins import disable_plugins
from support.command import Command, Refused


@pytest.fixture
def delegraph() -> Command:
    """Run the command in this process: ``delegraph("run", path)``."""
    return run_command


@pytest.fixture
def refused(delegraph: Command) -> Refused:
    """Run a command that fails with ``code`` and one line of error; return the line."""

    def run(*words: object, code: int = 2) -> str:
        ran = delegraph(*words)
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1), ran
        return ran.err

    return run


@pytest.fixture(scope="session")
def command_process() -> Iterator[subprocess.Popen[str] | None]:
    """The process of ``command_server.py``; None on a system without forks."""
    if not hasattr(os, "fork"):
        yield None
        return
    words = [sys.executable, command_server.__file__]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.communicate()


@pytest.fixture
def fresh_delegraph(tmp_path: Path, command_process: subprocess.Popen[str] | None) -> Command:
    """Run the command in a fresh process, with fake distributions of ``tmp_path / "site"``.

    It is a fork of a process that has imported the command, unless settings of Python are given.
    """
    numbers = count()

    def run(*words: object, **environment: str) -> CommandResult:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("DELEGRAPH_")}
        given = {"COLUMNS": str(WIDTH), "PYTHONPATH": str(tmp_path / "site"), CONFIG_VARIABLE: ""}
        settings = inherited | given | environment
        texts = [str(word) for word in words]
        if command_process is None or any(name.startswith("PYTHON") for name in environment):
            command = [sys.executable, "-m", "delegraph", *texts]
            done = subprocess.run(
                command, env=settings, capture_output=True, text=True, check=False
            )
            return CommandResult(done.returncode, done.stdout, done.stderr)
        output = tmp_path / f"command-{next(numbers)}"
        output.mkdir()
        return forked(command_process, output, texts, settings)

    return run


def forked(
    process: subprocess.Popen[str], output: Path, words: list[str], environment: dict[str, str]
) -> CommandResult:
    """Run the command in a fork of *process*; *output* is an empty folder for what it prints."""
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"words": words, "environment": environment, "folder": os.getcwd()}
    process.stdin.write(json.dumps({**request, "output": str(output)}) + "\n")
    process.stdin.flush()
    code = int(process.stdout.readline())
    return CommandResult(code, (output / "out").read_text(), (output / "err").read_text())


@pytest.fixture
def custom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of one custom operator that a known package would run, and is not installed."""
    disable_plugins(monkeypatch, "flex")
    path = tmp_path / "custom.tflite"
    path.write_bytes(one_op_model("FlexErf", [tensor((2,))], [tensor((2,))]))
    return path
