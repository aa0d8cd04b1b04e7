from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delegraph import CompilerSpec
from delegraph.errors import ArgumentError
from delegraph.plugins import PluginSet, PluginState
from support.fake_distributions import GOOD, write_plugin

COMPILER = """
from delegraph import CompilerSpec

@hookimpl
def delegraph_compilers():
    return [CompilerSpec({delegate!r}, print, print)]
"""


def plugin_source(*, offers: str, compiles: str) -> str:
    return GOOD.format(module="fake_engine", delegate=offers) + COMPILER.format(delegate=compiles)


def test_a_delegate_has_the_compiler_that_its_plugin_offers(site: Path) -> None:
    write_plugin(site, "engine", plugin_source(offers="mine", compiles="mine"))
    write_plugin(site, "other")
    plugins = PluginSet()
    compiler = plugins.find("mine").compiler
    assert compiler is not None
    assert (compiler.name, compiler.version) == ("mine", None)
    assert plugins.find("other").compiler is None


def test_a_compiler_of_a_delegate_that_the_plugin_does_not_offer_makes_it_broken(
    site: Path,
) -> None:
    write_plugin(site, "engine", plugin_source(offers="mine", compiles="yours"))
    [plugin] = [p for p in PluginSet().plugins if p.name == "engine"]
    assert plugin.state is PluginState.BROKEN
    assert "CompilerSpec for delegate 'yours', which delegraph_delegates does not" in plugin.error


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "name is '', expected the name of a delegate"),
        ({"name": "a:b"}, "name is 'a:b', expected"),
        ({"compile_partition": None}, "'a': compile_partition is None, expected a function"),
        ({"load_compiled": "module"}, "'a': load_compiled is 'module', expected a function"),
        ({"version": "1.0"}, "'a': version is '1.0', expected a function"),
        ({"load_claims": "Claims"}, "'a': load_claims is 'Claims', expected a function"),
    ],
)
def test_a_compiler_spec_refuses_fields_that_cannot_be_used(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=f"CompilerSpec {message}"):
        CompilerSpec(**{"name": "a", "compile_partition": print, "load_compiled": print, **fields})
