from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from copying_chain import Chain
from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.instructions.memory import Row
from delegraph_numba_cpu.instructions.moves import COPY
from delegraph_numba_cpu.kept import keys, store
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.library.kernel_library import Library, library
from delegraph_numba_cpu.lowering import schedule
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.program import Program

os.environ["DELEGRAPH_DEFAULT_DELEGATES"] = ""  # tests name the delegates they are about
os.environ["DELEGRAPH_NUMBA_KEEP"] = "0"  # each test decides anew, but those of kept programs

collect_ignore: list[str] = []
if find_spec("llvmlite") is None:  # as users have it: libraries of kernels, and nothing is compiled
    collect_ignore += ["test_kernel_library.py", "test_native_code.py", "test_plugin.py"]
    collect_ignore += ["test_build_libraries.py", "test_prebuilt.py", "test_progress.py"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave levels that no installation makes a library for to ``make test-all``."""
    left = {level.name for level in supported_levels()[1:-1]}
    here = Path(__file__).parent
    for item in items:
        if item.path.parent != here or not hasattr(item, "callspec"):
            continue
        if not left.isdisjoint(re.split("[-=]", item.callspec.id)):
            item.add_marker(pytest.mark.repetition(0), append=False)  # before its own


_KernelEntry = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


@pytest.fixture(scope="session")
def lib() -> Library:
    """The kernels of the best level."""
    return library(supported_levels()[0])


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Partitions that were lowered since."""
    found: list[object] = []
    lower_all = schedule.lower_all

    def watched(partition: Any, builder: Any) -> None:
        found.append(partition)
        lower_all(partition, builder)

    monkeypatch.setattr(schedule, "lower_all", watched)
    return found


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are kept, also small ones."""
    monkeypatch.setenv(keys.VARIABLE, "1")
    monkeypatch.setattr(store, "LEAST_NODES", 1)


@pytest.fixture
def pool() -> Iterator[Pool]:
    """A pool of the test's own, with more threads than the machine may have processors."""
    made = Pool()
    made.most_threads = 64
    made.crew.control[layout.KEEPS_APART] = 0  # kernels of tests wait for workers
    yield made
    made.stop()


@pytest.fixture
def chain(lib: Library) -> Callable[..., Chain]:
    """Makes chains: ``chain(rows=8, size=4096, tiles=8, workers=2)``."""

    def make(**sizes: int) -> Chain:
        return Chain(lib, **sizes)

    return make


@pytest.fixture
def python_kernel() -> Callable[..., Program]:
    """Makes programs of one kernel, a function of Python: see ``make``."""
    entries = []  # must outlive the programs

    def make(
        kernel: Callable[[int, int], object],
        rows: int = 1,
        tiles: int | tuple[int, ...] = 8,
        workers: int = 2,
    ) -> Program:
        """Return a program that calls ``kernel(tile, worker)`` for each tile of its rows.

        There are *rows* of so many tiles, or a row for each number of tiles.
        """

        def call(record: int, tile: int, worker: int) -> None:
            kernel(tile, worker)

        entry = _KernelEntry(call)
        entries.append(entry)
        address = ctypes.cast(entry, ctypes.c_void_p).value
        library: Any = SimpleNamespace(address=lambda family, name: address)
        words = {"source": 0, "target": 0, "bytes": 0}
        counts = tiles if isinstance(tiles, tuple) else (tiles,) * rows
        table = [Row(COPY, count, {**words, "tiles": count}) for count in counts]
        program = Program(table, library, workers)
        program.run_time.observe(1.0)
        return program

    return make


@pytest.fixture(scope="session")
def fresh_python() -> Callable[..., str]:
    """Run source in a fresh process and return its output; it must end well, and in time."""

    def run(source: str, **settings: Any) -> str:
        done = subprocess.run(
            [sys.executable, "-c", source],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **settings,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
