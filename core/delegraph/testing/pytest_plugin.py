"""The pytest plugin of the kit: its options, and the scorecard at the end of a run.

Every pytest run in an environment with Delegraph loads this module. So it imports only pytest, and
does nothing in runs without conformance tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from delegraph.testing.conformance.scorecard import Scorecard

RESULT = "delegraph-conformance"
"""Name in ``user_properties`` under which tests store notes for the scorecard."""

SWEEPS = "delegraph_sweeps"
"""Name of the attribute that marks the test functions that run a sweep."""

TIME_LIMIT = 120.0
"""Default seconds that a check may take for one model."""

_KIT = "delegraph.testing"

NOTES = "delegraph-notes"
"""Name under which pytest knows the plugin with the notes of a run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command-line options of the kit."""
    group = parser.getgroup("delegraph", "Delegraph's conformance kit")
    group.addoption(
        "--delegate-report",
        metavar="FILE",
        help="write the scorecard of delegates to FILE.json or FILE.md",
    )
    group.addoption(
        "--delegate-badge",
        metavar="FILE",
        help="write a badge for a README to FILE.svg, or to FILE.json for shields.io",
    )
    group.addoption(
        "--delegate-timeout",
        metavar="SECONDS",
        type=float,
        default=TIME_LIMIT,
        help="end a check that takes longer for one model, and go on; checks run in a process of "
        "their own, or with 0, for debuggers and coverage, in this one (default: %(default)g)",
    )
    _add_quick(group, "--delegate-quick")
    _add_sweep(group)


def _add_sweep(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--delegate-sweep",
        metavar="MINUTES",
        type=float,
        help="try generated models for so long, too; what is found is written (default: none)",
    )
    group.addoption(
        "--delegate-seed",
        metavar="N",
        type=int,
        default=0,
        help="which models those are (default: %(default)d)",
    )


def _add_quick(group: pytest.OptionGroup, name: str) -> None:
    group.addoption(
        name,
        action="store_true",
        dest="delegate_quick",
        help="try a sample of what delegates claim, for those that compile slowly",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: Sequence[str], parser: pytest.Parser) -> None:
    """Add short option names only if the kit itself is run, since other projects may use them."""
    if any(argument.split("::")[0].startswith(_KIT) for argument in args):
        group = parser.getgroup("delegraph")
        _add_quick(group, "--quick")
        group.addoption(
            "--delegate",
            action="append",
            metavar="NAME[:KEY=VALUE,...]",
            help="a delegate to test: installed, or FILE.py; may be repeated",
        )


def pytest_configure(config: pytest.Config) -> None:
    """Check the kit's options, and collect the records of its tests; pytest calls this hook."""
    path = config.getoption("delegate_report")
    if path is not None and not path.endswith((".json", ".md")):
        ending = "." + path.rpartition(".")[2]
        raise pytest.UsageError(f"--delegate-report {path!r} ends in {ending!r}, not .json or .md")
    badge = config.getoption("delegate_badge")
    if badge is not None and not badge.endswith((".json", ".svg")):
        raise pytest.UsageError(f"--delegate-badge {badge!r} ends neither in .svg nor in .json")
    if config.getoption("delegate_timeout") < 0:
        raise pytest.UsageError("--delegate-timeout is negative; 0 is for no limit")
    config.pluginmanager.register(_Notes(config), NOTES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect sweeps unless ``--delegate-sweep`` asks for them."""
    if config.getoption("delegate_sweep") is not None:
        return
    sweeps = [i for i in items if getattr(getattr(i, "function", 0), SWEEPS, False)]
    if sweeps:
        config.hook.pytest_deselected(items=sweeps)  # so that pytest's counts add up
        items[:] = [i for i in items if i not in sweeps]


def add_failure(config: pytest.Config, note: Mapping[str, Any]) -> None:
    """Add to the scorecard a failure that belongs to no test, such as a delegate's load error."""
    notes: Any = config.pluginmanager.get_plugin(NOTES)
    notes.add({"section": "contract", "types": {}, "outcome": "failed", **note})


class _Notes:
    """Collects the records of the kit's tests (check, outcome, message) from all processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._notes: list[dict[str, Any]] = []

    def add(self, note: dict[str, Any]) -> None:
        self._notes.append(note)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == RESULT and isinstance(value, dict) and report.when == "call":
                message = "" if report.passed else report.longreprtext
                self._notes.append({"message": message, "outcome": report.outcome, **value})

    def card(self) -> Scorecard | None:
        """Return the scorecard of all records; None if there are none."""
        from delegraph.testing.conformance.scorecard import Scorecard

        return Scorecard.of(self._notes) if self._notes else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        card = self.card()
        if card is not None:
            terminalreporter.section("delegate conformance")
            terminalreporter.write_line(card.text(shutil.get_terminal_size().columns))
            for path, written in (
                (self._config.getoption("delegate_report"), card),
                (self._config.getoption("delegate_badge"), card.badge()),
            ):
                if path:
                    written.write(path)
                    terminalreporter.write_line(f"written to {path}")
