from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from delegraph.tools.reporting.report import Report
from support.browser import Opened


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a report; at the end, its console and its network must have been silent."""
    pages: list[Opened] = []

    def open_report(report: Report, **context: Any) -> Any:
        path = tmp_path / "report.html"
        report.save(path)
        pages.append(Opened(browser, path, **context))
        return pages[-1].page

    yield open_report
    for page in pages:
        page.close()
