"""What users see while kernels are compiled: on a terminal, in a log, while a wheel is built."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import threading
import warnings
from pathlib import Path

import pytest

from delegated import DIGITS
from delegraph import Interpreter
from delegraph.delegation import BlobCache, blob_cache, dry_run
from delegraph.errors import DelegraphError
from delegraph.testing import run_command
from delegraph_numba_cpu.library import building, cache, compile_processes, kernel_library
from delegraph_numba_cpu.library.cpu import supported_levels

LEVEL = supported_levels()[0]
WHAT = f"numba_cpu: compiling kernels for processors of level {LEVEL.name}, once"

terminals = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlobCache:
    """An empty cache."""
    monkeypatch.setenv(blob_cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    return cache.kernel_cache(LEVEL)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_lines(kept: BlobCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_processes.Compiler, "compile", lambda self, family: b"kernels")
    monkeypatch.setattr(building, "PATIENCE", 1e9)
    monkeypatch.setattr(sys, "stderr", Terminal())
    building.build(["executor", "moves", "softmax"], LEVEL, kept)
    shown = sys.stderr.getvalue()
    assert shown == f"{WHAT}: 0 of 3 families\n{WHAT}: 3 of 3 families\n"


def test_where_it_takes_long_elsewhere_the_log_has_a_line(
    kept: BlobCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    is_said = threading.Event()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            is_said.set()

    def slow(self: object, family: str) -> bytes:
        assert is_said.wait(60)
        return b"kernels"

    monkeypatch.setattr(compile_processes.Compiler, "compile", slow)
    monkeypatch.setattr(building, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    building.logger.addHandler(handler := Handler())
    try:
        building.build(["executor"], LEVEL, kept)
    finally:
        building.logger.removeHandler(handler)
    assert caplog.messages == [f"{WHAT}, which may take a minute"]
    assert sys.stderr.getvalue() == ""


def test_what_is_quick_is_not_said_in_the_log(
    kept: BlobCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compile_processes.Compiler, "compile", lambda self, family: b"kernels")
    monkeypatch.setattr(building, "PATIENCE", 1e9)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    before = threading.active_count()
    building.build(["executor"], LEVEL, kept)
    assert (caplog.messages, sys.stderr.getvalue()) == ([], "")
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(60)
    assert threading.active_count() <= before


def on_a_terminal(code: str, *arguments: str) -> str:
    """Return what a process of its own writes to its terminal; it must end well."""
    import pty

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from Python 3.12 on, of a fork beside threads
        pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", code, *arguments])
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux's way to say that nobody writes any more
            part = b""
        if not part:
            break
        shown += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, shown.decode()
    return shown.decode()


WITH_A_STATUS = """
from delegraph.cli.answers import printing
from delegraph_numba_cpu.library import building, cache, compile_processes
from delegraph_numba_cpu.library.cpu import supported_levels
level = supported_levels()[0]
compile_processes.Compiler.compile = lambda self, family: b"kernels"
printing.PATIENCE = 0.0
import threading, rich.status
is_shown = threading.Event()
start = rich.status.Status.start
def started(self):
    start(self)
    is_shown.set()
rich.status.Status.start = started
with printing.progress("allocating"):
    assert is_shown.wait(60)
    building.build(["executor"], level, cache.kernel_cache(level))
"""


@terminals
def test_a_status_of_the_command_line_leaves_the_lines(
    kept: BlobCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    shown = on_a_terminal(WITH_A_STATUS)
    assert "allocating" in shown
    assert f"{WHAT}: 0 of 1 families\r\n" in shown
    assert f"{WHAT}: 1 of 1 families\r\n" in shown


BUILD = """
import sys, types
for name in ("hatchling", "builders", "hooks", "plugin", "interface"):
    module = types.ModuleType(name)
    sys.modules[".".join([*filter(None, [globals().get("path")]), name])] = module
    path = ".".join([*filter(None, [globals().get("path")]), name])
class Hook:
    def __class_getitem__(cls, item):
        return cls
module.BuildHookInterface = Hook
import runpy
terminal = runpy.run_path(sys.argv[1])["_Terminal"]
with terminal() as shown:
    shown.show("3 of 19")
"""


@terminals
def test_the_build_of_a_wheel_shows_on_the_terminal_how_far_it_is() -> None:
    hook = Path(__file__).parents[1] / "build_libraries.py"
    assert on_a_terminal(BUILD, str(hook)) == "\r\x1b[K3 of 19\r\x1b[K"


# -- looking without compiling ---------------------------------------------------------------------


def never(*arguments: object) -> object:
    raise AssertionError(f"compiles {arguments}")


@pytest.fixture
def cold(kept: BlobCache, monkeypatch: pytest.MonkeyPatch) -> BlobCache:
    """An empty cache, no libraries, and kernels that nobody has loaded."""
    monkeypatch.setattr(kernel_library, "opened_libraries", {})
    monkeypatch.setattr(kernel_library, "prebuilt_library", lambda level: None)
    monkeypatch.setattr(
        "delegraph_numba_cpu.library.jit_linking.prebuilt_objects", lambda level: None
    )
    return kept


@pytest.mark.parametrize("command", ["explain", "memory"])
def test_explain_and_memory_compile_nothing(
    command: str, cold: BlobCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "build", never)
    result = run_command(command, DIGITS, "--delegate", "numba_cpu", "--json")
    assert (result.code, bool(json.loads(result.out))) == (0, True)
    assert cold.entries() == []


def test_an_interpreter_of_a_dry_run_cannot_invoke() -> None:
    with dry_run():
        interpreter = Interpreter(DIGITS, delegates=["numba_cpu"])
        interpreter.allocate_tensors()
    with pytest.raises(DelegraphError, match="an interpreter of a dry run cannot invoke"):
        interpreter.invoke()
