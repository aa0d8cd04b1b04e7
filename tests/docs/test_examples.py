"""The scripts of docs/examples run, are short, and print what they are about."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delegraph.plugins import installed

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PRINTED = {
    "run_a_model": "The model says 8, the label says 8.",
    "write_a_delegate": "f(2) = 2.152495 by 5 nodes: my_sin takes 2 in 2 partitions",
    "explain_placement": "0 CONV_2D Delegraph's kernels op: is CONV_2D, needs ADD or SUB",
    "custom_operator": "[-40. 32. 212.]",
    "delegate_in_litert": "sin takes 2 in 2 partitions; the rest: XNNPACK, by default",
    "microcontroller_arena": "arena 7,216 digit 8",
}
NEEDED = {"explain_placement": "add_sub", "delegate_in_litert": "sin"}
OFFERED = {offer.spec.name for offer in installed().offers()}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_example_is_under_40_lines(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 40


@pytest.mark.repetition(3)
@pytest.mark.parametrize("name", PRINTED)
def test_example_prints_what_it_is_about(name: str, tmp_path: Path) -> None:
    if NEEDED.get(name, "") not in {"", *OFFERED}:
        pytest.skip(f"needs the delegate {NEEDED[name]} of delegraph-example")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert PRINTED[name] in " ".join(done.stdout.split())
