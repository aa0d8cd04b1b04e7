"""``delegraph plugins``: which plugins are installed, what they offer, and what is wrong."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.delegate_help import print_delegate
from delegraph.cli.exit_codes import OK, PLUGIN_TROUBLE, USAGE
from delegraph.cli.options import json_option, traceback_option
from delegraph.cli.printing import console, heading, plural, print_json, print_table, progress

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.plugins import Plugin, PluginSet
    from delegraph.plugins.plugin_set import Offer


class OrderedGroup(click.Group):
    """Shows its subcommands in the order of their definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return list(self.commands)


@click.group("plugins", cls=OrderedGroup, invoke_without_command=True)
@traceback_option
@click.pass_context
def command(ctx: click.Context) -> int:
    """List installed plugins, describe or check them."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return USAGE
    return OK


@command.command("list")
@json_option
@traceback_option
def list_plugins(as_json: bool) -> None:
    """List the installed plugins and the delegates they offer.

    Nothing heavy is imported. DELEGRAPH_PLUGINS=a,b allows only those plugins,
    DELEGRAPH_DISABLE_PLUGINS=a,b leaves some out.
    """
    from delegraph.plugins import installed

    plugins = installed()
    if as_json:
        print_json({"plugins": [_plugin_json(plugin) for plugin in plugins.plugins]})
        return
    out = console()
    if not plugins.plugins:
        out.print("no plugins are installed; 'pip install delegraph-example' brings two delegates")
        return
    rows = [(p.name, p.distribution, p.version, p.state.value) for p in plugins.plugins]
    print_table(out, ("plugin", "distribution", "version", "state"), rows, indent=0)
    offers = plugins.offers()
    if offers:
        heading(out, "Delegates")
        print_table(
            out,
            ("name", "plugin", "summary"),
            [(o.spec.name, o.plugin.name, o.spec.summary) for o in offers],
        )
    ops = [(spec.name, p.name, spec.summary) for p in plugins.plugins for spec in p.custom_ops]
    if ops:
        heading(out, "Custom operators")
        print_table(out, ("name", "plugin", "summary"), sorted(ops))
    commands = [(s.name, p.name, s.summary) for p in plugins.plugins for s in p.commands]
    if commands:
        heading(out, "Commands")
        print_table(out, ("name", "plugin", "summary"), sorted(commands))
    _print_unusable(out, plugins)


def _print_unusable(out: Console, plugins: PluginSet) -> None:
    unusable = [plugin for plugin in plugins.plugins if plugin.error]
    if unusable:
        heading(out, "Not usable")
    for plugin in unusable:
        out.print(f"  {plugin}: {plugin.error}")
        out.print(f"    {plugin.remedy}", style="dim")


@command.command("info")
@click.argument("name")
@json_option
@traceback_option
def info(name: str, as_json: bool) -> int:
    """Describe a plugin or delegate and its options.

    NAME is a delegate, a plugin, a distribution, or dist:name.
    """
    from delegraph.plugins import installed

    plugins = installed()
    offers, matching = _named(plugins, name)
    if as_json:
        print_json({"plugins": [_plugin_json(plugin) for plugin in matching]})
        return PLUGIN_TROUBLE if any(plugin.is_faulty for plugin in matching) else OK
    out = console()
    for plugin in matching:
        out.print(str(plugin), style="bold")
        out.print(f"  state   {plugin.state.value}")
        out.print(f"  module  {plugin.module}")
        if plugin.error:
            out.print(f"  why     {plugin.error}")
            out.print(f"  remedy  {plugin.remedy}")
        for offer in offers:
            if offer.plugin is plugin:
                print_delegate(out, offer)
        for spec in plugin.custom_ops:
            heading(out, f"Custom operator {spec.name}")
            out.print(f"  {spec.summary}")
        for command_spec in plugin.commands:
            heading(out, f"Command delegraph {command_spec.name}")
            out.print(f"  {command_spec.summary}")
    return PLUGIN_TROUBLE if any(plugin.is_faulty for plugin in matching) else OK


def _named(plugins: PluginSet, name: str) -> tuple[list[Offer], list[Plugin]]:
    """Return the delegates and plugins that *name* means: a plugin, with all it offers, or one."""
    named = [
        plugin
        for plugin in plugins.plugins
        if name in (plugin.name, plugin.distribution, f"{plugin.distribution}:{plugin.name}")
    ]
    offers = [offer for offer in plugins.offers() if name in (offer.spec.name, offer.address)]
    if offers:
        return offers, list({offer.address: offer.plugin for offer in offers}.values())
    if not named:
        offer = plugins.find(name)  # the error says what there is
        return [offer], [offer.plugin]
    return [offer for offer in plugins.offers() if offer.plugin in named], named


@command.command("doctor")
@json_option
@traceback_option
def doctor(as_json: bool) -> int:
    """Look for what is wrong with the plugins.

    Imports every delegate's own module, so it may take a while; no delegate is made. Exits with 3
    when something cannot be used.
    """
    from delegraph.cli import COMMANDS
    from delegraph.plugins import installed
    from delegraph.tools.plugin_check import Level, check_plugins

    plugins = installed()
    with progress("importing the delegates"):
        findings = check_plugins(plugins, COMMANDS)
    failed = any(finding.level is Level.ERROR for finding in findings)
    if as_json:
        print_json(
            {
                "ok": not failed,
                "findings": [
                    {
                        "level": finding.level.value,
                        "subject": finding.subject,
                        "text": finding.text,
                        "remedy": finding.remedy,
                    }
                    for finding in findings
                ],
            }
        )
        return PLUGIN_TROUBLE if failed else OK
    out = console()
    for finding in findings:
        style = "red" if finding.level is Level.ERROR else "yellow"
        out.print(f"{finding.level.value}: {finding.subject}: {finding.text}", style=style)
        if finding.remedy:
            out.print(f"  {finding.remedy}")
    usable = sum(not plugin.error for plugin in plugins.plugins)
    out.print(
        f"{plural(len(plugins.plugins), 'plugin')}, {usable} usable, "
        f"{plural(len(plugins.offers()), 'delegate')}, {plural(len(findings), 'finding')}"
    )
    return PLUGIN_TROUBLE if failed else OK


def _plugin_json(plugin: Plugin) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "module": plugin.module,
        "state": plugin.state.value,
        "error": plugin.error,
        "remedy": plugin.remedy,
        "warnings": list(plugin.warnings),
        "delegates": [_delegate_json(spec) for spec in plugin.delegates],
        "custom_ops": [{"name": s.name, "summary": s.summary} for s in plugin.custom_ops],
        "commands": [{"name": s.name, "summary": s.summary} for s in plugin.commands],
    }


def _delegate_json(spec: Any) -> dict[str, Any]:
    from delegraph.errors import PluginOptionError
    from delegraph.plugins.options import describe_options

    try:
        options = describe_options(spec)
    except PluginOptionError as error:
        return {"name": spec.name, "summary": spec.summary, "error": str(error)}
    return {
        "name": spec.name,
        "summary": spec.summary,
        "rank": spec.rank,
        "options": [asdict(option) for option in options],
    }
