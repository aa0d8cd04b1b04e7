"""Skips tests that import test tools for which this Python has no wheels; see install_tools.py."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from install_tools import FILE


def absent_modules() -> frozenset[str]:
    """Names of the modules of test tools that could not be installed."""
    path = Path(sys.prefix, FILE)
    return frozenset(path.read_text(encoding="utf-8").split()) if path.is_file() else frozenset()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a module that imports an absent tool."""
    report = yield
    if report.failed:
        text = str(report.longrepr)
        for module in absent_modules():
            if f"No module named '{module}" in text:
                _skip(report, collector.path, module)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that imports an absent tool."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, ModuleNotFoundError):
        module = (error.name or "").partition(".")[0]
        if module in absent_modules():
            _skip(report, item.path, module)
    return report


def _skip(report: Any, path: Path, module: str) -> None:
    report.outcome = "skipped"
    report.longrepr = (str(path), 0, f"Skipped: {module} has no wheel for this Python")
