"""Runs the tests of the kit in another process, so that a crash or hang affects one check.

The process (``check_server.py``) is a pytest session with the same command line. This module sends
it the name of each test; the process reports each model before a delegate gets it. If the process
dies, the test fails with the name of that model, and a new process runs the other tests.

The kit first finds out which models the delegate claims. A model that kills the process in this
phase counts as wrong, and a new process repeats the check without it. So the model fails only the
check of its operator, not all checks that need models of this operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from delegraph.testing.check_process import CheckProcess, Death
from delegraph.testing.check_progress import CheckProgress
from delegraph.testing.conformance.reproduction import rerun
from delegraph.testing.conformance.run_reports import (
    CheckBegins,
    ModelBegins,
    PhaseBegins,
    Sign,
    Suspect,
    Working,
)
from delegraph.testing.conformance.scorecard import NOT_TRIED
from delegraph.testing.conformance.subject import Identity
from delegraph.testing.pytest_plugin import RESULT, add_failure

_NAME = "delegraph-check-runner"

_MOST_HANGS = 3
"""Number of hangs of a class after which its other tests are not run, to save time."""

_TOO_MANY_HANGS = f"{NOT_TRIED}, as the delegate has hung {_MOST_HANGS} times before"

_DEPENDS_ON_STATE = (
    "alone, in a new process, this model comes out right: the fault depends on state that models "
    "before it have left in the delegate, its module or its library"
)


def check_runner(config: pytest.Config, folder: Path) -> CheckRunner | None:
    """Return the object that runs checks in another process; None if they run in pytest's own."""
    limit = config.getoption("delegate_timeout")
    if not limit or config.getoption("usepdb") or config.getoption("trace"):
        return None
    found: CheckRunner | None = config.pluginmanager.get_plugin(_NAME)
    if found is None:
        process = CheckProcess(config.invocation_params, folder, limit)
        progress = CheckProgress(lambda: config.get_terminal_writer().width_of_current_line)
        found = CheckRunner(process, progress, partial(add_failure, config))
        config.pluginmanager.register(found, _NAME)
    return found


class CheckRunner:
    """A pytest plugin that runs the tests of some classes in another process."""

    def __init__(
        self,
        process: CheckProcess,
        progress: CheckProgress,
        add_note: Callable[[Mapping[str, Any]], object],
    ) -> None:
        self._process = process
        self._progress = progress
        self._add_note = add_note
        self._tests: dict[type, str] = {}
        self._deaths: dict[type, dict[str, str]] = {}
        self._hangs: Counter[type] = Counter()
        self._note: dict[str, Any] = {}
        self._model: ModelBegins | None = None
        self._suspect: Suspect | None = None
        self._phase: PhaseBegins | None = None

    def identities(self, kind: type, tests: str) -> list[Identity]:
        """Return names and operators of the delegates that the test class *kind* tests.

        From now on, the class's tests run in the other process. *tests* is the class's pytest node
        id, by which that process finds it.

        Raises:
            pytest.UsageError: the class cannot be collected; the message says why.
        """
        self._phase = None
        answer = self._process.ask("outline", tests, heard=self._hear, patiently=True)
        if isinstance(answer, Death):
            raise self._not_loaded(kind, answer)
        if isinstance(answer, str):
            raise pytest.UsageError(answer)
        self._tests[kind], self._deaths[kind] = tests, {}
        found: list[Identity] = answer
        return found

    def _not_loaded(self, kind: type, death: Death) -> pytest.UsageError:
        """Return the error for a delegate that cannot be loaded, and record it in the scorecard.

        *kind* is the test class; *death* says how the process that loaded the delegate ended.
        """
        phase = self._phase or PhaseBegins("", "its tests were collected")
        name = phase.delegate or kind.__name__
        message = f"the delegate of {name} {death}\n  when {phase.phase}"
        self._add_note({"delegate": name, "check": "is loaded", "message": message})
        return pytest.UsageError(message)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run the test *item* in the other process; return None if pytest's own process runs it."""
        if _class_of(item) not in self._tests:
            return None
        if item.config.pluginmanager.has_plugin("timeout"):  # the other process has its own
            item.config.hook.pytest_timeout_cancel_timer(item=item)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self._progress.check_begins(item.session.testscollected)
        reports = [*self._reports(item, nextitem), *_end_of_setups(item, nextitem)]
        self._progress.check_ends()
        for report in reports:
            report.nodeid, report.location = item.nodeid, item.location
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_unconfigure(self) -> None:
        """End the checks' process at the end of the pytest run."""
        self._process.close()

    def _reports(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[pytest.TestReport]:
        kind = _class_of(item)
        deaths = self._deaths[kind]
        next_name = nextitem.name if nextitem and _class_of(nextitem) is kind else ""
        if self._hangs[kind] >= _MOST_HANGS:
            yield _not_tried(item)
            return
        while True:
            answer = self._answer(self._tests[kind], item.name, next_name, deaths)
            if not isinstance(answer, Death):
                from_data = item.config.hook.pytest_report_from_serializable
                for data in answer:
                    report: pytest.TestReport = from_data(config=item.config, data=data)
                    if report.failed and self._suspect is not None:
                        self._add_confirmation(report, item, self._suspect)
                    yield report
                return
            key = "" if self._model is None else self._model.key
            self._hangs[kind] += answer.is_hang
            if (
                not key
                or key in deaths
                or answer.is_end_of_test
                or self._hangs[kind] >= _MOST_HANGS
            ):
                yield self._death_report(item, answer)
                return
            deaths[key] = str(answer)

    def _answer(self, tests: str, name: str, next_name: str, deaths: Mapping[str, str]) -> Any:
        if not self._process.is_alive:
            self._process.ask("outline", tests, heard=self._hear, patiently=True)
        self._forget()
        return self._process.ask("run", tests, name, next_name, deaths, heard=self._hear)

    def _forget(self) -> None:
        self._note, self._model, self._suspect = {}, None, None

    def _hear(self, sign: Sign) -> None:
        self._progress.hear(sign)
        if isinstance(sign, CheckBegins):
            self._note = dict(sign.note)
        elif isinstance(sign, ModelBegins):
            self._model = sign
        elif isinstance(sign, Suspect):
            self._suspect = sign
        elif isinstance(sign, PhaseBegins):
            self._phase = sign
        elif isinstance(sign, Working) and self._model is not None:
            self._model = replace(self._model, key="")

    def _add_confirmation(
        self, report: pytest.TestReport, item: pytest.Item, suspect: Suspect
    ) -> None:
        """Add to the report whether *suspect*, a failing model, also fails in a new process."""
        tests = self._tests[_class_of(item)]
        if self._fails_alone(tests, suspect):
            return
        message = _DEPENDS_ON_STATE
        if self._fails_alone(tests, replace(suspect, case=suspect.original)):
            tested: Identity = item.callspec.params["subject"]  # type: ignore[attr-defined]  # a function
            message += "; this larger one comes out wrong there:"
            message += rerun(tested, suspect.original, "original")
        report.longrepr = f"{report.longreprtext}\n  {message}"
        for name, note in report.user_properties:
            if name == RESULT and isinstance(note, dict):
                note["message"] += f"\n  {message}"

    def _fails_alone(self, tests: str, suspect: Suspect) -> bool:
        """Whether *suspect* fails in a new process, by a wrong result or a crash.

        *tests* is the pytest node id of the test class with the delegate.
        """
        process = self._process.another()
        try:
            started = process.ask("outline", tests, heard=self._hear, patiently=True)
            if isinstance(started, Death):
                return True
            return bool(process.ask("is_wrong", tests, suspect, heard=self._hear))
        finally:
            process.close()

    def _death_report(self, item: pytest.Item, death: Death) -> pytest.TestReport:
        """Return a failed pytest report for the test *item*, whose process ended by *death*."""
        tested: Identity = item.callspec.params["subject"]  # type: ignore[attr-defined]  # a function
        note = self._note or _note(item)
        message = f"in the check {note['check']!r} the delegate {tested.name!r} {death}"
        if self._model is not None:
            message += rerun(tested, self._model.case, "died")
        return _report(item, "failed", message, {**note, "message": message})


def _not_tried(item: pytest.Item) -> pytest.TestReport:
    """Return a skipped pytest report for the test *item*, whose class has hung too often."""
    reason = {"outcome": NOT_TRIED, "message": _TOO_MANY_HANGS}
    return _report(item, "skipped", (str(item.path), 0, _TOO_MANY_HANGS), {**_note(item), **reason})


def _report(
    item: pytest.Item,
    outcome: Literal["failed", "skipped"],
    shown: str | tuple[str, int, str],
    note: Mapping[str, Any],
) -> pytest.TestReport:
    """Return a pytest report; *note* is the record for the scorecard."""
    keywords: dict[str, Literal[1]] = dict.fromkeys(item.keywords, 1)
    return pytest.TestReport(
        item.nodeid, item.location, keywords, outcome, shown, "call",
        user_properties=[(RESULT, note)],
    )  # fmt: skip


def _note(item: pytest.Item) -> dict[str, Any]:
    """Return the beginning of the record of a test that has not begun."""
    delegate: str = item.callspec.params["subject"].name  # type: ignore[attr-defined]  # a function
    return {"delegate": delegate, **place_of(item, delegate), "types": {}}


_SECTIONS = {"contract": ("contract",), "numbers": ("numbers", "transposed", "generated")}
"""Mapping from a section to the first words of its tests; others are of soundness."""


def place_of(item: pytest.Item, delegate: str) -> dict[str, str]:
    """Return section and check of a test that has not begun, for the scorecard."""
    test = item.name.partition("[")[0].removeprefix("test_")
    values: str = item.callspec.id  # type: ignore[attr-defined]  # a function
    check = values.removeprefix(delegate).removeprefix("-") or test
    word = test.partition("_")[0]
    section = next((name for name, words in _SECTIONS.items() if word in words), "soundness")
    return {"section": section, "check": check.replace("_", " ")}


def _class_of(item: pytest.Item) -> Any:
    """Return the class of the test *item*; None for tests without a class."""
    return getattr(item, "cls", None)


def _end_of_setups(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[pytest.TestReport]:
    """Tear down fixtures that *nextitem* does not need after *item*; yield reports of failures.

    pytest does this after each test that it runs itself. Its hook requires a test that was set up
    in this process, so this function makes the hook's calls.
    """
    setups = item.session._setupstate
    call = pytest.CallInfo.from_call(lambda: setups.teardown_exact(nextitem), "teardown")
    if call.excinfo is not None:
        yield item.ihook.pytest_runtest_makereport(item=item, call=call)
