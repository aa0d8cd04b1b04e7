"""Source folders from which distributions were installed, and pip commands to install from them."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

import importlib_metadata

_FOLDERS = {
    "delegraph-edgetpu": "delegates/edgetpu",
    "delegraph-example": "plugins_example",
    "delegraph-flex": "delegates/flex",
    "delegraph-jax": "delegates/jax",
    "delegraph-numba-cpu": "delegates/numba_cpu",
    "delegraph-openvino": "delegates/openvino",
}
"""For each of this project's distributions: its folder in a clone of the repository."""


def pip_install(distribution: str, extra: str = "") -> str:
    """Return the command that installs one of this project's distributions.

    If Delegraph itself was installed from a clone of the repository or runs in one, the command
    installs from that clone. *extra* is one of its extras; empty for none.
    """
    clone = _clone()
    found = distribution
    if clone is not None and distribution in _FOLDERS:
        folder = clone / _FOLDERS[distribution]
        inside = os.path.relpath(folder)
        found = str(folder) if inside.startswith(os.pardir) else os.path.join(os.curdir, inside)
    found += f"[{extra}]" if extra else ""
    return f"pip install {shlex.quote(found)}"


def _clone() -> Path | None:
    """Folder of the clone that Delegraph comes from; None if it comes from a released wheel."""
    here = Path(__file__).parents[3]
    for folder in (here, installed_from("delegraph")):
        if folder is not None and (folder / _FOLDERS["delegraph-example"]).is_dir():
            return Path(folder)
    return None


def installed_from(distribution: str, *, is_editable: bool = False) -> Path | None:
    """Return the source folder from which a distribution was installed; None if there is none.

    With *is_editable*, only an editable installation counts.

    Source:
        Recording the Direct URL Origin, https://packaging.python.org/specifications/direct-url/.
    """
    try:
        text = importlib_metadata.distribution(distribution).read_text("direct_url.json")
        origin = json.loads(text or "{}")
        address = urlsplit(str(origin.get("url", "")))
        editable = origin.get("dir_info", {}).get("editable", False)
    except (importlib_metadata.PackageNotFoundError, OSError, ValueError, AttributeError):
        return None
    if address.scheme != "file" or (is_editable and editable is not True):
        return None
    return Path(unquote(address.path))
