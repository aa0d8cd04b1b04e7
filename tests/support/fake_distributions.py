"""Writes distributions as pip would leave them, so that plugin discovery is tested for real."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

GOOD = """\
from delegraph.plugins import DelegateSpec, hookimpl

def _load():
    from {module}_heavy import FakeDelegate
    return FakeDelegate

@hookimpl
def delegraph_delegates():
    return [DelegateSpec({delegate!r}, "a fake", _load)]
"""

HEAVY = """\
from delegraph.delegation.simple_delegate import SimpleDelegateInterface

class FakeDelegate(SimpleDelegateInterface):
    def name(self):
        return "fake"
    def is_node_supported_by_delegate(self, registration, node, context):
        return False
    def create_delegate_kernel_interface(self):
        raise AssertionError("takes no node")
"""


COMMAND = """\
from delegraph import CommandSpec, hookimpl

def _load():
    {body}

@hookimpl
def delegraph_commands():
    return [CommandSpec({name!r}, "a fake command", _load)]
"""


def command_plugin(name: str, body: str) -> str:
    """Return the source of a plugin with a command whose ``load`` has *body*."""
    return COMMAND.format(name=name, body=body)


def write_distribution(
    site: Path,
    name: str,
    sources: dict[str, str],
    entry_points: dict[str, str] | str,
    version: str = "1.0",
) -> None:
    """Install a distribution into the folder *site*.

    Args:
        site: a folder that is, or will be, on ``sys.path``.
        name: name of the distribution.
        sources: module name to source text.
        entry_points: entry-point name to module in group ``delegraph.plugins``; or the whole text
            of ``entry_points.txt``.
        version: version of the distribution.
    """
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if not isinstance(entry_points, str):
        lines = [f"{key} = {value}\n" for key, value in entry_points.items()]
        entry_points = "[delegraph.plugins]\n" + "".join(lines)
    (info / "entry_points.txt").write_text(entry_points)
    for module, source in sources.items():
        (site / f"{module}.py").write_text(source)


def write_plugin(site: Path, name: str, source: str | None = None, *, delegate: str = "") -> None:
    """Install distribution ``fake-NAME`` with one plugin NAME in module ``fake_NAME``.

    Without *source* it offers one delegate, NAME unless *delegate* says otherwise, whose ``load``
    imports ``fake_NAME_heavy``.
    """
    module = f"fake_{name}"
    if source is None:
        source = GOOD.format(module=module, delegate=delegate or name)
    sources = {module: source, f"{module}_heavy": HEAVY}
    write_distribution(site, f"fake-{name}", sources, {name: module})


def pip_install(site: Path, name: str, source: str, entry_point: str) -> None:
    """Install a wheel with one plugin into *site* by pip, without network.

    Args:
        site: a folder that is, or will be, on ``sys.path``.
        name: name of the distribution, ``fake_NAME``, and of its one module.
        source: the module.
        entry_point: name of the plugin.
    """
    wheel = site.parent / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", source)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", tag)
        points = f"[delegraph.plugins]\n{entry_point} = {name}\n"
        archive.writestr(f"{info}/entry_points.txt", points)
        archive.writestr(f"{info}/RECORD", "")
    options = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", site, wheel]
    subprocess.run(list(map(str, command)), check=True)
