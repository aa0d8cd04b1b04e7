"""Catalogue of packages with plugins, read only from their metadata; no plugin is imported.

Packages are those installed here, or the wheels in a folder. A wheel is untrusted, so its metadata
is limited in size, and escaped in pages.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import importlib_metadata
from packaging.requirements import InvalidRequirement, Requirement

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord
from delegraph.plugins.address import canonical_name
from delegraph.plugins.distributions import distributions_with_plugins, entry_points_of

BADGE = "delegraph badge"
"""Label (in any case) of the project URL that leads to a package's badge picture."""

LARGEST = 1 << 20
"""Largest number of bytes of a metadata file in a wheel."""

_NEEDED = ("METADATA", "entry_points.txt")


@dataclass(frozen=True, slots=True)
class Listed(JsonRecord):
    """Metadata of one package that has plugins.

    Attributes:
        distribution: name for pip.
        version: version of the package.
        summary: summary of the package, in one line.
        plugins: names of its entry points, sorted.
        delegraph: required versions of Delegraph; empty means any.
        python: required versions of Python; empty means any.
        license: licence of the package; empty if it names none.
        links: mapping from a label to an address, except the badge.
        badge: address of its badge; empty if it has none.
    """

    distribution: str
    version: str
    summary: str
    plugins: tuple[str, ...]
    delegraph: str
    python: str
    license: str
    links: Mapping[str, str]
    badge: str

    @property
    def facts(self) -> list[str]:
        """Plugins, needed versions and licence, as short texts."""
        needs = [f"Delegraph {self.delegraph}"] if self.delegraph else []
        needs += [f"Python {self.python}"] if self.python else []
        licence = [self.license] if self.license else []
        return [f"plugins: {', '.join(self.plugins)}", *needs, *licence]


def installed_packages() -> tuple[list[Listed], dict[str, str]]:
    """Return the installed packages with plugins, by name.

    The second result maps the name of each package with unreadable metadata to the reason.
    """
    found: list[Listed | None] = []
    unreadable: dict[str, str] = {}
    for name, distribution in distributions_with_plugins():
        try:
            found.append(_listed(distribution))
        except (OSError, ValueError) as error:
            unreadable[name] = str(error)
    return _sorted(found), unreadable


def packages_of_wheels(folder: Path) -> tuple[list[Listed], dict[str, str]]:
    """Return the packages with plugins among the wheels of *folder*, sorted by name.

    The second result maps the name of each unreadable file to the reason. If a package has several
    wheels, the last by file name counts.

    Raises:
        ArgumentError: there is no such folder.
    """
    if not folder.is_dir():
        raise ArgumentError(f"folder {str(folder)!r} does not exist")
    found: list[Listed | None] = []
    unreadable: dict[str, str] = {}
    for path in sorted(folder.glob("*.whl"), reverse=True):
        try:
            found.append(_listed(_distribution_in(path)))
        except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
            unreadable[path.name] = str(error)
    return _sorted(found), unreadable


def _distribution_in(wheel: Path) -> Any:
    """Return the distribution in a wheel, read completely into memory.

    Raises:
        ValueError: there is no metadata, or too much of it.
    """
    with zipfile.ZipFile(wheel) as archive:
        infos = {
            info.filename.partition("/")[2]: info for info in archive.infolist() if _is_ours(info)
        }
        if "METADATA" not in infos:
            raise ValueError("it has no METADATA, so it is no wheel")
        large = [info.filename for info in infos.values() if info.file_size > LARGEST]
        if large:
            raise ValueError(f"{large[0]} has more than {LARGEST:,} bytes")
        texts = {name: archive.read(info).decode("utf-8") for name, info in infos.items()}
    return _InMemory(texts)


def _is_ours(info: zipfile.ZipInfo) -> bool:
    folder, _, name = info.filename.partition("/")
    return folder.endswith(".dist-info") and name in _NEEDED


class _InMemory(importlib_metadata.Distribution):
    """A distribution whose metadata files are texts in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def read_text(self, filename: str) -> str | None:
        return self._texts.get(filename)

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError("its files are in a wheel")


def _sorted(found: Iterable[Listed | None]) -> list[Listed]:
    """Return packages by name, without None; of several copies the first counts."""
    by_name: dict[str, Listed] = {}
    for listed in filter(None, found):
        by_name.setdefault(canonical_name(listed.distribution), listed)
    return [by_name[name] for name in sorted(by_name)]


def _listed(distribution: Any) -> Listed | None:
    """Metadata of a distribution that has plugins; None if it has none.

    Raises:
        OSError: its metadata cannot be read.
        ValueError: the same, or it has no name.
    """
    plugins = sorted({name for name, _ in entry_points_of(distribution)})
    if not plugins:
        return None
    metadata = distribution.metadata

    def text(name: str) -> str:
        return " ".join((metadata[name] or "").split()) if name in metadata else ""

    if not text("Name"):
        raise ValueError("its METADATA has no name")
    links = dict(_links(metadata))
    badge = next((links.pop(label) for label in list(links) if label.lower() == BADGE), "")
    licence = text("License-Expression") or text("License")
    return Listed(
        text("Name"),
        text("Version"),
        text("Summary"),
        tuple(plugins),
        _needed(metadata.get_all("Requires-Dist") or []),
        text("Requires-Python"),
        licence if len(licence) < 60 else "",  # some fields contain the whole licence text
        links,
        badge,
    )


def _links(metadata: Any) -> Iterable[tuple[str, str]]:
    """Yield label and address of each web link; other links might run scripts."""
    given = [("Homepage", metadata["Home-page"] or "")] if "Home-page" in metadata else []
    pairs = (line.partition(",") for line in metadata.get_all("Project-URL") or [])
    given += [(label.strip(), address.strip()) for label, _, address in pairs]
    return (
        (label, address)
        for label, address in given
        if address.startswith(("https://", "http://")) and not set(address) & set(" <>\"'()")
    )


def _needed(requirements: Iterable[str]) -> str:
    """Return which versions of Delegraph a package's requirements demand."""
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if canonical_name(requirement.name) == "delegraph" and requirement.marker is None:
            return str(requirement.specifier)
    return ""


# -- pages -----------------------------------------------------------------------------------------

_PAGE = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Delegates for Delegraph</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
article {{ border-top: 1px solid #8886; padding: .5rem 0 1rem; }}
h2 {{ margin: .5rem 0; font-size: 1.2rem; }} small {{ font-weight: normal; }}
</style>
<h1>Delegates for Delegraph</h1>
{articles}
</html>
"""


def html_page(packages: Iterable[Listed]) -> str:
    """Return an HTML page that lists the packages, without scripts."""
    return _PAGE.format(articles="\n".join(map(_article, packages)))


def _article(package: Listed) -> str:
    e = escape
    badge = f'<img src="{e(package.badge)}" alt="badge">' if package.badge else ""
    links = " ".join(f'<a href="{e(to)}">{e(label)}</a>' for label, to in package.links.items())
    facts = " · ".join(e(fact) for fact in package.facts)
    return (
        f"<article><h2>{e(package.distribution)} <small>{e(package.version)}</small> {badge}</h2>"
        f"<p>{e(package.summary)}</p><p><code>pip install {e(package.distribution)}</code></p>"
        f"<p>{facts}</p><p>{links}</p></article>"
    )


def markdown_page(packages: Iterable[Listed]) -> str:
    """Return a Markdown page that lists the packages."""
    rows = ["| package | summary | plugins | needs | |", "|---|---|---|---|---|"]
    for package in packages:
        badge = f"![badge]({package.badge}) " if package.badge else ""
        links = " ".join(f"[{_plain(label)}]({to})" for label, to in package.links.items())
        needs = "; ".join(package.facts[1:])
        cells = (
            f"{_plain(package.distribution)} {_plain(package.version)}",
            _plain(package.summary),
            _plain(", ".join(package.plugins)),
            _plain(needs),
            badge + links,
        )
        rows.append("| " + " | ".join(cells) + " |")
    return "# Delegates for Delegraph\n\n" + "\n".join(rows) + "\n"


def _plain(text: str) -> str:
    r"""Return a text in which no character has a meaning in a Markdown table.

    >>> print(_plain("a|b_c <i>"))
    a\|b\_c &lt;i&gt;
    """
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", escape(text, quote=False))
