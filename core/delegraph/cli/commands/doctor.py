"""``delegraph doctor``: a report of the machine, versions, hosts, plugins and caches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.log_lines import hidden_log
from delegraph.cli.answers.printing import (
    console,
    heading,
    print_facts,
    print_json,
    print_paragraph,
    print_table,
    progress,
    size,
)
from delegraph.cli.commands.plugins import print_findings, survey_findings, time_limit_option
from delegraph.cli.exit_codes import CHECK_FAILED, OK
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.output_files import OutputFile
from delegraph.cli.options.sections import SectionedCommand
from delegraph.quantities import plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.runtime.delegates.failure_memory import KnownFailure
    from delegraph.tools.default_delegates import DefaultDelegates
    from delegraph.tools.hosts import Host
    from delegraph.tools.machine_report import Cache, MachineReport
    from delegraph.tools.plugin_check import Finding
    from delegraph.tools.plugin_survey import SurveyedPlugin


SHOWN_FAILURES = 10


@click.command("doctor", cls=SectionedCommand)
@time_limit_option(60)
@click.option(
    "--report",
    "report_file",
    type=OutputFile(),
    metavar="FILE.md",
    help="Write all findings to a file for a fault report, without private paths.",
)
@json_option
@diagnosis_options
def command(time_limit: float, report_file: str | None, as_json: bool) -> int:
    """Look for problems and slow parts of this environment.

    Findings come first, each with what to do next; then the facts that they are about. Another
    process imports every delegate's own module, so it may take a while. The exit code is 1 if
    something is broken.
    """
    from delegraph.cli import COMMANDS
    from delegraph.delegation import blob_cache  # its warnings are findings here
    from delegraph.plugins import PluginSet
    from delegraph.runtime.delegates.failure_memory import known_failures
    from delegraph.tools.configuration_report import check_configuration, usable_configuration
    from delegraph.tools.default_delegates import defaults_among
    from delegraph.tools.environment_check import check_environment
    from delegraph.tools.hosts import hosts
    from delegraph.tools.import_folders import check_imports, import_folders
    from delegraph.tools.machine_report import check_machine, machine_report, own_variables
    from delegraph.tools.plugin_check import Level, errors_first
    from delegraph.tools.plugin_survey import SurveyRequest

    variables = own_variables()
    what = "looking at the machine and importing the delegates"
    with progress(what), hidden_log(blob_cache.__name__), usable_configuration() as broken:
        found_hosts, failures = hosts(), known_failures()
        surveyed, found = survey_findings(SurveyRequest(time_limit, loads=True, builtin=COMMANDS))
        plugins = PluginSet(plugins=tuple(each.plugin for each in surveyed))
        by_default, unusable = defaults_among(plugins), tuple(check_configuration(plugins))
        distributions = [each.plugin.distribution for each in surveyed]
        modules = {each.plugin.distribution: each.plugin.module for each in surveyed}
        folders = import_folders({"delegraph": "delegraph", **modules})
        report = machine_report(distributions)
        report = replace(report, variables=variables, imported_from=folders)
        here = check_environment(
            report,
            found_hosts,
            replace(by_default, delegates=()) if unusable else by_default,
            failures,
            plugins.plugins,
        )
        checked = [*check_machine(report, distributions), *check_imports(report.imported_from)]
        findings = errors_first([*broken, *unusable, *checked, *found, *here])
    is_ok = not any(finding.level is Level.ERROR for finding in findings)
    answer = _answer(is_ok, report, found_hosts, surveyed, by_default, failures, findings)
    if report_file is not None:
        _write_report(report_file, answer)
    if as_json:
        print_json(answer)
    else:
        out = console()
        out.print(_summary(findings), style="bold")
        print_findings(out, findings)
        _print(out, report, found_hosts, surveyed, by_default)
        _print_failures(out, failures)
        if report_file is not None:
            out.print()
            out.print(f"written to {report_file}: read it before you send it")
    return OK if is_ok else CHECK_FAILED


def _summary(findings: Sequence[Finding]) -> str:
    """Text with the number of findings of each level, the worst first."""
    counts = Counter(finding.level.value for finding in findings)
    told = ", ".join(plural(count, level) for level, count in counts.items())
    if not told:
        return "All is well."
    return f"{told}:" if "error" in counts else f"Nothing is broken; {told}:"


def _answer(
    is_ok: bool,
    report: MachineReport,
    hosts: Sequence[Host],
    surveyed: Sequence[SurveyedPlugin],
    by_default: DefaultDelegates,
    failures: Sequence[KnownFailure],
    findings: Sequence[Finding],
) -> dict[str, Any]:
    """Return the result of the command as a dictionary for ``--json``."""
    from delegraph.json_records import to_json

    return {
        "ok": is_ok,
        **to_json(report),
        "hosts": to_json(hosts),
        "plugins": [_plugin(each) for each in surveyed],
        "by_default": by_default.to_json(),
        "default_failures": to_json(failures),
        "findings": to_json(findings),
    }


def _write_report(path: str, answer: Mapping[str, Any]) -> None:
    from delegraph.tools.fault_report import fault_report
    from delegraph.tools.whole_file import write_whole

    try:
        write_whole(path, fault_report(answer).encode())
    except OSError as error:
        raise click.UsageError(f"--report {path!r}: {error.strerror or error}") from error


def _plugin(surveyed: SurveyedPlugin) -> dict[str, Any]:
    plugin = surveyed.plugin
    return {
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "state": plugin.state.value,
        "outcome": surveyed.outcome,
        "facts": _facts(surveyed),
    }


def _facts(surveyed: SurveyedPlugin) -> list[str]:
    """Texts of a plugin about its speed on this machine that are no problems."""
    return [finding.text for finding in surveyed.findings if not finding.remedy]


def _print(
    out: Console,
    report: MachineReport,
    hosts: Sequence[Host],
    plugins: Sequence[SurveyedPlugin],
    by_default: DefaultDelegates,
) -> None:
    processor = report.processor
    cores = f"{plural(processor.cores, 'core')}, {processor.usable_cores} usable"
    rows = [
        ("processor", f"{processor.name or processor.machine} ({processor.machine}), {cores}"),
        ("memory", size(processor.memory)),
        ("system", report.system),
        ("Python", report.python),
        *report.variables.items(),
    ]
    heading(out, "Machine")
    print_facts(out, rows)
    heading(out, "Versions")
    versions = [(name, found) for name, found in report.versions.items() if found]
    print_table(out, ("distribution", "version"), versions)
    heading(out, "Imported from")
    print_facts(out, report.imported_from.items())
    heading(out, "Extras")
    needs = [(e.name, e.needed_by, ", ".join(e.missing) or "nothing") for e in report.extras]
    print_table(out, ("extra", "needed by", "missing"), needs)
    heading(out, "Hosts")
    states = [
        (h.runtime, h.package, h.api, "none, see below" if h.refusal else "works") for h in hosts
    ]
    print_table(out, ("--runtime", "package", "class", "delegates"), states)
    heading(out, "Plugins")
    columns = ("plugin", "distribution", "version", "outcome")
    described = [
        (p.plugin.name, p.plugin.distribution, p.plugin.version, p.outcome) for p in plugins
    ]
    print_table(out, columns, described)
    out.print()
    for surveyed in plugins:
        for fact in _facts(surveyed):
            print_paragraph(out, f"{surveyed.plugin.name}: {fact}")
    print_paragraph(out, str(by_default))
    heading(out, "Caches")
    for number, cache in enumerate(report.caches):
        if number:
            out.print()
        facts = (("folder", cache.path), ("set by", cache.source), ("content", _content(cache)))
        print_facts(out, facts)


def _print_failures(out: Console, failures: Sequence[KnownFailure]) -> None:
    """Print failures of default delegates in earlier processes, the latest first."""
    if not failures:
        return
    heading(out, "Failures of default delegates")
    rows = [
        (f.origin, f.shown_model, f.phase, "skipped" if f.is_skipped else "tried", f.error)
        for f in failures[:SHOWN_FAILURES]
    ]
    print_table(out, ("distribution", "model", "phase", "next time", "error"), rows)
    if len(failures) > SHOWN_FAILURES:
        out.print(f"  and {len(failures) - SHOWN_FAILURES} more; --json has all of them")


def _content(cache: Cache) -> str:
    if cache.error:
        return f"not used: {cache.error}"
    limit = "" if cache.limit is None else f" of at most {size(cache.limit)}"
    return f"{plural(cache.files, 'file')}, {size(cache.bytes)}{limit}"
