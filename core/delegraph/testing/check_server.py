"""The process in which checks run: a pytest session that runs the tests it is told, one by one.

``check_process.py`` starts it and loads this plugin, ``check_runner.py`` says what it wants.
Whatever the delegate does to this process, the other one goes on.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import pickle
import signal
from typing import TYPE_CHECKING, Any

import pytest

from delegraph.testing.check_requests import Judgement, Outline, Run
from delegraph.testing.conformance.run_reports import WITNESS, TimeIsLimited

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
"""Options that mean the run as a whole: which tests, in what order, and what is written of it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the other process says when it starts this one."""
    group = parser.getgroup("delegraph")
    for name in ("--delegate-pipes", "--delegate-folder", "--delegate-stack"):
        group.addoption(name, help=argparse.SUPPRESS)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Leave out what concerns the run as a whole, and run checks in this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process hears of Ctrl-C, and ends this
    for name, value in OFF.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Print nothing."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    config.pluginmanager.unregister(reporter)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> bool:
    """Collect nothing yet."""
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Answer until nobody asks any more."""
    server = CheckServer(session)
    session.config.pluginmanager.register(server)
    with open(session.config.getoption("delegate_stack"), "w") as file:
        faulthandler.enable(file)
        server.serve()
        os._exit(0)  # reports of the run are for the other process to write


class CheckServer:
    """Does what it is asked, in place of a run."""

    def __init__(self, session: pytest.Session) -> None:
        requests, answers = session.config.getoption("delegate_pipes").split(",")
        self._requests = open(int(requests), "rb")  # noqa: SIM115 - open until the process ends
        self._answers = open(int(answers), "wb")  # noqa: SIM115 - the same
        self._session = session
        self._items: dict[str, dict[str, pytest.Item]] = {}
        self._errors: list[str] = []
        self._reports: list[pytest.TestReport] = []

    def serve(self) -> None:
        """Answer until nobody asks any more."""
        WITNESS.tell = lambda sign: self._send("sign", sign)
        while True:
            try:
                request: Outline | Run | Judgement = pickle.load(self._requests)
            except EOFError:
                return
            if isinstance(request, Run):
                WITNESS.deaths = request.deaths
                answer: object = self._run(request)
            elif isinstance(request, Judgement):
                answer = self._judged(request)
            else:
                answer = self._outline(request.tests)
            self._send("answer", answer)

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self, settings: Any) -> bool:
        """Let the other process keep the limit of pytest-timeout, which is told here."""
        self._send("sign", TimeIsLimited(settings.timeout))
        return True

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_cancel_timer(self) -> bool:
        """The limit holds no longer."""
        self._send("sign", TimeIsLimited(None))
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a class cannot be collected."""
        if report.failed:
            self._errors.append(report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the reports of the test that runs."""
        self._reports.append(report)

    def _outline(self, tests: str) -> object:
        """Return the identities of what a class tests, or why it cannot be collected."""
        items = self._collected(tests)
        if self._errors or not items:
            return "\n".join(self._errors) or f"{tests} has no tests"
        return [subject.identity for subject in self._subjects(tests)]

    def _judged(self, request: Judgement) -> bool:
        """Return whether a model comes out wrong."""
        found = request.suspect
        subjects = {subject.name: subject for subject in self._subjects(request.tests)}
        return bool(found.judge(subjects[found.delegate], found.case))

    def _subjects(self, tests: str) -> list[Subject]:
        from delegraph.testing.delegate_conformance import subjects_of

        items = self._items.get(tests) or self._collected(tests)
        return subjects_of(next(iter(items.values())).cls)  # type: ignore[attr-defined]  # a function

    def _run(self, run: Run) -> list[dict[str, Any]]:
        items = self._items.get(run.tests) or self._collected(run.tests)
        self._reports.clear()
        item = items[run.name]
        item.ihook.pytest_runtest_protocol(item=item, nextitem=items.get(run.next_name))
        to_data = item.config.hook.pytest_report_to_serializable
        return [to_data(config=item.config, report=report) for report in self._reports]

    def _collected(self, tests: str) -> dict[str, pytest.Item]:
        self._errors.clear()
        self._items[tests] = {item.name: item for item in self._session.perform_collect([tests])}
        return self._items[tests]

    def _send(self, kind: str, content: object) -> None:
        pickle.dump((kind, content), self._answers)
        self._answers.flush()
