from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.plugins.choice import ALLOW_VARIABLE, DISABLE_VARIABLE, PluginChoice
from delegraph.plugins.plugin import PluginState
from support.configured import configure


@pytest.mark.parametrize("written", ["my-dist:Sin", "My_Dist:Sin", "MY.dist:Sin", "Sin"])
def test_lists_spell_a_distribution_as_package_indexes_do(written: str) -> None:
    disabled = PluginChoice(disable=frozenset({written})).refusal("Sin", "My.Dist")
    assert disabled is not None
    assert disabled[0] is PluginState.DISABLED
    assert PluginChoice(allow=frozenset({written})).refusal("Sin", "My.Dist") is None


def test_the_names_of_plugins_are_taken_as_they_are() -> None:
    assert PluginChoice(disable=frozenset({"sin"})).refusal("Sin", "dist") is None
    refused = PluginChoice(allow=frozenset({"my_sin"})).refusal("my-sin", "dist")
    assert refused is not None
    assert refused[0] is PluginState.NOT_ALLOWED


def test_arguments_win_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (ALLOW_VARIABLE, DISABLE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    path = configure(monkeypatch, tmp_path, "[plugins]\nallow = ['a', 'b']\ndisable = ['b']")
    choice = PluginChoice.of()
    assert (choice.allow, choice.disable) == ({"a", "b"}, {"b"})
    assert choice.refusal("a", "dist") is None
    disabled, not_allowed = choice.refusal("b", "dist"), choice.refusal("c", "dist")
    assert disabled == (PluginState.DISABLED, f"disabled by plugins.disable of {path}")
    assert not_allowed is not None
    assert not_allowed[1] == f"plugins.allow of {path} allows only 'a,b'"
    monkeypatch.setenv(ALLOW_VARIABLE, "c")
    monkeypatch.setenv(DISABLE_VARIABLE, "")
    choice = PluginChoice.of()
    assert (choice.allow, choice.disable) == ({"c"}, frozenset())
    assert PluginChoice.of(["d"], ["e"]) == PluginChoice(frozenset({"d"}), frozenset({"e"}))


def test_a_file_may_allow_none_or_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALLOW_VARIABLE, raising=False)
    configure(monkeypatch, tmp_path, "[plugins]\nallow = []")
    assert PluginChoice.of().allow == frozenset()
    refused = PluginChoice.of().refusal("a", "dist")
    assert refused is not None
    assert refused[1].endswith(" allows none")
    configure(monkeypatch, tmp_path, "[plugins]\nallow = ['*']")
    assert PluginChoice.of().allow is None
