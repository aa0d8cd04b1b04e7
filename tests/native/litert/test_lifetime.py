"""Delegates and official interpreters end in any order, and leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ai_edge_litert")

PROGRAM = Path(__file__).with_name("lifetimes.py")
STRUCT = 64  # bytes of malloc for the struct of a delegate, which is never freed


def outcome(name: str, program: Path = PROGRAM) -> dict[str, list[float]]:
    """Return what a program of ``lifetimes.py`` prints: name to numbers."""
    done = subprocess.run(
        [sys.executable, str(program), name],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    *lines, last = done.stdout.split("\n")[:-1]
    assert last == "done"
    return {name: [float(n) for n in numbers] for name, *numbers in map(str.split, lines)}


@pytest.mark.repetition(4)  # each is a process
@pytest.mark.parametrize(
    "name",
    [
        "interpreter_first",
        "delegate_first",
        "view_outlives_both",
        "shared_by_three",
        "applied_twice",
        "in_a_circle",
        "alive_at_exit",
        "alive_at_exit_with_a_view",
        "stale",
        "a_thousand",
    ],
)
def test_no_order_of_ending_crashes_or_keeps_anything_alive(name: str) -> None:
    outcome(name)


def test_lives_leave_nothing_but_a_struct_behind() -> None:
    """By exact counters; that they see a leak at all is shown by a life that leaks ten blocks."""
    found = outcome("leaks")
    assert found["living"] == [0, 0]
    assert found["leaking_life"][0] > 5
    for name in ("life", "wrapped_life", "failing_life"):
        blocks, size = found[name]
        assert blocks < 0.5, name
        assert size < STRUCT + 32, name


def test_invoking_leaves_nothing_behind() -> None:
    blocks, size = outcome("invoke_leaks")["invoke"]
    assert blocks < 0.05
    assert size < 8


@pytest.mark.repetition(3)
@pytest.mark.parametrize("seed", range(200))
def test_compiled_models_end_in_any_order(seed: int) -> None:
    pytest.importorskip("ai_edge_litert.environment", reason="has no CompiledModel for delegates")
    outcome(str(seed), PROGRAM.with_name("compiled_lifetimes.py"))
