from __future__ import annotations

from delegraph.plugins.choice import PluginChoice
from delegraph.plugins.plugin import PluginState


def test_the_names_of_plugins_are_taken_as_they_are() -> None:
    assert PluginChoice(disable=frozenset({"sin"})).refusal("Sin", "dist") is None
    refused = PluginChoice(allow=frozenset({"my_sin"})).refusal("my-sin", "dist")
    assert refused is not None
    assert refused[0] is PluginState.NOT_ALLOWED
