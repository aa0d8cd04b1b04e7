"""Checks of the built site, for ``make docs``: ``pytest tests/docs/built_site.py``.

MkDocs checks links between Markdown pages; this reads the HTML, links of the reference included.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

SITE = Path(__file__).parents[2] / "site"
HOST = "https://site.invalid/"
TIMED = {"first-delegate": True, "diff": True, "gallery": True, "hooks": False, "changelog": False}
PAGES = sorted(p for p in SITE.rglob("*.html") if p.name != "404.html")


class Page(HTMLParser):
    """The ids of a page, its links, and what a browser loads to show it."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.add(values["href"])
        elif "src" in values:
            self.loaded.add(values["src"])


@cache
def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def target(page: Path, link: str) -> tuple[Path, str] | None:
    """Return the file and the anchor that a link leads to; None when it leaves the site."""
    url = urlsplit(urljoin(HOST + page.relative_to(SITE).as_posix(), link))
    if url.netloc != urlsplit(HOST).netloc:
        return None
    path = SITE / unquote(url.path).lstrip("/")
    return (path / "index.html" if path.is_dir() else path), unquote(url.fragment)


def broken(page: Path) -> Iterator[str]:
    for link in sorted(read(page).links):
        found = target(page, link)
        if found is not None:
            path, anchor = found
            if not path.is_file() or (anchor and anchor not in read(path).ids):
                yield f"{page.relative_to(SITE)}: {link}"


def test_site_has_the_pages_that_readers_start_from() -> None:
    starts = ("", "first-delegate", "photo-to-deployment", "reference/python", "contributing")
    assert [s for s in starts if SITE / s / "index.html" not in PAGES] == []


def test_guides_say_how_long_they_take_and_other_pages_do_not() -> None:
    shown = {p: "to read</em>" in (SITE / p / "index.html").read_text("utf-8") for p in TIMED}
    assert shown == TIMED


def test_every_link_leads_to_a_page_and_an_anchor_of_it() -> None:
    assert [link for page in PAGES for link in broken(page)] == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    """A reader without a network sees the same: scripts, styles and pictures are in the site."""
    loaded = [(page, what) for page in PAGES for what in sorted(read(page).loaded)]
    found = [(page, what, target(page, what)) for page, what in loaded]
    assert [(str(p), what) for p, what, to in found if to is None or not to[0].is_file()] == []
