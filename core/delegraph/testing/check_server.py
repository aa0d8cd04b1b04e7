"""The process in which checks run: a pytest session that runs requested tests one by one.

``check_process.py`` starts the process and loads this plugin; ``check_runner.py`` sends requests.
If the delegate crashes this process, pytest's main process continues.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from delegraph.processes.parent import pipes
from delegraph.processes.worker import serve, tell
from delegraph.testing.check_signs import sent
from delegraph.testing.conformance.run_reports import WITNESS, Judge, Suspect, TimeIsLimited

if TYPE_CHECKING:
    from delegraph.testing.conformance.subject import Subject

OFF: dict[str, object] = {
    "collectonly": False,
    "delegate_timeout": 0,
    "deselect": None,
    "dist": "no",
    "failedfirst": False,
    "keyword": "",
    "lf": False,
    "markexpr": "",
    "maxfail": 0,
    "newfirst": False,
    "numprocesses": None,
    "report_log": None,
    "show_fixtures_per_test": False,
    "showfixtures": False,
    "stepwise": False,
    "tx": [],
    "xmlpath": None,
}
"""Mapping from options that choose, order or report tests of a whole run to values without
effect."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that pytest's main process passes to this process."""
    group = parser.getgroup("delegraph")
    for name in ("--delegate-folder", "--delegate-stack"):
        group.addoption(name, help=argparse.SUPPRESS)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Reset the options that concern the whole run, so that checks run in this process."""
    for name, value in OFF.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Remove the terminal reporter, so that nothing is printed."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    config.pluginmanager.unregister(reporter)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> bool:
    """Skip pytest's collection of tests; :class:`CheckServer` collects a class on request."""
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Answer requests until pytest's process closes the pipe."""
    server = CheckServer(session)
    session.config.pluginmanager.register(server)
    with open(session.config.getoption("delegate_stack"), "w") as file:
        faulthandler.enable(file)
        WITNESS.tell = lambda sign: tell(sent(sign))
        serve(server, *pipes())
        os._exit(0)  # the main process writes reports of the run


class CheckServer:
    """Receives requests of pytest's main process through a pipe, and runs the requested tests."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._items: dict[str, dict[str, pytest.Item]] = {}
        self._errors: list[str] = []
        self._reports: list[pytest.TestReport] = []

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self, settings: Any) -> bool:
        """Send the time limit of pytest-timeout to the main process, which enforces it."""
        tell(TimeIsLimited(settings.timeout))
        return True

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_cancel_timer(self) -> bool:
        """Tell the main process that the test's time limit has been removed."""
        tell(TimeIsLimited(None))
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Store the reason why a class cannot be collected."""
        if report.failed:
            self._errors.append(report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store a report of the running test."""
        self._reports.append(report)

    def outline(self, tests: str) -> object:
        """Return the delegates that a test class tests, or the reason why it cannot be collected.

        Args:
            tests: name of the class, as ``file::class``.
        """
        items = self._collected(tests)
        if self._errors or not items:
            return "\n".join(self._errors) or f"{tests} has no tests"
        return [subject.identity for subject in self._subjects(tests)]

    def is_wrong(self, tests: str, suspect: Suspect) -> bool:
        """Whether the model of *suspect* gives a wrong result in this process, too.

        Args:
            tests: name of the test class with the delegate, as ``file::class``.
            suspect: the model, the name of the delegate, and the judge.
        """
        module, _, function = suspect.judge.partition(":")
        judge: Judge = getattr(import_module(module), function)
        subjects = {subject.name: subject for subject in self._subjects(tests)}
        return bool(judge(subjects[suspect.delegate], suspect.case))

    def _subjects(self, tests: str) -> list[Subject]:
        from delegraph.testing.delegate_conformance import subjects_of

        items = self._items.get(tests) or self._collected(tests)
        return subjects_of(next(iter(items.values())).cls)  # type: ignore[attr-defined]  # a function

    def run(
        self, tests: str, name: str, next_name: str, deaths: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """Run one test and return its reports.

        Args:
            tests: name of the test's class, as ``file::class``.
            name: name of the test.
            next_name: name of the test that runs next, if it is of the same class.
            deaths: mapping from the key of each model that has killed a process to a description of
                the process's end.
        """
        WITNESS.deaths = deaths
        items = self._items.get(tests) or self._collected(tests)
        self._reports.clear()
        item = items[name]
        item.ihook.pytest_runtest_protocol(item=item, nextitem=items.get(next_name))
        to_data = item.config.hook.pytest_report_to_serializable
        return [to_data(config=item.config, report=report) for report in self._reports]

    def _collected(self, tests: str) -> dict[str, pytest.Item]:
        self._errors.clear()
        self._items[tests] = {item.name: item for item in self._session.perform_collect([tests])}
        return self._items[tests]
