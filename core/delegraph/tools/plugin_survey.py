"""Inspects the installed plugins in separate processes, so that no plugin can stop the survey.

A plugin may end or crash the process that imports it, or never return. First one process imports
all plugins. If that fails, or on request, each plugin gets its own process. The processes answer
with text, so the surveyed plugins list their offers but cannot load them.

This protects against accidents, not against attacks: the processes have the same rights as this
process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from delegraph.json_records import from_json
from delegraph.plugins.choice import PluginChoice
from delegraph.plugins.discovery import declared_plugins
from delegraph.plugins.plugin import Plugin, PluginState
from delegraph.processes.ending import Death
from delegraph.processes.worker import Worker, itself
from delegraph.tools.plugin_check import Finding, Level
from delegraph.tools.plugin_report import PluginReport, plugin_from_json


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """Settings of a survey of plugins.

    Attributes:
        time_limit: seconds after which a process is ended.
        loads: whether to load also the objects that plugins offer, and report errors.
        isolated: whether each plugin gets its own process from the start.
        memory_limit: maximal number of bytes of a process's writable memory, if the system can
            limit it; None means no limit.
        builtin: names of Delegraph's own commands; plugins' commands of these names are not loaded.
    """

    time_limit: float
    loads: bool = False
    isolated: bool = False
    memory_limit: int | None = None
    builtin: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SurveyedPlugin:
    """Facts and findings about one plugin.

    Attributes:
        plugin: the plugin; its offers cannot be loaded.
        description: the plugin and the options of its delegates, as JSON data.
        outcome: result of the survey: ``ok``, ``failed``, ``timed out``, ``died (SIGSEGV)``, ``died
            (exit code 3)``, or the state that kept the plugin from being inspected.
        findings: problems with the objects that it offers, if they were loaded.
    """

    plugin: Plugin
    description: dict[str, Any]
    outcome: str
    findings: tuple[Finding, ...] = ()


def survey_plugins(request: SurveyRequest) -> tuple[SurveyedPlugin, ...]:
    """Return facts about every installed plugin in any state, sorted by name and distribution.

    No plugin is imported in this process. Text that plugins print goes to standard error.

    Raises:
        OSError: no process can be started.
    """
    declared = declared_plugins(PluginChoice.of())
    wanted = [plugin for plugin in declared if plugin.state is PluginState.OK]
    seen = [] if request.isolated or not wanted else _survey_together(wanted, request)
    seen += _survey_each(wanted[len(seen) :], request)
    found = dict(zip(wanted, seen, strict=True))
    return tuple(found[p] if p in found else _not_imported(p) for p in declared)


def _survey_together(plugins: Sequence[Plugin], request: SurveyRequest) -> list[SurveyedPlugin]:
    """Return reports from one process on all plugins, or on the first plugins if it ends early."""
    answers, _ = _told(_worker(plugins, request))
    return [_surveyed(answer) for answer in answers if "findings" in answer]


def _survey_each(plugins: Sequence[Plugin], request: SurveyRequest) -> list[SurveyedPlugin]:
    """Return a report on each plugin from its own process; several processes run at once."""
    workers = [_worker([plugin], request) for plugin in plugins]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        try:
            return list(threads.map(_survey_alone, plugins, workers))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.kill()  # so that the threads need not wait for it
            raise


def _survey_alone(plugin: Plugin, worker: Worker) -> SurveyedPlugin:
    answers, ending = _told(worker)
    if not answers:
        failed = replace(plugin, state=ending.state, error=ending.text)
        return replace(_not_imported(failed), outcome=ending.outcome)
    if "findings" in answers[0]:
        return _surveyed(answers[0])
    surveyed = _surveyed({**answers[0], "findings": []})
    remedy = replace(surveyed.plugin, state=ending.state).remedy
    text = f"{ending.text} while its offers were loaded"
    finding = Finding(Level.ERROR, str(plugin), text, remedy)
    return replace(surveyed, outcome=ending.outcome, findings=(finding,))


def _surveyed(answer: dict[str, Any]) -> SurveyedPlugin:
    """Convert *answer*, a process's report on a plugin as JSON data, to a record."""
    plugin = plugin_from_json(answer["plugin"])
    findings = from_json(tuple[Finding, ...], answer["findings"])
    outcome = _outcome(plugin)
    if any(finding.level is Level.ERROR for finding in findings):
        outcome = _FAILED
    return SurveyedPlugin(plugin, answer["plugin"], outcome, findings)


def _not_imported(plugin: Plugin) -> SurveyedPlugin:
    return SurveyedPlugin(plugin, plugin.to_json(), _outcome(plugin))


def _outcome(plugin: Plugin) -> str:
    return _FAILED if plugin.state is PluginState.BROKEN else plugin.state.value


_FAILED = "failed"


# -- the processes ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ending:
    """Reason why a process ended before its reports on a plugin were complete."""

    state: PluginState
    text: str
    outcome: str


def _worker(plugins: Sequence[Plugin], request: SurveyRequest) -> Worker:
    """Return a process that reports about plugins."""
    identities = [(p.name, p.distribution, p.version, p.module) for p in plugins]
    report = PluginReport(identities, request.loads, tuple(request.builtin), request.memory_limit)
    return Worker(itself, report, time_limit=request.time_limit)


def _told(worker: Worker) -> tuple[list[dict[str, Any]], _Ending]:
    """Return the reports that a process has sent on its first plugins, and how it ended.

    The report on the last of these plugins may lack the findings.
    """
    answers: list[dict[str, Any]] = []

    def hear(answer: dict[str, Any]) -> None:
        if "plugin" in answer:
            answers.append(answer)
        else:
            answers[-1].update(answer)

    with worker:
        return answers, _ending(worker.ask("send", heard=hear) or Death(""), worker.time_limit)


def _ending(death: Death, limit: float | None) -> _Ending:
    if death.is_hung:
        text = f"its process did not end within {limit:g} s"
        return _Ending(PluginState.TIMED_OUT, text, PluginState.TIMED_OUT.value)
    text = f"its process ended with {death.how}"
    return _Ending(PluginState.DIED, text, f"{PluginState.DIED.value} ({death.how})")
