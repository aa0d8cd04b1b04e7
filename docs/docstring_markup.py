"""Turns what docstrings have for Sphinx and doctest into Markdown, for the reference pages."""

from __future__ import annotations

import re
from typing import Any

from griffe import Alias, Extension, Module, Object

ROLE = re.compile(r":\w+:`~?([\w.]*\.)?(\w+)`")
DOCTEST = re.compile(r"^([ \t]*)>>> .*(?:\n\1.*\S.*)*", re.MULTILINE)

LAZY = "delegraph.lazy_dataclass"


def markdown(docstring: str) -> str:
    """Return a docstring as Markdown: doctests in fences, references as code.

    >>> print(markdown("See :func:`~delegraph.plugins.installed`."))
    See `installed`.
    """
    fenced = DOCTEST.sub(r"\1```pycon\n\g<0>\n\1```", docstring)
    return ROLE.sub(r"`\2`", fenced)


class DocstringMarkup(Extension):
    """griffe extension that applies `markdown` to every docstring."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Mark lazy dataclasses as dataclasses, so that the pages show their parameters."""
        for name, member in pkg.members.items():
            if isinstance(member, Module):
                self.on_package(pkg=member)
            elif isinstance(member, Alias) and member.target_path == f"{LAZY}.{name}":
                member.target_path = f"dataclasses.{name}"

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one docstring in place."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
