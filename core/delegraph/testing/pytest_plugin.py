"""The pytest plugin: options, and the scorecard at the end of a run.

Every pytest run of an environment with Delegraph in it loads this module, so it imports nothing
but pytest, and does nothing in runs without conformance tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

RESULT = "delegraph-conformance"
"""Under this name tests leave notes for the scorecard, in ``user_properties``."""

_KIT = "delegraph.testing"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--delegate-report``."""
    parser.getgroup("delegraph", "Delegraph's conformance kit").addoption(
        "--delegate-report",
        metavar="FILE",
        help="write the scorecard of delegates to FILE.json or FILE.md",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: Sequence[str], parser: pytest.Parser) -> None:
    """Add ``--delegate``, only where the kit itself is run: other projects may have one, too."""
    if any(argument.split("::")[0].startswith(_KIT) for argument in args):
        parser.getgroup("delegraph").addoption(
            "--delegate",
            action="append",
            metavar="NAME[:KEY=VALUE,...]",
            help="an installed delegate to test; may be repeated",
        )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the notes of this run."""
    path = config.getoption("delegate_report")
    if path is not None and not path.endswith((".json", ".md")):
        ending = "." + path.rpartition(".")[2]
        raise pytest.UsageError(f"--delegate-report {path!r} ends in {ending!r}, not .json or .md")
    config.pluginmanager.register(_Notes(config), "delegraph-notes")


class _Notes:
    """Collects what conformance tests note, from all processes of a run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._notes: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == RESULT and isinstance(value, dict) and report.when == "call":
                message = "" if report.passed else report.longreprtext
                self._notes.append({"message": message, **value, "outcome": report.outcome})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._notes:
            from delegraph.testing.conformance.scorecard import Scorecard

            card = Scorecard.of(self._notes)
            terminalreporter.section("delegate conformance")
            terminalreporter.write_line(card.text())
            path = self._config.getoption("delegate_report")
            if path:
                card.write(path)
                terminalreporter.write_line(f"written to {path}")
