from __future__ import annotations

from pathlib import Path

import click
import pytest

from delegraph import CommandSpec
from delegraph.errors import ArgumentError, PluginError, PluginLoadError
from delegraph.plugins import PluginSet, PluginState
from support.fake_distributions import command_plugin, write_plugin

BODY = "import click; return click.Command('hello')"


def test_commands_are_listed_and_loaded_on_demand(site: Path) -> None:
    write_plugin(site, "greeter", command_plugin("hello", BODY))
    plugins = PluginSet()
    [(plugin, spec)] = plugins.commands()["hello"]
    assert (plugin.name, spec.summary) == ("greeter", "a fake command")
    loaded = plugins.load_command("hello")
    assert isinstance(loaded, click.Command)


def test_a_command_that_nobody_offers_is_none(site: Path) -> None:
    assert PluginSet().load_command("hello") is None


@pytest.mark.parametrize(
    ("body", "message"),
    [("1 / 0", "ZeroDivisionError"), ("return 1", "returned a int, expected a click.Command")],
)
def test_a_command_that_cannot_be_loaded_names_its_plugin(
    site: Path, body: str, message: str
) -> None:
    write_plugin(site, "greeter", command_plugin("hello", body))
    with pytest.raises(PluginLoadError, match=f"'hello'.* plugin 'greeter' of .*{message}"):
        PluginSet().load_command("hello")


def test_a_command_that_two_plugins_offer_runs_neither(site: Path) -> None:
    write_plugin(site, "a", command_plugin("hello", BODY))
    write_plugin(site, "b", command_plugin("hello", BODY))
    with pytest.raises(PluginError, match=r"'hello' is provided by 2 plugins: plugin 'a' .* 'b'"):
        PluginSet().load_command("hello")


def test_something_else_than_a_command_spec_marks_the_plugin_as_broken(site: Path) -> None:
    source = (
        "from delegraph import hookimpl\n@hookimpl\ndef delegraph_commands():\n    return ['hello']"
    )
    write_plugin(site, "greeter", source)
    [plugin] = [p for p in PluginSet().plugins if p.name == "greeter"]
    assert plugin.state is PluginState.BROKEN
    assert "expected CommandSpec" in plugin.error


@pytest.mark.parametrize("name", ["Hello", "a b", "", "-x", "dist:name", None])
def test_names_that_users_cannot_type_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="CommandSpec name is "):
        CommandSpec(name, "a fake", lambda: click.Command("x"))
