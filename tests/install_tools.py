"""Installs the test tools one by one, for Pythons for which some have no wheels yet.

``make test`` runs it when the tools cannot be installed together. It writes the modules of those
without a wheel into the environment, and tests that import them are skipped (``absent_tools.py``).
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from distributions.projects import ROOT, projects

FILE = "absent-tools"
"""File of an environment that lists the modules of absent tools, one a line."""

MODULES = {"pillow": "PIL", "pytest-xdist": "xdist", "pytest-timeout": "pytest_timeout"}
"""Modules that are not named as their distribution."""

MISSING = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")


def requirements() -> Iterator[str]:
    """Yield the requirements of the group ``test``; of the core's extras, what they bring."""
    core = projects()[0].settings
    for line in core["dependency-groups"]["test"]:
        requirement = Requirement(line)
        if requirement.name != "delegraph":
            yield line
        for extra in sorted(requirement.extras):
            yield from core["project"]["optional-dependencies"][extra]


def absent_distribution(requirement: str) -> str | None:
    """Name of the distribution that has no wheel for this Python; None once all is installed.

    Raises:
        SystemExit: pip fails for another reason.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command = [*pip, "--only-binary", ":all:", requirement]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.returncode:
        return None
    found = MISSING.search(done.stderr)
    if found is None:
        raise SystemExit(done.stderr)
    return found[1]


def main() -> None:
    """Install what can be installed, and name the others."""
    version = ".".join(map(str, sys.version_info[:2]))
    modules = []
    for requirement in requirements():
        absent = absent_distribution(requirement)
        if absent is not None:
            print(f"There is no wheel of {absent} for Python {version}: its tests are skipped.")
            name = Requirement(requirement).name
            modules.append(MODULES.get(name, name.replace("-", "_")))
    Path(sys.prefix, FILE).write_text("\n".join(modules) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
