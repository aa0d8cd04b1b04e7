"""Pages in the Chromium of the machine, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
"""Of the program, in the order of preference; the variable CHROMIUM names another."""


def chromium() -> str | None:
    """Return the path of Chromium; None if it is not installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def launched() -> Iterator[Any]:
    """Yield a browser; skip the test if none is installed."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = chromium()
    if program is None:
        pytest.skip(f"there is no Chromium: neither {', '.join(NAMES)} nor what CHROMIUM names")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program)
        yield browser
        browser.close()


class Opened:
    """HTML file opened in a browser, with all errors that the browser reported.

    Attributes:
        page: Playwright's.
        complaints: errors and warnings of its console, and what its scripts did not catch.
        requests: addresses that it asked for, but its own.
    """

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self._context = browser.new_context(viewport={"width": 1280, "height": 800}, **context)
        self.page = self._context.new_page()
        self.page.set_default_timeout(10_000)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self._own = path.as_uri()

    def close(self) -> None:
        """Close the page; fail if the browser reported an error."""
        self._context.close()
        assert self.complaints == []
        assert [url for url in self.requests if url.partition("#")[0] != self._own] == []
