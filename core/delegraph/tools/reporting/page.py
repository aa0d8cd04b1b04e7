"""Builds one HTML document from data, the page's script and style, and drawing libraries.

Text from a model file reaches the document in two places: the title, which is escaped, and the JSON
data, in which every ``<`` is replaced. Invisible characters are replaced by their codes. The
content security policy allows only the page's own scripts, and no loading of files.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from delegraph.errors import printable

LIBRARIES = ("d3/d3.min.js",)
"""Paths of the libraries in the order of execution; ``assets/README.md`` has their versions."""

SCRIPTS = (
    "layers.js",
    "layout.js",
    "tables.js",
    "graph.js",
    "beside.js",
    "details.js",
    "charts.js",
    "main.js",
)
"""Paths of the page's own scripts, which are joined in this order into one function."""


def page(title: str, data: Mapping[str, Any]) -> str:
    """Return the whole HTML document; its title may be any text, and its scripts show *data*."""
    return Template(_asset("page.html")).substitute(
        title=escape(printable(title)),
        policy=_policy(),
        style=_asset("page.css"),
        libraries="\n".join(f"<script>{_asset(name)}</script>" for name in LIBRARIES),
        data=in_script(data),
        licences=escape("\n".join(_asset(f"{name.split('/')[0]}/LICENSE") for name in LIBRARIES)),
        script=_own_script(),
    )


def in_script(data: Mapping[str, Any]) -> str:
    r"""Return JSON that is safe inside a script element, for any texts in *data*.

    Texts are made printable; NaN and infinities, which JSON lacks, become null.

    >>> in_script({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(_shown(data), separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(str(key)): _shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@cache
def _asset(name: str) -> str:
    """Return the text of a file in ``assets/``, with LF line ends, since hashes depend on them."""
    content = files("delegraph.tools.reporting").joinpath("assets", *name.split("/")).read_bytes()
    return content.decode().replace("\r\n", "\n")


@cache
def _own_script() -> str:
    body = "\n".join(map(_asset, SCRIPTS))
    return f'"use strict";\n(() => {{\n{body}\n}})();\n'


@cache
def _policy() -> str:
    scripts = [*map(_asset, LIBRARIES), _own_script()]
    hashes = " ".join(map(_hash, scripts))
    return f"default-src 'none'; script-src {hashes}; style-src {_hash(_asset('page.css'))}"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
