"""Skips tests that import test tools for which this Python has no wheels; see install_tools.py."""

from __future__ import annotations

import re
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
        _skip_if_absent(report, collector.path)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that fails since an absent tool cannot be imported."""
    report = yield
    if report.failed:
        _skip_if_absent(report, item.path)
    return report


def _skip_if_absent(report: Any, path: Path) -> None:
    """Skip what failed with Python's words for an absent tool, or Delegraph's: install it."""
    text = str(report.longrepr)
    for module in sorted(absent_modules()):
        install = re.escape(f"pip install {module.replace('_', '-')}")
        if re.search(rf"No module named \\?'{module}[\\'.]|{install}\b(?!-)", text):
            report.outcome = "skipped"
            report.longrepr = (str(path), 0, f"Skipped: {module} has no wheel for this Python")
