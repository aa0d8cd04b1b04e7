from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delegraph.delegation.configuration import CONFIG_VARIABLE
from delegraph.testing import CommandResult, one_op_model, run_command, tensor
from delegraph.testing.command import WIDTH
from support.chosen_plugins import disable_plugins
from support.command import Command


@pytest.fixture
def delegraph() -> Command:
    """Run the command in this process: ``delegraph("run", path)``."""
    return run_command


@pytest.fixture
def fresh_delegraph(tmp_path: Path) -> Command:
    """Run the command in a fresh process, with fake distributions of ``tmp_path / "site"``."""

    def run(*words: object, **environment: str) -> CommandResult:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("DELEGRAPH_")}
        given = {"COLUMNS": str(WIDTH), "PYTHONPATH": str(tmp_path / "site"), CONFIG_VARIABLE: ""}
        done = subprocess.run(
            [sys.executable, "-m", "delegraph", *map(str, words)],
            env=inherited | given | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def custom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of one custom operator that a known package would run, and is not installed."""
    disable_plugins(monkeypatch, "flex")
    path = tmp_path / "custom.tflite"
    path.write_bytes(one_op_model("FlexErf", [tensor((2,))], [tensor((2,))]))
    return path
