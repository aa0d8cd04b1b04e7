from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from delegraph.errors import OperatorError
from delegraph.operators import MemoryLimit, memory_limit
from delegraph.operators.memory_limit import LEAST, LEAST_COPIES, TIMES_FILE, physical_memory

ASKING = Path(__file__).with_name("hostile_sizes.py")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> int:
    """Every machine has a terabyte here."""
    monkeypatch.setattr(memory_limit, "physical_memory", lambda: 1 << 40)
    return 1 << 40


def test_a_file_gets_memory_in_proportion_within_what_there_is(machine: int) -> None:
    assert MemoryLimit.of(None, 0).bytes == LEAST
    assert MemoryLimit.of(None, LEAST).bytes == TIMES_FILE * LEAST
    assert MemoryLimit.of(None, machine).bytes == machine
    assert MemoryLimit.of_machine() == MemoryLimit(machine, is_default=True)


def test_what_the_user_chose_stays(machine: int) -> None:
    chosen, default = MemoryLimit.of(0, 1000), MemoryLimit.of(None, 1000)
    for limit in (chosen, default):
        limit.trust_shapes()
    assert (chosen.bytes, default.bytes) == (0, machine)


def test_advice_names_the_limit_and_the_argument() -> None:
    assert MemoryLimit.of(7, 0).advice() == (
        "the limit of 7 bytes; Interpreter(limits=Limits(memory=...)) sets another"
    )


def test_physical_memory_is_that_of_the_machine() -> None:
    assert physical_memory() == psutil.virtual_memory().total


def test_windows_is_asked_for_its_physical_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel fills a record of 64 bytes that names its length first."""

    class Kernel:
        def GlobalMemoryStatusEx(self, status: Any) -> int:
            record = status._obj
            assert (record.length, ctypes.sizeof(record)) == (64, 64)
            ctypes.memmove(ctypes.addressof(record) + 8, (7 << 30).to_bytes(8, sys.byteorder), 8)
            return 1

    windll = SimpleNamespace(kernel32=Kernel())
    monkeypatch.setattr(ctypes, "windll", windll, raising=False)
    assert memory_limit.windows_physical_memory() == 7 << 30


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory so")
def test_no_kernel_takes_memory_without_asking() -> None:
    run = [sys.executable, str(ASKING)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    *taken, last = done.stdout.splitlines() or [""]
    assert (done.returncode, taken) == (0, []), done.stderr
    assert "operators" in last


def test_copies_of_constants_get_less_than_tensors_and_no_more_for_shapes_of_the_user() -> None:
    default, chosen = MemoryLimit.of(None, 1000), MemoryLimit.of(500 << 20, 1000)
    default.trust_shapes()
    for limit, most in ((default, LEAST_COPIES), (chosen, 500 << 20)):
        limit.require_copies(most, "what is copied")
        with pytest.raises(OperatorError, match=f"copied needs {most + 1} bytes, more than the li"):
            limit.require_copies(most + 1, "what is copied")
    MemoryLimit.of(None, 1 << 30).require_copies(TIMES_FILE << 30, "what is copied")
