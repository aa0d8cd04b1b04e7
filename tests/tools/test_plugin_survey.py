"""Plugins that end, crash or never let go of the process that imports them."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delegraph.errors import PluginLoadError
from delegraph.plugins import Plugin, PluginState
from delegraph.processes.worker import Worker
from delegraph.tools import plugin_survey
from delegraph.tools.plugin_check import Finding, Level
from delegraph.tools.plugin_report import plugin_from_json
from delegraph.tools.plugin_survey import SurveyedPlugin, SurveyRequest, survey_plugins
from support.fake_distributions import write_plugin

posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no signals there")

ENOUGH = 100.0
"""Seconds for what ends by itself."""

LOADS = """\
from delegraph.plugins import DelegateSpec, hookimpl

def _load():
    {body}

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("bad", "a fake", _load)]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for fake distributions, whose plugins are the only ones that are allowed."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DELEGRAPH_PLUGINS", "bad,good,worse,worst")
    monkeypatch.delenv("DELEGRAPH_DISABLE_PLUGINS", raising=False)
    return tmp_path


@pytest.fixture
def stuck(site: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Source that a plugin "bad" runs before it hangs: only then its time is over.

    So a slow machine fails no test, and no test takes the time that it gives.
    """
    written = site / "stuck"

    class Watched(Worker):
        def timer(self, end: Callable[[], object]) -> threading.Timer:
            def look() -> None:
                if written.exists():
                    end()
                else:
                    self.timer(end).start()

            has_bad = "bad" in [name for name, *_ in self.argument.plugins]
            found = threading.Timer(0.05 if has_bad else ENOUGH, look)
            found.daemon = True
            return found

    monkeypatch.setattr(plugin_survey, "Worker", Watched)
    return f"import pathlib, time; pathlib.Path({str(written)!r}).touch(); "


def survey(request: SurveyRequest) -> dict[str, SurveyedPlugin]:
    """The fake plugins, by name."""
    found = survey_plugins(request)
    return {s.plugin.name: s for s in found if s.plugin.distribution.startswith("fake-")}


def outcomes(request: SurveyRequest) -> dict[str, str]:
    return {name: surveyed.outcome for name, surveyed in survey(request).items()}


@pytest.mark.parametrize("isolated", [False, True])
def test_good_plugins_are_described(site: Path, isolated: bool) -> None:
    write_plugin(site, "good")
    surveyed = survey(SurveyRequest(ENOUGH, loads=True, isolated=isolated))["good"]
    assert (surveyed.outcome, surveyed.findings) == ("ok", ())
    assert surveyed.plugin.state is PluginState.OK
    assert [spec.name for spec in surveyed.plugin.delegates] == ["good"]
    assert surveyed.description["delegates"][0]["options"] == []
    with pytest.raises(PluginLoadError, match="another process"):
        surveyed.plugin.delegates[0].load()
    assert "fake_good" not in sys.modules


def test_what_cannot_be_used_is_listed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(site, "bad", "raise RuntimeError('no driver')")
    write_plugin(site, "worse", "DELEGRAPH_API = 7")
    write_plugin(site, "good")
    monkeypatch.setenv("DELEGRAPH_DISABLE_PLUGINS", "good")
    found = survey(SurveyRequest(ENOUGH))
    assert {name: s.outcome for name, s in found.items()} == {
        "bad": "failed",
        "worse": "incompatible",
        "good": "disabled",
    }
    assert found["bad"].plugin.error == "RuntimeError: no driver"
    assert found["good"].description["error"] == "disabled by DELEGRAPH_DISABLE_PLUGINS"


DEADLY = {
    "exits": ("import os; os._exit(3)", "died (exit code 3)"),
    "exits as if all were well": ("import os; os._exit(0)", "died (exit code 0)"),
    "aborts": ("import os; os.abort()", "died (SIGABRT)"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "died (SIGSEGV)"),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", "died (SIGKILL)"),
}


@pytest.mark.repetition(2)
@posix
@pytest.mark.parametrize(("body", "outcome"), DEADLY.values(), ids=list(DEADLY))
@pytest.mark.parametrize("isolated", [False, True])
def test_a_plugin_that_ends_its_process_ends_no_other(
    site: Path, body: str, outcome: str, isolated: bool
) -> None:
    write_plugin(site, "bad", body)
    write_plugin(site, "good")
    found = survey(SurveyRequest(ENOUGH, isolated=isolated))
    assert {name: s.outcome for name, s in found.items()} == {"bad": outcome, "good": "ok"}
    bad = found["bad"].plugin
    assert (bad.state, bad.is_faulty) == (PluginState.DIED, True)
    assert bad.error == f"its process ended with {outcome[6:-1]}"
    assert "DELEGRAPH_DISABLE_PLUGINS=bad" in bad.remedy
    assert found["bad"].description["state"] == "died"


ENDLESS = {
    "bad": "import time; time.sleep(1000)",
    "worse": "while True: pass",
    "worst": "import itertools; sum(itertools.count())",  # it never lets Python's lock go
}


def test_endless_imports_are_given_up(site: Path) -> None:
    for name, source in ENDLESS.items():
        write_plugin(site, name, source)
    found = survey(SurveyRequest(0.5, isolated=True))
    assert {name: s.outcome for name, s in found.items()} == dict.fromkeys(ENDLESS, "timed out")
    assert {s.plugin.error for s in found.values()} == {"its process did not end within 0.5 s"}
    assert {s.plugin.state for s in found.values()} == {PluginState.TIMED_OUT}


def test_after_an_endless_import_the_others_are_looked_at(site: Path, stuck: str) -> None:
    write_plugin(site, "bad", stuck + "time.sleep(1000)")
    write_plugin(site, "good")
    assert outcomes(SurveyRequest(5)) == {"bad": "timed out", "good": "ok"}


@posix
def test_what_an_endless_plugin_started_ends_with_it(site: Path, stuck: str) -> None:
    written = site / "pid"
    start = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])"
    source = f"import subprocess, sys, pathlib\nstarted = {start}\n"
    source += f"pathlib.Path({str(written)!r}).write_text(str(started.pid))\n"
    write_plugin(site, "bad", source + stuck + "time.sleep(1000)")
    assert outcomes(SurveyRequest(3, isolated=True)) == {"bad": "timed out"}
    wait_until_gone(int(written.read_text()))


def wait_until_gone(pid: int) -> None:
    """Wait for the end of a process that was killed; pytest's own limit ends this."""
    while (state := Path("/proc", str(pid), "stat")).exists():
        if " Z " in state.read_text():  # nobody has asked for its exit code
            return
        time.sleep(0.01)


@posix
@pytest.mark.parametrize(
    ("body", "outcome", "text"),
    [
        ("import os; os._exit(3)", "died (exit code 3)", "ended with exit code 3"),
        ("time.sleep(1000)", "timed out", "did not end within 4 s"),
        ("raise OSError('no driver')", "failed", "load() failed: OSError: no driver"),
    ],
)
def test_a_load_that_ends_the_process_or_never_ends_is_a_finding(
    site: Path, stuck: str, body: str, outcome: str, text: str
) -> None:
    body = body.replace("time.sleep", stuck + "time.sleep")
    write_plugin(site, "bad", LOADS.format(body=body))
    surveyed = survey(SurveyRequest(4, loads=True, isolated=True))["bad"]
    assert surveyed.outcome == outcome
    assert surveyed.plugin.state is PluginState.OK
    assert [spec.name for spec in surveyed.plugin.delegates] == ["bad"]
    [finding] = surveyed.findings
    assert finding.level is Level.ERROR
    assert text in finding.text


def test_a_load_that_ends_the_process_of_all_is_found_as_well(site: Path) -> None:
    write_plugin(site, "bad", LOADS.format(body="import os; os._exit(3)"))
    write_plugin(site, "good")
    expected = {"bad": "died (exit code 3)", "good": "ok"}
    assert outcomes(SurveyRequest(ENOUGH, loads=True)) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="memory cannot be limited there")
def test_hunger_for_memory_ends_at_the_limit(site: Path) -> None:
    write_plugin(site, "bad", f"hoard = bytearray({1 << 30})")
    write_plugin(site, "good")
    limited, unlimited = (SurveyRequest(ENOUGH, memory_limit=n) for n in (300 << 20, None))
    assert survey(limited)["bad"].plugin.error == "MemoryError"
    assert outcomes(limited) == {"bad": "failed", "good": "ok"}
    assert outcomes(unlimited) == {"bad": "ok", "good": "ok"}


@posix
def test_a_plugin_cannot_wait_for_input(site: Path) -> None:
    write_plugin(site, "bad", "input()")
    assert survey(SurveyRequest(ENOUGH))["bad"].plugin.error.startswith("EOFError")


@posix
def test_what_plugins_print_goes_to_standard_error(
    site: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    prints = "import ctypes, os\nprint(1)\nos.write(1, b'2\\n')\nctypes.CDLL(None).puts(b'3')\n"
    write_plugin(site, "bad", prints + LOADS.format(body="print(4); os.write(1, b'5'); return 1"))
    assert survey(SurveyRequest(ENOUGH, loads=True))["bad"].findings
    out, err = capfd.readouterr()
    assert out == ""
    assert sorted(err.replace("\n", "")) == list("12345")


@pytest.mark.parametrize("isolated", [False, True])
def test_an_interrupt_ends_the_processes_as_well(
    site: Path, monkeypatch: pytest.MonkeyPatch, isolated: bool
) -> None:
    workers: list[Worker] = []

    class Interrupted(Worker):
        def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
            workers.append(self)
            if "bad" in [name for name, *_ in self.argument.plugins]:
                raise KeyboardInterrupt
            return super().ask(method, *arguments, **options)

    monkeypatch.setattr(plugin_survey, "Worker", Interrupted)
    for name in ("bad", "worse"):
        write_plugin(site, name, ENDLESS["bad"])
    with pytest.raises(KeyboardInterrupt):
        survey_plugins(SurveyRequest(ENOUGH, isolated=isolated))
    assert [worker.is_alive for worker in workers] == [False] * len(workers)


def test_plugins_and_findings_come_back_as_they_went(site: Path) -> None:
    write_plugin(site, "bad", LOADS.format(body="return 1"))
    surveyed = survey(SurveyRequest(ENOUGH, loads=True))["bad"]
    assert isinstance(plugin_from_json(surveyed.description), Plugin)
    assert str(plugin_from_json(surveyed.description)) == str(surveyed.plugin)
    [finding] = surveyed.findings
    assert Finding.from_json(finding.to_json()) == finding


def test_what_another_process_imported_is_not_loaded_here(site: Path) -> None:
    write_plugin(site, "bad", LOADS.format(body="return 1"))
    plugin = plugin_from_json(survey(SurveyRequest(ENOUGH))["bad"].description)
    with pytest.raises(PluginLoadError, match="that another process imported"):
        plugin.delegates[0].load()


def test_no_plugin_needs_no_process(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELEGRAPH_PLUGINS", "")
    monkeypatch.setattr(sys, "executable", os.fspath(site / "none"))
    assert {s.plugin.state for s in survey_plugins(SurveyRequest(ENOUGH))} <= {
        PluginState.NOT_ALLOWED
    }
