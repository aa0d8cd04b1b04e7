from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from delegraph.tools.benchmarking.memory import Memory, memory

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

GROWS_AND_SHRINKS = """
import numpy as np
from delegraph.tools.benchmarking.memory import memory, reset_peak
before = memory()
values = np.ones(8_000_000)
held = memory()
del values
freed = memory()
print(held.current - before.current, held.peak - before.current, freed.current - before.current)
print(reset_peak(), memory().peak - memory().current)
"""


@linux
def test_both_are_told_and_the_peak_can_be_reset() -> None:
    """In a process of its own: this one has memory to spare, and its peak is not ours to reset."""
    done = subprocess.run(
        [sys.executable, "-c", GROWS_AND_SHRINKS], capture_output=True, text=True, check=True
    )
    held, peak, freed, is_reset, above = done.stdout.split()
    assert 60e6 < int(held) < 80e6
    assert 60e6 < int(peak) < 80e6
    assert int(freed) < 10e6
    if is_reset == "True":
        assert int(above) < 10e6


def test_sizes_are_in_bytes(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmHWM:\t    2136 kB\nVmRSS:\t    1024 kB\n")
    assert memory(str(status)) == Memory(1024 * 1024, 2136 * 1024)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no getrusage")
def test_without_proc_the_peak_is_that_of_the_usage(tmp_path: Path) -> None:
    told = memory(str(tmp_path / "absent"))
    assert told.current is None
    assert told.peak is not None
    assert 10e6 < told.peak < 1e12
