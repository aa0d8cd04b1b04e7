"""Inspects the installed plugins in separate processes, so that none can stop the survey.

A plugin may end the process that imports it, crash it, or never come back. First one process
imports them all; where that does not end well, or on request, each gets its own. What comes back is
text: plugins found this way name what they offer, and it cannot be loaded.

This contains accidents, not attacks: those processes may do whatever this one may.
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
        time_limit: seconds that a process has.
        loads: load what they offer as well, and tell what goes wrong.
        isolated: give each a process of its own from the start.
        memory_limit: bytes that a process may write to, where the system can limit that; None for
            no limit.
        builtin: commands that Delegraph has itself, so that those of plugins are not loaded.
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
        plugin: the plugin; what it offers cannot be loaded.
        description: the same and the options of its delegates, ready for JSON.
        outcome: how it went: ``ok``, ``failed``, ``timed out``, ``died (SIGSEGV)``, ``died (exit
            code 3)``, or why it was not looked at, as its state says.
        findings: what went wrong with what it offers, if that was loaded.
    """

    plugin: Plugin
    description: dict[str, Any]
    outcome: str
    findings: tuple[Finding, ...] = ()


def survey_plugins(request: SurveyRequest) -> tuple[SurveyedPlugin, ...]:
    """Return every installed plugin in any state, sorted by name and distribution.

    Nothing of them is imported here. What they print goes to standard error.

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
    """Return the first plugins that one process could report on completely."""
    answers, _ = _told(_worker(plugins, request))
    return [_surveyed(answer) for answer in answers if "findings" in answer]


def _survey_each(plugins: Sequence[Plugin], request: SurveyRequest) -> list[SurveyedPlugin]:
    """Return each plugin as reported by a process of its own; several run at once."""
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
    finding = Finding(Level.ERROR, str(plugin), f"{ending.text} while its offers were loaded")
    surveyed = _surveyed({**answers[0], "findings": []})
    return replace(surveyed, outcome=ending.outcome, findings=(finding,))


def _surveyed(answer: dict[str, Any]) -> SurveyedPlugin:
    """Plugin from the answer of a process."""
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
    """How a process ended before it had reported everything about a plugin."""

    state: PluginState
    text: str
    outcome: str


def _worker(plugins: Sequence[Plugin], request: SurveyRequest) -> Worker:
    """Return a process that reports about plugins."""
    identities = [(p.name, p.distribution, p.version, p.module) for p in plugins]
    report = PluginReport(identities, request.loads, tuple(request.builtin), request.memory_limit)
    return Worker(itself, report, time_limit=request.time_limit)


def _told(worker: Worker) -> tuple[list[dict[str, Any]], _Ending]:
    """Return the reports of a process about its first plugins, and how the process ended.

    What it tells of the last one may lack the findings.
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
