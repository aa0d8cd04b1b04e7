from __future__ import annotations

import logging
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from delegraph.plugins import Plugin, PluginSet, PluginState, discovery, installed, plugin_set
from delegraph.plugins.plugin import one_line
from support.fake_distributions import GOOD, write_distribution, write_plugin

SPEC = "from delegraph.plugins import CustomOpSpec, DelegateSpec, hookimpl\n"
HOOK = SPEC + "@hookimpl\ndef delegraph_delegates({arguments}):\n    {body}\n"


def fakes(plugins: PluginSet) -> dict[str, Plugin]:
    """The plugins of this test's fake distributions, by name."""
    return {p.name: p for p in plugins.plugins if p.distribution.startswith("fake-")}


def test_a_good_plugin_is_listed_with_its_distribution_and_delegates(site: Path) -> None:
    write_plugin(site, "good")
    plugin = fakes(PluginSet())["good"]
    assert (plugin.state, plugin.error) == (PluginState.OK, "")
    assert (plugin.distribution, plugin.version, plugin.module) == ("fake-good", "1.0", "fake_good")
    assert [spec.name for spec in plugin.delegates] == ["good"]


BROKEN = {
    "raises at import": ("raise RuntimeError('no driver')", "RuntimeError: no driver"),
    "exits at import": ("raise SystemExit(3)", "SystemExit: 3"),
    "base exception": ("raise GeneratorExit", "GeneratorExit"),
    "several lines": ("raise OSError('first\\nsecond')", "OSError: first; second$"),
    "does not parse": ("def", "SyntaxError: "),
    "misses a module": ("import no_such_module", "ModuleNotFoundError: No module named"),
    "wrong hook signature": (
        HOOK.format(arguments="config", body="return []"),
        "PluginValidationError: .*config",
    ),
    "unknown hook": (
        SPEC + "@hookimpl\ndef delegraph_delegate(): return []",
        "PluginValidationError: unknown hook 'delegraph_delegate'",
    ),
    "hook raises": (HOOK.format(arguments="", body="1 / 0"), "ZeroDivisionError: division by zero"),
    "forgotten return": (
        HOOK.format(arguments="", body="pass"),
        "TypeError: delegraph_delegates returned None, expected a list of DelegateSpec",
    ),
    "one spec, no list": (
        HOOK.format(arguments="", body="return DelegateSpec('a', 's', print)"),
        "TypeError: delegraph_delegates returned DelegateSpec 'a', expected a list of DelegateSpec",
    ),
    "list of something": (
        HOOK.format(arguments="", body="return ['sin']"),
        "TypeError: delegraph_delegates returned a list with str 'sin', expected DelegateSpec",
    ),
    "name twice": (
        HOOK.format(arguments="", body="return [DelegateSpec('a', 's', print)] * 2"),
        "TypeError: delegraph_delegates returned 'a' more than once",
    ),
    "bad delegate name": (
        HOOK.format(arguments="", body="return [DelegateSpec('a:b', 's', print)]"),
        "ArgumentError: DelegateSpec name is 'a:b', expected a letter followed by",
    ),
    "custom op hook returns delegates": (
        SPEC + "@hookimpl\ndef delegraph_custom_ops(): return [DelegateSpec('a', 's', print)]",
        "TypeError: delegraph_custom_ops returned a list with DelegateSpec 'a', expected CustomOp",
    ),
    "hook without hookimpl": (
        "def delegraph_delegates(): return []",
        "TypeError: the function delegraph_delegates is not marked as a hook: write @hookimpl",
    ),
    "one hook without hookimpl": (
        HOOK.format(arguments="", body="return []") + "\ndef delegraph_commands(): return []",
        "TypeError: the function delegraph_commands is not marked as a hook: write @hookimpl",
    ),
}


@pytest.mark.parametrize(("source", "error"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_plugin_is_data_and_does_not_stop_the_others(
    site: Path, source: str, error: str
) -> None:
    write_plugin(site, "broken", source)
    write_plugin(site, "good")
    found = fakes(PluginSet())
    assert found["broken"].state is PluginState.BROKEN
    assert re.match(error, found["broken"].error), found["broken"].error
    assert "\n" not in found["broken"].error
    assert found["good"].state is PluginState.OK


def test_ctrl_c_during_an_import_is_not_swallowed(site: Path) -> None:
    write_plugin(site, "interrupted", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        PluginSet()


def test_an_entry_point_without_its_module_is_broken(site: Path) -> None:
    write_distribution(site, "fake-empty", {}, {"empty": "fake_module_that_is_gone"})
    assert fakes(PluginSet())["empty"].error.startswith("ModuleNotFoundError: ")


@pytest.mark.parametrize("api", ["2", "'1'", "None"])
def test_a_plugin_for_another_api_version_is_incompatible_and_its_hooks_are_not_called(
    site: Path, api: str
) -> None:
    body = f"DELEGRAPH_API = {api}\n" + HOOK.format(arguments="", body="raise AssertionError")
    write_plugin(site, "other_api", body)
    plugin = fakes(PluginSet())["other_api"]
    assert plugin.state is PluginState.INCOMPATIBLE
    assert plugin.error == f"made for plugin API {api}, this delegraph has 1"


def test_a_plugin_may_state_the_api_version_that_it_fits(site: Path) -> None:
    write_plugin(site, "v1", "DELEGRAPH_API = 1\n" + GOOD.format(module="fake_v1", delegate="v1"))
    assert fakes(PluginSet())["v1"].state is PluginState.OK


def test_a_warning_at_import_is_kept_as_text_and_is_no_error(site: Path) -> None:
    source = "import warnings\nwarnings.warn('old', DeprecationWarning)\n"
    write_plugin(site, "warns", source)  # warnings are errors in this test run
    plugin = fakes(PluginSet())["warns"]
    assert plugin.state is PluginState.OK
    assert plugin.warnings == ("old",)


FIND = (
    "from delegraph.plugins import PluginSet\n"
    "[fake] = [p for p in PluginSet().plugins if p.distribution.startswith('fake-')]\n"
)

PRINTS = {
    "print": "print('hello')",
    "sys.stdout": "import sys\nsys.stdout.write('hello\\n')",
    "sys.__stdout__": "import sys\nsys.__stdout__.write('hello\\n')",
    "descriptor": "import os\nos.write(1, b'hello\\n')",
    "C": "import ctypes\nctypes.CDLL(None).puts(b'hello')",
    "another process": "import os\nos.system('echo hello')",
    "hook": HOOK.format(arguments="", body="print('hello'); return []"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="some of them are spelled otherwise there")
@pytest.mark.parametrize("source", PRINTS.values(), ids=list(PRINTS))
def test_what_a_plugin_prints_goes_to_standard_error(site: Path, source: str) -> None:
    write_plugin(site, "prints", source)
    done = subprocess.run(
        [sys.executable, "-c", "print(1)\n" + FIND + "print(2)"],
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("1\n2\n", "hello\n")


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are another matter there")
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_plugins_are_found_by_a_process_without_standard_streams(site: Path, closed: str) -> None:
    write_plugin(site, "prints", "print('hello')")
    code = FIND + "assert fake.delegates == ()"
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code]
    subprocess.run(command, env={"PYTHONPATH": str(site)}, check=True)


ODD_NAMES = {
    "../x": "'../x'",
    "a/b": "'a/b'",
    "a\\b": r"'a\\\\b'",
    "..": "'..'",
    "-rf": "'-rf'",
    "a b": "'a b'",
    "a,b": "'a,b'",
    "esc\x1b[2J": r"'esc\\x1b\[2J'",
    "": "''",
    "x" * 101: "'" + "x" * 100 + "'",
}


@pytest.mark.parametrize(("name", "shown"), ODD_NAMES.items(), ids=range(len(ODD_NAMES)))
def test_an_odd_name_is_refused_without_an_import(site: Path, name: str, shown: str) -> None:
    write_distribution(site, "fake-odd", {"fake_odd": "raise AssertionError"}, {name: "fake_odd"})
    (plugin,) = (p for p in PluginSet().plugins if p.distribution == "fake-odd")
    assert plugin.state is PluginState.BROKEN
    assert re.match(rf"its entry point is named {shown}, expected at most 100", plugin.error)
    assert plugin.remedy.endswith("or remove it with 'pip uninstall fake-odd'") or len(name) > 100
    assert (str(plugin) + plugin.error).isprintable()
    assert "fake_odd" not in sys.modules


def test_what_a_terminal_would_obey_is_shown_as_text(site: Path) -> None:
    write_distribution(site, "fake-odd", {}, {"odd": "fake\x1b[2J"})
    metadata = site / "fake_odd-1.0.dist-info" / "METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: fake-odd\x1b[2J\nVersion: 1.0\x07\n")
    (plugin,) = (p for p in PluginSet().plugins if p.name == "odd")
    assert plugin.distribution == r"fake-odd\x1b[2J"
    assert (str(plugin) + plugin.module + plugin.error).isprintable()


SLOW = {
    "import": "import sys\nassert sys.named(60)",
    "hook": HOOK.format(arguments="", body="import sys; assert sys.named(60); return []"),
}


@pytest.mark.parametrize("source", SLOW.values(), ids=list(SLOW))
def test_an_import_or_hook_that_does_not_end_is_named(
    site: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, source: str
) -> None:
    named = threading.Event()

    def note(record: logging.LogRecord) -> bool:
        if "'slow'" in record.getMessage():  # a loaded machine is slow with others, too
            named.set()
        return True

    monkeypatch.setattr(discovery, "PATIENCE", 0.01)
    monkeypatch.setattr(sys, "named", named.wait, raising=False)
    caplog.handler.addFilter(note)
    write_plugin(site, "slow", source)
    assert fakes(PluginSet())["slow"].state is PluginState.OK
    caplog.handler.removeFilter(note)
    assert (
        "plugin 'slow' of fake-slow 1.0 is still being imported after 0.01 s; "
        "DELEGRAPH_DISABLE_PLUGINS=slow leaves it out"
    ) in caplog.messages


def test_nothing_waits_to_name_a_plugin_that_was_imported_in_time(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "PATIENCE", 60)
    write_plugin(site, "quick")
    PluginSet()
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(5)
            assert not thread.is_alive()


def test_the_log_says_what_each_plugin_offers(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_plugin(site, "good")
    caplog.set_level(logging.INFO)
    PluginSet()
    assert "plugin 'good' of fake-good 1.0: ok, offers delegate good" in caplog.messages


def test_disabled_plugins_are_listed_and_not_imported(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugin(site, "good")
    write_plugin(site, "bad", "raise AssertionError('imported')")
    monkeypatch.setenv("DELEGRAPH_DISABLE_PLUGINS", "bad, other")
    found = fakes(PluginSet())
    assert found["bad"].state is PluginState.DISABLED
    assert found["bad"].error == "disabled by DELEGRAPH_DISABLE_PLUGINS"
    assert found["good"].state is PluginState.OK


def test_an_allow_list_admits_only_its_plugins(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two", "three"):
        write_plugin(site, name)
    monkeypatch.setenv("DELEGRAPH_PLUGINS", "one,fake_two:two")
    found = fakes(PluginSet())
    assert [name for name, p in found.items() if p.state is PluginState.OK] == ["one", "two"]
    assert found["three"].state is PluginState.NOT_ALLOWED
    assert found["three"].error == "DELEGRAPH_PLUGINS allows only 'fake_two:two,one'"
    assert "fake_three" not in sys.modules


def test_an_empty_allow_list_admits_none(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(site, "one")
    monkeypatch.setenv("DELEGRAPH_PLUGINS", "")
    assert {p.state for p in PluginSet().plugins} == {PluginState.NOT_ALLOWED}


def test_arguments_override_the_environment(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(site, "one")
    monkeypatch.setenv("DELEGRAPH_PLUGINS", "")
    monkeypatch.setenv("DELEGRAPH_DISABLE_PLUGINS", "one")
    assert fakes(PluginSet(allow=["*"], disable=[]))["one"].state is PluginState.OK
    only = fakes(PluginSet(allow=["two"], disable=[]))["one"]
    assert (only.state, only.error) == (PluginState.NOT_ALLOWED, "the allow list allows only 'two'")
    assert fakes(PluginSet(disable=["one"], allow=["*"]))["one"].error == (
        "disabled by the disable list"
    )


def test_unreadable_entry_points_make_one_broken_plugin(site: Path) -> None:
    write_distribution(site, "fake-damaged", {}, "[delegraph.plugins]\nthis line has no equals\n")
    write_plugin(site, "good")
    found = fakes(PluginSet())
    assert (found["fake-damaged"].state, found["fake-damaged"].version) == (
        PluginState.BROKEN,
        "1.0",
    )
    assert found["fake-damaged"].error == (
        "its entry_points.txt cannot be read: ValueError: 'this line has no equals' of "
        "[delegraph.plugins], expected NAME = MODULE"
    )
    assert found["good"].state is PluginState.OK


def test_an_entry_point_that_is_no_reference_hides_no_other_of_its_distribution(site: Path) -> None:
    points = "[console_scripts]\nrun = not a reference\n[delegraph.plugins]\n# text\n"
    points += "odd = also none\n good=fake_good \n[]\nno equals\n"
    source = GOOD.format(module="fake_good", delegate="good")
    write_distribution(site, "fake-both", {"fake_good": source}, points)
    found = fakes(PluginSet())
    assert {name: plugin.state for name, plugin in found.items()} == {
        "good": PluginState.OK,
        "odd": PluginState.BROKEN,
    }
    assert found["odd"].error.startswith("ModuleNotFoundError: ")


def test_distributions_without_metadata_still_count(site: Path) -> None:
    for name in ("bare", "naked"):
        write_plugin(site, name)
        (site / f"fake_{name}-1.0.dist-info" / "METADATA").unlink()
    states = {p.name: p.state for p in PluginSet().plugins}
    assert states["bare"] is states["naked"] is PluginState.OK


@pytest.mark.parametrize(
    ("metadata", "distribution", "version"),
    [
        (b"Name: \xff\xfe\n", "(unknown distribution)", ""),
        (b"metadata-version: 2.1\nname:  Fake-Good \n\nVersion: of the text\n", "Fake-Good", ""),
        (b"Version: 1.0\r\nName: fake-good\r\n\r\nName: text\r\n", "fake-good", "1.0"),
    ],
)
def test_names_and_versions_come_from_the_headers_alone(
    site: Path, metadata: bytes, distribution: str, version: str
) -> None:
    write_plugin(site, "good")
    (site / "fake_good-1.0.dist-info" / "METADATA").write_bytes(metadata)
    (found,) = (p for p in PluginSet().plugins if p.name == "good")
    assert (found.distribution, found.version) == (distribution, version)
    assert found.state is PluginState.OK


def test_entry_points_that_are_no_text_are_not_ours(site: Path) -> None:
    write_distribution(site, "fake-binary", {}, "")
    (site / "fake_binary-1.0.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe")
    assert fakes(PluginSet()) == {}


def test_the_first_copy_on_the_path_counts(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugin(site, "twice")
    write_distribution(tmp_path / "newer", "fake-twice", {}, {"renamed": "fake_twice"}, "2.0")
    monkeypatch.syspath_prepend(tmp_path / "newer")
    found = [p for p in PluginSet().plugins if p.distribution == "fake-twice"]
    assert [(plugin.name, plugin.version) for plugin in found] == [("renamed", "2.0")]
    write_distribution(tmp_path / "newest", "Fake.Twice", {}, "", "3.0")
    monkeypatch.syspath_prepend(tmp_path / "newest")
    assert fakes(PluginSet()) == {}  # the newest copy is no plugin


def test_a_damaged_copy_of_a_distribution_hides_no_plugin(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugin(site, "good")
    write_distribution(tmp_path / "newer", "fake-good", {}, {"good": "fake_good"}, "2.0")
    (tmp_path / "newer" / "fake_good-2.0.dist-info" / "METADATA").write_bytes(b"Name: \xff\n")
    monkeypatch.syspath_prepend(tmp_path / "newer")
    assert fakes(PluginSet())["good"].state is PluginState.OK


def test_a_distribution_whose_folder_bears_another_name_counts(site: Path) -> None:
    write_plugin(site, "good")
    (site / "fake_good-1.0.dist-info").rename(site / "renamed-1.0.dist-info")
    assert fakes(PluginSet())["good"].state is PluginState.OK


@pytest.mark.parametrize("names", [("Fake.Twice", "fake-twice"), ("fake-twice", "Fake.Twice")])
def test_two_spellings_of_a_distribution_are_one(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    write_distribution(site, names[0], {}, {"one": "fake_gone"})
    write_distribution(tmp_path / "newer", names[1], {}, {"two": "fake_gone"}, "2.0")
    monkeypatch.syspath_prepend(tmp_path / "newer")
    found = [p.name for p in PluginSet().plugins if p.distribution.lower().startswith("fake")]
    assert found == ["two"]


def test_two_looks_at_a_broken_plugin_are_equal(site: Path) -> None:
    write_plugin(site, "broken", "raise RuntimeError('no driver')")
    first, second = (fakes(PluginSet())["broken"] for _ in range(2))
    assert first.exception is not second.exception
    assert first == second
    assert "exception" not in repr(first)


def test_an_error_is_one_line_that_is_cut_when_it_is_long() -> None:
    assert one_line(OSError("a\n\n b"), 4) == "OSError: a; b"
    assert one_line(OSError("abcde"), 4) == "OSError: abcd..."


def run_python(site: Path, code: str) -> str:
    """Run *code* in a fresh interpreter that has *site* on its path; return what it prints."""
    prelude = f"import sys; sys.path.insert(0, {str(site)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + code], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_listing_imports_no_heavy_module_and_not_even_numpy(site: Path) -> None:
    for i in range(5):
        write_plugin(site, f"p{i}")
    out = run_python(
        site,
        "from delegraph.plugins import installed\n"
        "print(sum(o.spec.name.startswith('p') for o in installed().offers()))\n"
        "print(*(m for m in sys.modules if 'heavy' in m or m in ('numpy', 'click', 'rich')))",
    )
    assert out.split() == ["5"]


def test_importing_delegraph_discovers_nothing(site: Path) -> None:
    write_plugin(site, "good")
    out = run_python(site, "import delegraph; print(*(m for m in sys.modules if 'fake' in m))")
    assert out.split() == []


def test_the_process_discovers_once(site: Path) -> None:
    log = site / "log"
    write_plugin(site, "counts", f"with open({str(log)!r}, 'a') as log: log.write('imported ')")
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from delegraph.plugins import installed\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    sets = set(pool.map(lambda _: id(installed()), range(8)))\n"
        "print(len(sets))"
    )
    assert run_python(site, code).split() == ["1"]
    assert log.read_text() == "imported "


def test_a_plugin_that_asks_for_plugins_at_import_is_broken_and_does_not_hang(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_set, "found_plugins", None)  # as in a fresh process
    write_plugin(site, "asks", "from delegraph.plugins import installed; installed()")
    plugins = installed()
    error = fakes(plugins)["asks"].error
    assert error.startswith("PluginError: a plugin's module asks for plugins")
    assert installed() is plugins


def test_discovery_warns_of_nothing_when_all_is_well(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_plugin(site, "good")
    with caplog.at_level(logging.WARNING):
        PluginSet()
    assert not caplog.records
