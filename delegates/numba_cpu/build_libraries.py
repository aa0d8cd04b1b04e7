"""Puts libraries of compiled kernels into wheels, and into a folder that is installed in place."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path(__file__).parent / "src"
LIBRARIES = "delegraph_numba_cpu/libraries"


class LibrariesHook(BuildHookInterface[Any]):
    """What hatchling calls around the building of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the libraries, and tell hatchling where they are and for which systems."""
        sys.path.insert(0, str(SOURCES))
        from delegraph_numba_cpu.linking import make_libraries

        in_place = version == "editable"
        self._folder = SOURCES / LIBRARIES if in_place else Path(tempfile.mkdtemp())
        make_libraries(self._folder, in_place, self._tell)
        if not in_place:
            build_data["force_include"][str(self._folder)] = LIBRARIES
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what has been packed."""
        if version != "editable":
            shutil.rmtree(self._folder, ignore_errors=True)

    def _tell(self, level: str, done: int, count: int) -> None:
        self.app.display_info(f"kernels for {level}: {done} of {count} families compiled")


def _platform() -> str:
    """Return for which systems a wheel is, by the names of packaging.

    On Linux, libraries of kernels need no version of the C library, whichever it is.
    """
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    machine = name.removeprefix("linux_")
    if machine == name:
        return name
    return f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"
