from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.plugins import Plugin, PluginSet
from delegraph.tools.plugin_check import Finding, Level, check_loads, check_offers, errors_first
from support.fake_distributions import write_plugin

OPERATOR = """\
from delegraph import CustomOpSpec, hookimpl

def _load():
    raise OSError("no library")

@hookimpl
def delegraph_custom_ops():
    return [CustomOpSpec("MyOp", "a fake", _load)]
"""

ODD = """\
import dataclasses
from delegraph import DelegateSpec, hookimpl

@dataclasses.dataclass
class Options:
    speed: "NoSuchType" = 1

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("odd", "options cannot be read", lambda: 5, Options)]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("DELEGRAPH_PLUGINS", raising=False)
    monkeypatch.delenv("DELEGRAPH_DISABLE_PLUGINS", raising=False)
    return tmp_path


def findings(**chosen: list[str]) -> list[Finding]:
    plugins = PluginSet(**chosen)
    found = errors_first([*check_offers(plugins), *check_loads(plugins)])
    return [f for f in found if f.remedy and "example" not in f.subject]


def test_good_plugins_give_no_findings(site: Path) -> None:
    write_plugin(site, "good")
    assert findings() == []


def test_each_fault_is_found_and_errors_come_first(site: Path) -> None:
    write_plugin(site, "empty", "import warnings; warnings.warn('old')")
    write_plugin(site, "bad", "raise RuntimeError('no driver')")
    write_plugin(site, "odd", ODD)
    write_plugin(site, "op", OPERATOR)
    write_plugin(site, "one", delegate="shared")
    write_plugin(site, "two", delegate="shared")
    found = findings(disable=["gone"])
    levels = [f.level for f in found]
    assert levels == sorted(levels, key=lambda level: level is Level.WARNING)
    texts = [f"{f.level.value}: {f.subject}: {f.text}" for f in found]
    for text in (
        "error: plugin 'bad' of fake-bad 1.0: broken: RuntimeError: no driver",
        "error: delegate 'odd' of plugin 'odd' of fake-odd 1.0: load() returned a int, expected "
        "something to call",
        "error: custom operator 'MyOp': could not be loaded from plugin "
        "'op' of fake-op 1.0: OSError: no library",
        "warning: delegate 'shared': provided by plugin 'one' of fake-one 1.0, plugin 'two' of "
        "fake-two 1.0",
        "warning: plugin 'empty' of fake-empty 1.0: offers no delegates, custom operators or "
        "commands",
        "warning: plugin 'empty' of fake-empty 1.0: warns when imported: old",
        "warning: the disable list: names 'gone', which is not installed",
    ):
        assert text in texts, text
    assert any("annotation that cannot be evaluated" in text for text in texts)


def test_a_disabled_plugin_is_no_fault(site: Path) -> None:
    write_plugin(site, "bad", "raise RuntimeError('no driver')")
    assert findings(disable=["bad"]) == []


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("DELEGRAPH_PLUGINS", "gone,good", "install it, or leave it out: DELEGRAPH_PLUGINS=good; "),
        ("DELEGRAPH_PLUGINS", "goood", "DELEGRAPH_PLUGINS=good has the name that was probably "),
        ("DELEGRAPH_PLUGINS", "gone", "install it; without DELEGRAPH_PLUGINS all plugins are all"),
        ("DELEGRAPH_DISABLE_PLUGINS", "gone", "install it, or leave it out: DELEGRAPH_DISABLE_P"),
    ],
)
def test_an_unknown_name_in_a_variable_is_told_with_what_to_type(
    site: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, remedy: str
) -> None:
    write_plugin(site, "good")
    monkeypatch.setenv(variable, value)
    (finding,) = findings()
    assert finding.subject == variable
    assert finding.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("DELEGRAPH_PLUGINS", "", "DELEGRAPH_PLUGINS=good allows it"),
        ("DELEGRAPH_PLUGINS", "flex", "DELEGRAPH_PLUGINS=flex,good allows it"),
        ("DELEGRAPH_DISABLE_PLUGINS", "fake-good:good,flex", "DELEGRAPH_DISABLE_PLUGINS=flex al"),
    ],
)
def test_the_remedy_of_an_excluded_plugin_is_what_to_type(
    site: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, remedy: str
) -> None:
    write_plugin(site, "good")
    monkeypatch.setenv(variable, value)
    (plugin,) = (plugin for plugin in PluginSet().plugins if plugin.name == "good")
    assert plugin.remedy.startswith(remedy)


def test_a_plugin_names_itself() -> None:
    assert str(Plugin("p", "dist", "", "module")) == "plugin 'p' of dist"


def test_a_wrong_environment_variable_is_to_be_corrected(site: Path) -> None:
    raised = "from delegraph.errors import ArgumentError as OSError"
    text = "DELEGRAPH_CHIPS is '99', expected 1 to 64"
    write_plugin(site, "op", f"{raised}\n{OPERATOR.replace('no library', text)}")
    (found,) = findings()
    assert found.remedy == "correct or unset DELEGRAPH_CHIPS"
