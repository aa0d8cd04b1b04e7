"""Puts libraries of compiled kernels into wheels, and into a folder that is installed in place."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path(__file__).parent / "src"
LIBRARIES = "delegraph_numba_cpu/libraries"

LEVELS_VARIABLE = "DELEGRAPH_NUMBA_CPU_LEVELS"
"""Environment variable that says which levels get a library: ``all``, ``native``, or names."""

MACHINE_VARIABLE = "DELEGRAPH_NUMBA_CPU_MACHINE"
"""Environment variable that says for which family of processors a wheel is: ``aarch64``."""


class LibrariesHook(BuildHookInterface[Any]):
    """What hatchling calls around the building of a wheel."""

    def dependencies(self) -> list[str]:
        """Return what a build needs besides: a linker from PyPI, where Linux has none."""
        sys.path.insert(0, str(SOURCES))
        from delegraph_numba_cpu.library.linking import find_linker

        return ["ziglang"] if sys.platform == "linux" and not find_linker(_machine()) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the libraries, and tell hatchling where they are and for which systems."""
        sys.path.insert(0, str(SOURCES))
        from delegraph_numba_cpu.library.linking import levels_named, make_libraries

        in_place = version == "editable"
        # What is installed in place runs on this machine; a wheel may run on any.
        words = os.environ.get(LEVELS_VARIABLE) or ("native" if in_place else "all")
        machine = None if in_place else _machine()
        self._folder = SOURCES / LIBRARIES if in_place else Path(tempfile.mkdtemp())
        with _Terminal() as terminal:

            def tell(level: str, done: int, count: int) -> None:
                text = f"numba_cpu: compiling kernels for {level}: {done} of {count} families"
                self.app.display_info(text)  # which pip shows with --verbose
                terminal.show(text)

            levels = levels_named(words, machine)
            make_libraries(self._folder, levels, in_place, tell, machine)
        if not in_place:
            build_data["force_include"][str(self._folder)] = LIBRARIES
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what has been packed."""
        if version != "editable":
            shutil.rmtree(self._folder, ignore_errors=True)


class _Terminal:
    """A line on the terminal of whoever waits: pip keeps what a build prints to itself."""

    def __enter__(self) -> _Terminal:
        self._file = None
        with suppress(OSError, AttributeError):  # there is none, as on Windows
            file = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY)
            if os.tcgetpgrp(file) == os.getpgrp():  # in the background, writing might stop us
                self._file = file
            else:
                os.close(file)
        return self

    def show(self, text: str) -> None:
        """Write over what the line says."""
        if self._file is not None:
            with suppress(OSError):  # it was closed since
                os.write(self._file, f"\r\033[K{text}".encode())

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self.show("")
            os.close(self._file)


def _machine() -> str | None:
    """Return for which family of processors a wheel is asked; None for this one.

    Raises:
        RuntimeError: there are no wheels of others for this system.
    """
    machine = os.environ.get(MACHINE_VARIABLE)
    if machine and sys.platform != "linux":
        raise RuntimeError(
            f"{MACHINE_VARIABLE}={machine}: on {sys.platform} wheels are for this processor only; "
            "build it on Linux"
        )
    return machine or None


def _platform() -> str:
    """Return for which systems a wheel is, by the names of packaging.

    On Linux, libraries of kernels need no version of the C library, whichever it is.
    """
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    machine = name.removeprefix("linux_")
    if machine == name:
        return name
    machine = _machine() or machine
    return f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"
