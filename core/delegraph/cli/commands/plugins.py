"""``delegraph plugins``: shows installed plugins, their offers and their problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from delegraph.cli.answers.printing import (
    console,
    heading,
    print_json,
    print_paragraph,
    print_table,
    progress,
)
from delegraph.cli.commands.plugins_catalogue import catalogue
from delegraph.cli.exit_codes import OK, PLUGIN_TROUBLE
from delegraph.cli.options.arguments import (
    ByteCount,
    complete_delegate,
    diagnosis_options,
    json_option,
)
from delegraph.cli.options.delegate_help import (
    capabilities_of,
    isolation_text,
    print_claims,
    print_delegate,
)
from delegraph.cli.options.kinds import Command, seconds_option, switch_option
from delegraph.cli.options.sections import SectionedCommand, SummarizedGroup
from delegraph.quantities import plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.plugins import Plugin, PluginSet
    from delegraph.plugins.plugin_set import Offer
    from delegraph.tools.configuration_report import ConfigurationReport
    from delegraph.tools.default_delegates import DefaultDelegates
    from delegraph.tools.plugin_check import Finding
    from delegraph.tools.plugin_survey import SurveyedPlugin, SurveyRequest


class OrderedGroup(SummarizedGroup):
    """Command group that lists its subcommands in the order of definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return list(self.commands)


@click.group("plugins", cls=OrderedGroup)
@diagnosis_options
def command() -> None:
    """List installed plugins, describe or check them."""


def time_limit_option(default: float) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--time-limit``, for processes that import plugins."""
    text = "Give up on plugins that take longer."
    return seconds_option("--time-limit", text, default=default)


@command.command("list", cls=SectionedCommand)
@time_limit_option(10)
@json_option
@diagnosis_options
def list_plugins(time_limit: float, as_json: bool) -> None:
    """List the installed plugins and the delegates they offer.

    Only the plugins' light modules are imported, in another process, so that no plugin can stop the
    list. DELEGRAPH_PLUGINS=a,b allows only those plugins, DELEGRAPH_DISABLE_PLUGINS=a,b leaves some
    out.
    """
    from delegraph.plugins import PluginSet
    from delegraph.tools.default_delegates import defaults_among
    from delegraph.tools.plugin_check import unmatched
    from delegraph.tools.plugin_survey import SurveyRequest, survey_plugins

    with progress("looking at the plugins"):
        surveyed = survey_plugins(SurveyRequest(time_limit))
    plugins = PluginSet(plugins=tuple(each.plugin for each in surveyed))
    by_default = defaults_among(plugins)
    if as_json:
        described = [each.description for each in surveyed]
        print_json({"plugins": described, "by_default": by_default.to_json()})
        return
    _print_list(plugins, by_default)
    for finding in unmatched(plugins):
        click.echo(f"warning: {finding.subject} {finding.text}: {finding.remedy}", err=True)


def _print_list(plugins: PluginSet, by_default: DefaultDelegates) -> None:
    from delegraph.plugins.sources import pip_install

    out = console()
    if not plugins.plugins:
        command = pip_install("delegraph-example")
        print_paragraph(
            out, f"no plugins are installed; '{command}' brings two delegates", indent=0
        )
        _print_misspelled(out, plugins)
        return
    out.print("Plugins", style="bold")
    rows = [(p.name, p.distribution, p.version, p.state.value) for p in plugins.plugins]
    print_table(out, ("plugin", "distribution", "version", "state"), rows)
    for plugin in plugins.plugins:
        if plugin.missing_hook:
            out.print()
            print_paragraph(out, f"{plugin} offers nothing: {plugin.missing_hook}", indent=0)
    offers = plugins.offers()
    if offers:
        heading(out, "Delegates")
        offered = [(o.spec.name, o.plugin.name, o.spec.summary) for o in offers]
        print_table(out, ("name", "plugin", "summary"), offered)
        out.print()
        out.print(f"  {by_default}")
    for title, kind in (("Custom operators", "custom_ops"), ("Commands", "commands")):
        found = [(s.name, p.name, s.summary) for p in plugins.plugins for s in getattr(p, kind)]
        if found:
            heading(out, title)
            print_table(out, ("name", "plugin", "summary"), sorted(found))
    _print_unusable(out, plugins)
    _print_misspelled(out, plugins)


def _print_misspelled(out: Console, plugins: PluginSet) -> None:
    misspelled = plugins.misspelled_groups()
    if misspelled:
        heading(out, "Not found")
    for text in misspelled:
        print_paragraph(out, text)


def _print_unusable(out: Console, plugins: PluginSet) -> None:
    unusable = [plugin for plugin in plugins.plugins if plugin.error]
    if unusable:
        heading(out, "Not usable")
    for plugin in unusable:
        out.print(f"  {plugin}: {plugin.error}")
        out.print(f"    {plugin.remedy}", style="dim")


@command.command("info", cls=SectionedCommand)
@click.argument("name", shell_complete=complete_delegate)
@switch_option("--claims", "Load the delegates, and show their claims.")
@json_option
@diagnosis_options
def info(name: str, claims: bool, as_json: bool) -> int:
    """Describe a plugin or delegate and its options.

    NAME is a delegate, a plugin, a distribution, or dist:name.
    """
    from delegraph.plugins import PluginSet, installed

    plugins = installed()
    offers, matching = _named(plugins, name)
    if as_json:
        content = PluginSet(plugins=tuple(matching)).to_json()
        if claims:
            content["claims"] = {o.address: capabilities_of(o).to_json() for o in offers}
        print_json(content)
        return PLUGIN_TROUBLE if any(plugin.is_faulty for plugin in matching) else OK
    out = console()
    for plugin in matching:
        out.print(str(plugin), style="bold")
        out.print(f"  state   {plugin.state.value}")
        out.print(f"  module  {plugin.module}")
        if plugin.error:
            out.print(f"  why     {plugin.error}")
            out.print(f"  remedy  {plugin.remedy}")
        if plugin.missing_hook:
            out.print("  why     it offers nothing")
            out.print(f"  remedy  {plugin.missing_hook}")
        for offer in offers:
            if offer.plugin is plugin:
                print_delegate(out, offer)
                if claims:
                    print_claims(out, offer)
        for spec in plugin.custom_ops:
            heading(out, f"Custom operator {spec.name}")
            out.print(f"  {spec.summary}")
        for command_spec in plugin.commands:
            heading(out, f"Command delegraph {command_spec.name}")
            out.print(f"  {command_spec.summary}")
        keeping = [spec.name for spec in plugin.delegates if spec.load_compiling is not None]
        for delegate in [*(compiler.name for compiler in plugin.compilers), *keeping]:
            heading(out, f"Compiles ahead of time for delegate {delegate}")
            out.print(f"  delegraph compile MODEL -d {delegate} -o OUT.tflite")
    return PLUGIN_TROUBLE if any(plugin.is_faulty for plugin in matching) else OK


def _named(plugins: PluginSet, name: str) -> tuple[list[Offer], list[Plugin]]:
    """Return the delegates called *name*, or those of plugins called *name*; and these plugins."""
    named = [
        plugin
        for plugin in plugins.plugins
        if name in (plugin.name, plugin.distribution, f"{plugin.distribution}:{plugin.name}")
    ]
    offers = [offer for offer in plugins.offers() if name in (offer.spec.name, offer.address)]
    if offers:
        return offers, list({offer.address: offer.plugin for offer in offers}.values())
    if not named:
        offer = plugins.find(name)  # the error lists the known names
        return [offer], [offer.plugin]
    return [offer for offer in plugins.offers() if offer.plugin in named], named


@command.command("doctor", cls=SectionedCommand)
@switch_option("--isolated", "Look at each plugin in a process of its own.")
@time_limit_option(60)
@click.option(
    "--memory-limit",
    type=ByteCount(),
    help="Memory of each --isolated process: 512MB.  [default: half the machine's]",
)
@json_option
@diagnosis_options
def doctor(isolated: bool, time_limit: float, memory_limit: int | None, as_json: bool) -> int:
    """Look for problems of plugins.

    Another process imports every delegate's own module, so it may take a while; no delegate is
    created. --isolated imports each plugin in its own process with limited memory, and shows the
    outcome: ok, failed, timed out, or died with an exit code or a signal. The effects of the
    configuration file come last. The exit code is 3 if something cannot be used.
    """
    from delegraph.cli import COMMANDS
    from delegraph.operators.memory_limit import physical_memory
    from delegraph.plugins import PluginSet
    from delegraph.tools.configuration_report import (
        check_configuration,
        configuration_report,
        usable_configuration,
    )
    from delegraph.tools.plugin_check import Level, errors_first
    from delegraph.tools.plugin_survey import SurveyRequest

    if isolated and memory_limit is None:
        memory_limit = physical_memory() // 2
    if memory_limit is not None and not isolated:
        raise click.UsageError("--memory-limit needs --isolated")
    with progress("importing the delegates"), usable_configuration() as broken:
        surveyed, found = survey_findings(
            SurveyRequest(time_limit, True, isolated, memory_limit, COMMANDS)
        )
        plugins = PluginSet(plugins=tuple(each.plugin for each in surveyed))
        findings = errors_first([*broken, *check_configuration(plugins), *found])
        report = configuration_report(plugins)
    if broken:
        report = replace(report, why_not="it is broken, see above")
    failed = any(finding.level is Level.ERROR for finding in findings)
    if as_json:
        _print_diagnosis_json(not failed, report, surveyed, findings)
    else:
        out = console()
        _print_diagnosis(out, surveyed, isolated, findings)
        _print_configuration(out, report)
    return PLUGIN_TROUBLE if failed else OK


def survey_findings(
    request: SurveyRequest,
) -> tuple[Sequence[SurveyedPlugin], Sequence[Finding]]:
    """Return the plugins as reported by separate processes, and all findings with a remedy."""
    from delegraph.plugins import PluginSet
    from delegraph.tools.plugin_check import check_offers
    from delegraph.tools.plugin_survey import survey_plugins

    surveyed = survey_plugins(request)
    plugins = PluginSet(plugins=tuple(each.plugin for each in surveyed))
    loads = [finding for each in surveyed for finding in each.findings if finding.remedy]
    return surveyed, [*check_offers(plugins, request.builtin), *loads]


def _print_diagnosis_json(
    is_ok: bool,
    report: ConfigurationReport,
    surveyed: Sequence[SurveyedPlugin],
    findings: Sequence[Finding],
) -> None:
    from delegraph.json_records import to_json

    print_json(
        {
            "ok": is_ok,
            "configuration": report.to_json(),
            "plugins": [
                {"name": name, "distribution": distribution, "version": version, "outcome": outcome}
                for name, distribution, version, outcome in map(_outcome, surveyed)
            ],
            "findings": to_json(findings),
        }
    )


def _print_configuration(out: Console, report: ConfigurationReport) -> None:
    """Print the path of the configuration file, and the effect of each setting."""
    heading(out, "Configuration")
    if report.file is None:
        print_paragraph(out, f"no file: {report.why_not}")
        return
    print_paragraph(out, f"file {report.file}")
    rows = [(setting.key, setting.value, setting.effect) for setting in report.settings]
    if rows:
        print_table(out, ("setting", "value", "effect"), rows)


def _print_diagnosis(
    out: Console,
    surveyed: Sequence[SurveyedPlugin],
    shows_outcomes: bool,
    findings: Sequence[Finding],
) -> None:
    """Print the verdict and the findings, then the plugins' outcomes if requested."""
    from delegraph.tools.plugin_check import Level

    usable = sum(
        not each.plugin.error and all(found.level is not Level.ERROR for found in each.findings)
        for each in surveyed
    )
    delegates = sum(len(each.plugin.delegates) for each in surveyed)
    verdict = (
        f"{plural(len(surveyed), 'plugin')}, {usable} usable, "
        f"{plural(delegates, 'delegate')}, {plural(len(findings), 'finding')}"
    )
    out.print(f"{verdict}:" if findings else verdict, style="bold")
    print_findings(out, findings)
    if shows_outcomes and surveyed:
        heading(out, "Plugins")
        columns = ("plugin", "distribution", "version", "outcome")
        print_table(out, columns, [_outcome(each) for each in surveyed])
    isolated = [
        f"delegate {spec.name!r} of {each.plugin}: {isolation_text(spec)}"
        for each in surveyed
        for spec in each.plugin.delegates
        if spec.isolate == "process"
    ]
    if isolated:
        heading(out, "Isolated by default")
    for text in isolated:
        print_paragraph(out, text)


def print_findings(out: Console, findings: Sequence[Finding]) -> None:
    """Print findings, each with the command or change that helps."""
    styles = {"error": "red", "warning": "yellow", "note": "cyan"}
    for finding in findings:
        level = finding.level.value
        out.print(f"{level}: {finding.subject}: {finding.text}", style=styles[level])
        print_paragraph(out, f"next: {finding.remedy}")


def _outcome(surveyed: SurveyedPlugin) -> tuple[str, str, str, str]:
    plugin = surveyed.plugin
    return plugin.name, plugin.distribution, plugin.version, surveyed.outcome


command.add_command(catalogue)
