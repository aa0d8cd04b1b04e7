from __future__ import annotations

import json
from pathlib import Path

import pytest

from delegraph.plugins import PluginSet, known_packages
from delegraph.plugins.plugin import Plugin, PluginState
from support.command import Command, Refused
from support.fake_distributions import command_plugin, write_plugin

HELLO = """import click
    @click.command("hello")
    @click.option("--code", type=int, default=0)
    def hello(code):
        click.echo("hello from a plugin")
        return code
    return hello"""


FAILS = """import click
    from delegraph.errors import ModelError
    @click.command("hello")
    @click.option("--json", is_flag=True, expose_value=False)
    @click.pass_obj
    def hello(answer):
        answer["greeted"] = 1
        raise ModelError("nobody is left")
    return hello"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def test_a_plugins_command_runs_and_sets_the_exit_code(
    site: Path, fresh_delegraph: Command
) -> None:
    write_plugin(site, "greeter", command_plugin("hello", HELLO))
    ran = fresh_delegraph("hello", "--code", 1)
    assert (ran.code, ran.out) == (1, "hello from a plugin\n")


def test_options_of_all_commands_go_before_those_of_plugins(
    site: Path, fresh_delegraph: Command
) -> None:
    write_plugin(site, "greeter", command_plugin("hello", HELLO))
    ran = fresh_delegraph("hello", "--log-level", "debug")
    assert ran.code == 2
    assert "No such option '--log-level'; it goes before 'hello' (see" in ran.err
    assert fresh_delegraph("--log-level", "debug", "hello").code == 0


def test_an_answer_and_an_error_of_a_plugin_are_one_document(
    site: Path, fresh_delegraph: Command
) -> None:
    write_plugin(site, "greeter", command_plugin("hello", FAILS))
    ran = fresh_delegraph("hello", "--json")
    error = {"type": "ModelError", "message": "nobody is left", "exit_code": 1}
    assert (ran.code, ran.json) == (1, {"greeted": 1, "error": error})


def test_help_lists_commands_of_plugins_without_loading_them(
    site: Path, fresh_delegraph: Command
) -> None:
    write_plugin(site, "greeter", command_plugin("hello", "raise OSError('not now')"))
    ran = fresh_delegraph("--help")
    assert ran.code == 0
    assert "Commands of plugins:" in ran.out
    assert any(line.split() == ["hello", "a", "fake", "command"] for line in ran.lines)


GROUP = """import click
    @click.group("hello")
    def hello():
        pass
    @hello.command()
    def greet():
        "Greet each of the people whose names are in the file in its order, and say why that is so."
    return hello"""


def test_a_plugins_group_shows_whole_summaries(site: Path, fresh_delegraph: Command) -> None:
    write_plugin(site, "greeter", command_plugin("hello", GROUP))
    shown = " ".join(fresh_delegraph("hello", "--help").out.split())
    assert "greet Greet each of the people" in shown
    assert "and say why that is so." in shown


def test_a_command_that_cannot_be_loaded_is_plugin_trouble(
    site: Path, fresh_delegraph: Command
) -> None:
    write_plugin(site, "greeter", command_plugin("hello", "raise OSError('no library')"))
    ran = fresh_delegraph("hello")
    assert ran.code == 3
    assert "could not be loaded from plugin 'greeter'" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_broken_plugin_stops_neither_the_help_nor_the_commands(
    site: Path, fresh_delegraph: Command, custom: Path
) -> None:
    write_plugin(site, "bad", "raise SystemExit(3)")
    assert fresh_delegraph("--help").code == 0
    assert fresh_delegraph("inspect", custom).code == 0
    ran = fresh_delegraph("ruin")
    assert ran.code == 2
    assert "no command 'ruin' (did you mean 'run'?); " in ran.err
    assert "a plugin that is not usable may have it" in ran.err


def test_a_command_of_ours_says_what_to_install(
    delegraph: Command, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(known_packages._COMMANDS, "ghost", "delegraph-ghost")
    err = refused("ghost", "info")
    assert "no command 'ghost': it comes with delegraph-ghost: pip install " in err
    disabled = PluginState.DISABLED
    plugin = Plugin("spirit", "delegraph-ghost", "1.0", "fake", disabled, "disabled by a list")
    monkeypatch.setattr("delegraph.plugins.installed", lambda: PluginSet(plugins=(plugin,)))
    ran = delegraph("ghost", "info")
    assert "is disabled: disabled by a list; take 'spirit' off that list to use it" in ran.err


def test_delegraphs_own_commands_cannot_be_replaced(
    site: Path, fresh_delegraph: Command, custom: Path
) -> None:
    write_plugin(site, "greedy", command_plugin("inspect", "raise OSError('taken')"))
    assert fresh_delegraph("inspect", custom).code == 0
    assert "a fake command" not in fresh_delegraph("--help").out
    ran = fresh_delegraph("plugins", "doctor")
    assert "command 'inspect': provided by plugin 'greedy' of fake-greedy 1.0; Delegraph" in ran.out


def test_doctor_reports_commands_that_two_plugins_offer_or_that_do_not_load(
    site: Path, fresh_delegraph: Command
) -> None:
    for name in ("a", "b"):
        write_plugin(site, name, command_plugin("hello", HELLO))
    write_plugin(site, "c", command_plugin("bye", "raise OSError('no library')"))
    ran = fresh_delegraph("plugins", "doctor")
    assert ran.code == 3
    assert "error: command 'hello': provided by plugin 'a' of fake-a 1.0, plugin 'b'" in ran.out
    assert "OSError: no library" in ran.out
    ran = fresh_delegraph("hello")
    assert ran.code == 3
    assert "leave one out with DELEGRAPH_DISABLE_PLUGINS" in ran.err


def test_lists_tell_whose_command_it_is(site: Path, fresh_delegraph: Command) -> None:
    write_plugin(site, "greeter", command_plugin("hello", HELLO))
    listed = fresh_delegraph("plugins", "list").out.split()
    assert "hello greeter a fake command" in " ".join(listed)
    assert "Command delegraph hello" in fresh_delegraph("plugins", "info", "greeter").out
    plugins = json.loads(fresh_delegraph("plugins", "list", "--json").out)["plugins"]
    [greeter] = [plugin for plugin in plugins if plugin["name"] == "greeter"]
    assert greeter["commands"] == [{"name": "hello", "summary": "a fake command"}]
