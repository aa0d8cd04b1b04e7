from __future__ import annotations

import pytest

from delegraph.plugins.choice import PluginChoice
from delegraph.plugins.plugin import PluginState


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
