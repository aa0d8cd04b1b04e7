from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.command import Command
from support.fake_distributions import GOOD, pip_install, write_distribution, write_plugin

WITH_OPTIONS = """\
import dataclasses
from delegraph import DelegateSpec, hookimpl

@dataclasses.dataclass
class Options:
    speed: int = dataclasses.field(default=3, metadata={"help": "how fast"})
    path: str = ""

def _load():
    import fake_tunable_heavy
    return fake_tunable_heavy.FakeDelegate

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("tuner", "a fake with options", _load, Options)]
"""

BROKEN = "raise RuntimeError('no driver')"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    write_plugin(folder, "good")
    write_plugin(folder, "tunable", WITH_OPTIONS)
    return folder


def test_list_shows_plugins_delegates_and_states(fresh_delegraph: Command, site: Path) -> None:
    write_plugin(site, "bad", BROKEN)
    ran = fresh_delegraph("plugins", "list", DELEGRAPH_DISABLE_PLUGINS="good")
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "plugin distribution version state",
        "bad fake-bad 1.0 broken",
        "good fake-good 1.0 disabled",
        "tunable fake-tunable 1.0 ok",
        "tuner tunable a fake with options",
        "plugin 'bad' of fake-bad 1.0: RuntimeError: no driver",
        "plugin 'good' of fake-good 1.0: disabled by DELEGRAPH_DISABLE_PLUGINS",
    ):
        assert line in ran.lines, line


def test_list_says_what_a_plugin_without_hooks_lacks(fresh_delegraph: Command, site: Path) -> None:
    write_plugin(site, "bare", "")
    advice = (
        "plugin 'bare' of fake-bare 1.0 offers nothing: define hooks in fake_bare, as "
        "delegraph_delegates, with @delegraph.hookimpl"
    )
    assert advice in fresh_delegraph("plugins", "list").lines
    shown = fresh_delegraph("plugins", "info", "bare").lines
    assert shown[3:5] == ["why it offers nothing", f"remedy {advice.partition(': ')[2]}"]


def test_list_and_doctor_suspect_a_misspelled_group(fresh_delegraph: Command, site: Path) -> None:
    points = "[delegraph.delegates]\nmine = fake_mine\n"
    write_distribution(site, "fake-mine", {"fake_mine": ""}, points)
    found = "fake-mine 1.0 has entry points of group 'delegraph.delegates', which Delegraph does"
    listed, checked = fresh_delegraph("plugins", "list"), fresh_delegraph("plugins", "doctor")
    assert any(line.startswith(found) for line in listed.lines)
    assert any(found in line for line in checked.lines)


def test_without_a_subcommand_the_help_is_shown_as_a_usage_error(delegraph: Command) -> None:
    ran = delegraph("plugins")
    assert ran.code == 2
    names = [line.split()[0] for line in ran.err.splitlines()[-4:]]
    assert names == ["list", "info", "doctor", "catalogue"]


def test_list_says_when_there_are_none(delegraph: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from delegraph.plugins import discovery

    monkeypatch.setattr(discovery, "installed_entry_points", lambda: ([], []))
    assert delegraph("plugins", "list").out.startswith("no plugins are installed")


def test_list_as_json(fresh_delegraph: Command, site: Path) -> None:
    plugins = fresh_delegraph("plugins", "list", "--json").json["plugins"]
    (tunable,) = (p for p in plugins if p["name"] == "tunable")
    assert tunable["state"] == "ok"
    assert tunable["delegates"][0]["name"] == "tuner"
    assert tunable["delegates"][0]["options"][0] == {
        "name": "speed",
        "type": "int",
        "default": "3",
        "help": "how fast",
    }
    schema = tunable["delegates"][0]["options_schema"]
    assert schema["properties"]["speed"] == {
        "type": "integer",
        "description": "how fast",
        "default": 3,
    }
    assert tunable["delegates"][0]["is_ready"] is True
    assert fresh_delegraph("plugins", "info", "tuner", "--json").json["plugins"] == [tunable]


def test_list_says_what_is_applied_by_default(fresh_delegraph: Command, site: Path) -> None:
    environment = {"DELEGRAPH_DEFAULT_DELEGATES": "good"}
    ran = fresh_delegraph("plugins", "list", **environment)
    assert "By default: good (set by DELEGRAPH_DEFAULT_DELEGATES)" in ran.lines
    answer = fresh_delegraph("plugins", "list", "--json", **environment).json["by_default"]
    assert answer == {"delegates": ["good"], "why": "set by DELEGRAPH_DEFAULT_DELEGATES"}


def test_what_a_plugin_prints_does_not_spoil_json(fresh_delegraph: Command, site: Path) -> None:
    write_plugin(site, "loud", "print('hello')")
    ran = fresh_delegraph("plugins", "list", "--json")
    assert ran.json["plugins"]
    assert ran.err == "hello\n"


@pytest.mark.parametrize("name", ["tuner", "fake-tunable:tuner", "tunable", "fake-tunable"])
def test_info_shows_options_and_defaults(fresh_delegraph: Command, site: Path, name: str) -> None:
    ran = fresh_delegraph("plugins", "info", name)
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "plugin 'tunable' of fake-tunable 1.0",
        "Delegate tuner",
        "a fake with options",
        "option type meaning",
        "speed int how fast [default: 3]",
        "path str [default: empty]",
        "For example: --delegate tuner:speed=4",
    ):
        assert line in ran.lines, line


CLAIMING = """
from delegraph import (
    Capabilities, Claim, DelegateSpec, SimpleDelegateInterface, Tolerance, hookimpl
)


class Claiming(SimpleDelegateInterface):
    def name(self):
        return "claiming"

    def capabilities(self):
        return Capabilities(CLAIMS, tolerance={"INT8": Tolerance(absolute=1)})

    def is_node_supported_by_delegate(self, registration, node, context):
        return False

    def create_delegate_kernel_interface(self):
        raise NotImplementedError


@hookimpl
def delegraph_delegates():
    return [DelegateSpec("claiming", "a fake that claims", lambda: Claiming)]
"""

HYBRID = """
    Claim("CONV_2D", "FLOAT32", "broadcast", weights=["INT8", "INT4"], versions=(2, 5)),
    Claim("ADD", "INT8"), Claim("TANH", "FLOAT32", tolerance=Tolerance(0.01)), Claim("SUB", "INT8"),
"""


def test_info_shows_claims_by_form(fresh_delegraph: Command, site: Path) -> None:
    write_plugin(site, "claims", CLAIMING.replace("CLAIMS", f"[{HYBRID}]"))
    ran = fresh_delegraph("plugins", "info", "claiming", "--claims")
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "What claiming takes",
        "FLOAT32; weights INT8, INT4; versions 2-5; broadcast CONV_2D",
        "INT8 ADD, SUB",
        "FLOAT32; tolerance 0.01 relative, 0 absolute TANH",
        "INT8 0 relative, 1 absolute",
    ):
        assert line in ran.lines, line
    content = fresh_delegraph("plugins", "info", "claiming", "--claims", "--json").json
    found = content["claims"]["fake-claims:claiming"]
    assert found["tolerance"] == {"INT8": {"relative": 0.0, "absolute": 1.0}}
    assert found["claims"][0] == {
        "operators": ["CONV_2D"],
        "types": ["FLOAT32"],
        "roles": {"weights": ["INT8", "INT4"]},
        "versions": [2, 5],
        "activations": [],
        "features": ["broadcast"],
        "tolerance": None,
    }


@pytest.mark.parametrize(
    ("claims", "code", "message"),
    [("[]", 0, "it does not say"), ("1 / 0", 3, "ZeroDivisionError: division by zero")],
)
def test_info_says_when_a_delegate_claims_nothing(
    fresh_delegraph: Command, site: Path, claims: str, code: int, message: str
) -> None:
    write_plugin(site, "claims", CLAIMING.replace("CLAIMS", claims))
    ran = fresh_delegraph("plugins", "info", "claiming", "--claims")
    assert ran.code == code
    assert message in ran.out + ran.err


def test_info_of_a_broken_plugin_tells_why_and_exits_with_3(
    fresh_delegraph: Command, site: Path
) -> None:
    write_plugin(site, "bad", BROKEN)
    ran = fresh_delegraph("plugins", "info", "bad")
    assert ran.code == 3
    assert "why RuntimeError: no driver" in ran.lines
    assert any("DELEGRAPH_DISABLE_PLUGINS=bad" in line for line in ran.lines)


def test_info_as_json_exits_as_the_text_does(fresh_delegraph: Command, site: Path) -> None:
    write_plugin(site, "bad", BROKEN)
    bad, good = (fresh_delegraph("plugins", "info", name, "--json") for name in ("bad", "good"))
    assert (bad.code, good.code) == (3, 0)
    assert bad.json["plugins"][0]["error"] == "RuntimeError: no driver"


def test_info_of_nothing_known_exits_with_3(fresh_delegraph: Command, site: Path) -> None:
    ran = fresh_delegraph("plugins", "info", "tunr")
    assert ran.code == 3
    assert ran.err.startswith("error: no installed plugin provides delegate 'tunr' (did you mean")


def test_list_names_what_ends_its_process_and_goes_on(fresh_delegraph: Command, site: Path) -> None:
    write_plugin(site, "bad", "import os; os._exit(3)")
    ran = fresh_delegraph("plugins", "list", DELEGRAPH_PLUGINS="bad,good")
    assert ran.code == 0
    assert "bad fake-bad 1.0 died" in ran.lines
    assert "good fake-good 1.0 ok" in ran.lines
    assert "plugin 'bad' of fake-bad 1.0: its process ended with exit code 3" in ran.lines


def test_list_names_what_does_not_end(fresh_delegraph: Command, site: Path) -> None:
    write_plugin(site, "bad", "while True: pass")
    words = ("plugins", "list", "--time-limit", "0.5")
    ran = fresh_delegraph(*words, DELEGRAPH_PLUGINS="bad")
    assert ran.code == 0
    assert "bad fake-bad 1.0 timed out" in ran.lines
    assert "give it longer with --time-limit, mend its code, or leave it out" in ran.out
    assert any("did not end within 0.5 s" in line for line in ran.lines)
    assert any("DELEGRAPH_DISABLE_PLUGINS=bad" in line for line in ran.lines)


def test_doctor_is_content_with_good_plugins(fresh_delegraph: Command, site: Path) -> None:
    ran = fresh_delegraph("plugins", "doctor", DELEGRAPH_PLUGINS="good")
    assert ran.code == 0
    assert ran.lines[0].endswith("1 usable, 1 delegate, 0 findings")


def test_info_and_doctor_show_which_delegates_ask_for_a_process(
    fresh_delegraph: Command, site: Path
) -> None:
    spec = '"a fake with options", _load, Options, isolate="process", timeout=5)'
    source = WITH_OPTIONS.replace('"a fake with options", _load, Options)', spec)
    write_plugin(site, "cautious", source.replace('"tuner"', '"careful"'))
    text = "runs in a process of its own, 5 s for an invoke (--isolate none: in this one)"
    assert text in fresh_delegraph("plugins", "info", "careful").lines
    found = fresh_delegraph("plugins", "doctor")
    line = f"delegate 'careful' of plugin 'cautious' of fake-cautious 1.0: {text}"
    assert line in " ".join(found.lines)
    assert found.out.count("in a process of its own") == 1


def test_doctor_finds_what_is_broken_and_exits_with_3(fresh_delegraph: Command, site: Path) -> None:
    write_plugin(site, "bad", BROKEN)
    (site / "fake_good_heavy.py").write_text("import no_such_driver")
    ran = fresh_delegraph("plugins", "doctor")
    assert ran.code == 3
    assert "error: plugin 'bad' of fake-bad 1.0: broken: RuntimeError: no driver" in ran.lines
    assert (
        "error: delegate 'good' of plugin 'good' of fake-good 1.0: load() failed: "
        "ModuleNotFoundError: No module named 'no_such_driver'"
    ) in ran.lines
    assert any("option 'path' has no description" in line for line in ran.lines)
    shown = fresh_delegraph("plugins", "doctor", "--json")
    assert shown.code == 3
    assert shown.json["ok"] is False
    assert shown.json["findings"][0]["level"] == "error"


def test_doctor_shows_the_configuration_and_what_it_changes(
    fresh_delegraph: Command, site: Path, tmp_path: Path
) -> None:
    file = tmp_path / "delegraph.toml"
    file.write_text(
        "delegates = ['tuner', 'missing']\n[plugins]\nallow = ['tunable']\ndisable = ['good']\n"
        "[cache]\nfolder = '/kept'\nsize = '1K'"
    )
    ran = fresh_delegraph(
        "plugins", "doctor", DELEGRAPH_CONFIG=str(file), DELEGRAPH_DISABLE_PLUGINS=""
    )
    assert ran.code == 3
    assert f"Configuration file {file}" in " ".join(ran.lines)
    for start, end in (
        ("delegates tuner, missing", "neither arguments nor options name delegates"),
        ("plugins.disable good", "none: DELEGRAPH_DISABLE_PLUGINS is set, and wins"),
        ("cache.folder /kept compiled partitions are kept there, not in", "compiled"),
        ("cache.size 1024", "not 4000000000"),
    ):
        assert any(line.startswith(start) and line.endswith(end) for line in ran.lines), start
    source = f"error: configuration file {str(file)!r}: delegates: models cannot be loaded:"
    said = " ".join(ran.out.split())
    assert f"{source} no installed plugin provides delegate 'missing'" in said
    report = fresh_delegraph("plugins", "doctor", "--json", DELEGRAPH_CONFIG=str(file)).json
    allowed = report["configuration"]["settings"][1]
    assert (allowed["key"], allowed["value"]) == ("plugins.allow", "tunable")
    assert allowed["effect"].startswith("leaves out ")
    assert "good" not in allowed["effect"]  # disabled, which is told first
    assert report["configuration"]["settings"][2]["effect"] == "leaves out good"


def test_doctor_says_last_which_file_it_would_read(fresh_delegraph: Command) -> None:
    ran = fresh_delegraph("plugins", "doctor", DELEGRAPH_PLUGINS="")
    assert ran.lines[0].endswith("0 findings")
    assert ran.lines[-1] == "no file: DELEGRAPH_CONFIG is empty"


def test_doctor_reports_a_broken_configuration_and_goes_on(
    fresh_delegraph: Command, site: Path, tmp_path: Path
) -> None:
    file = tmp_path / "delegraph.toml"
    file.write_text("[plugins]\nallowed = []")
    ran = fresh_delegraph("plugins", "doctor", DELEGRAPH_CONFIG=str(file), DELEGRAPH_PLUGINS="good")
    assert ran.code == 3
    assert f"error: configuration file {str(file)!r}: no key 'plugins.allowed' is known" in ran.out
    assert ran.lines[-1] == "no file: it is broken, see above"


def test_a_mistake_in_the_configuration_is_one_line(
    fresh_delegraph: Command, site: Path, tmp_path: Path
) -> None:
    file = tmp_path / "delegraph.toml"
    file.write_text("[plugins]\nallowed = []")
    ran = fresh_delegraph("plugins", "list", DELEGRAPH_CONFIG=str(file))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"error: configuration file {str(file)!r}: no key 'plugins.allowed' is known (did you mean "
        "'plugins.allow'?); valid keys: cache.folder, cache.size, delegates, plugins.allow, "
        "plugins.disable (DELEGRAPH_CONFIG= reads no file)\n"
    )


def test_a_delegate_of_a_broken_plugin_exits_with_3(
    fresh_delegraph: Command, site: Path, custom: Path
) -> None:
    write_plugin(site, "bad", BROKEN)
    ran = fresh_delegraph("run", custom, "-d", "bad")
    assert ran.code == 3
    assert "plugin 'bad' of fake-bad 1.0 is broken: RuntimeError: no driver" in ran.err
    assert len(ran.err.splitlines()) == 1


# -- doctor --isolated -----------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals there")
def test_isolated_doctor_tells_how_each_plugin_went(fresh_delegraph: Command, site: Path) -> None:
    write_plugin(site, "aborts", "import os; os.abort()")
    write_plugin(site, "raises", BROKEN)
    (site / "fake_tunable_heavy.py").write_text("import os; os._exit(4)")
    ran = fresh_delegraph(
        "plugins", "doctor", "--isolated", DELEGRAPH_PLUGINS="aborts,raises,tunable,good"
    )
    assert ran.code == 3
    for line in (
        "plugin distribution version outcome",
        "aborts fake-aborts 1.0 died (SIGABRT)",
        "good fake-good 1.0 ok",
        "raises fake-raises 1.0 failed",
        "tunable fake-tunable 1.0 died (exit code 4)",
        "error: plugin 'aborts' of fake-aborts 1.0: died: its process ended with SIGABRT",
        "error: plugin 'tunable' of fake-tunable 1.0: its process ended with exit code 4 while "
        "its offers were loaded",
    ):
        assert line in ran.lines, line


def test_isolated_doctor_survives_what_pip_installed(
    fresh_delegraph: Command, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    pip_install(site, "fake_exits", "import os; os._exit(5)", "exits")
    pip_install(site, "fake_odd", "raise AssertionError", "../odd")
    pip_install(site, "fake_fine", GOOD.format(module="json", delegate="fine"), "fine")
    (site / "json_heavy.py").write_text("FakeDelegate = dict")
    ran = fresh_delegraph(
        "plugins", "doctor", "--isolated", "--json", DELEGRAPH_PLUGINS="exits,fine"
    )
    assert ran.code == 3
    outcomes = {p["name"]: p["outcome"] for p in ran.json["plugins"] if "fake" in p["distribution"]}
    assert outcomes == {"exits": "died (exit code 5)", "../odd": "failed", "fine": "ok"}
    texts = {finding["subject"]: finding["text"] for finding in ran.json["findings"]}
    assert "its entry point is named '../odd'" in texts["plugin '../odd' of fake_odd 1.0"]


def test_isolated_doctor_limits_memory(fresh_delegraph: Command, site: Path) -> None:
    ran = fresh_delegraph("plugins", "doctor", "--memory-limit", "1G")
    assert ran.code == 2
    assert "--memory-limit needs --isolated" in ran.err
    words = ("plugins", "doctor", "--isolated", "--memory-limit", "1G")
    assert fresh_delegraph(*words, DELEGRAPH_PLUGINS="good").code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are another matter there")
@pytest.mark.parametrize(
    "words", [("list",), ("info", "loud"), ("doctor",), ("doctor", "--isolated")]
)
def test_nothing_that_a_plugin_prints_spoils_json(
    fresh_delegraph: Command, site: Path, words: tuple[str, ...]
) -> None:
    loud = "import ctypes, os\nprint('a')\nos.write(1, b'b\\n')\nctypes.CDLL(None).puts(b'c')\n"
    write_plugin(site, "loud", loud + GOOD.format(module="fake_loud", delegate="loud"))
    heavy = site / "fake_loud_heavy.py"
    heavy.write_text(loud + heavy.read_text())
    ran = fresh_delegraph("plugins", *words, "--json", DELEGRAPH_PLUGINS="loud")
    assert ran.code == 0
    assert "loud" in [plugin["name"] for plugin in ran.json["plugins"]]
    assert sorted(set(ran.err.split())) == ["a", "b", "c"]


def test_list_warns_of_allowed_names_that_are_not_installed(
    fresh_delegraph: Command, site: Path
) -> None:
    ran = fresh_delegraph("plugins", "list", DELEGRAPH_PLUGINS="good,gone")
    assert "warning: DELEGRAPH_PLUGINS names 'gone', which is not installed: " in ran.err
