"""Puts libraries of compiled kernels into wheels, and into a folder that is installed in place."""

from __future__ import annotations

import os
import platform
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

COMPILERS = ["llvmlite>=0.44", "numba>=0.61"]

LEVELS_VARIABLE = "DELEGRAPH_CPU"
"""Environment variable that says which levels get a library: ``native``, ``all``, or names.

Where it is set, every one of them must be compiled. Where it is not, an installation goes without
what the compiler refuses.
"""

MACHINE_VARIABLE = "DELEGRAPH_NUMBA_CPU_MACHINE"
"""Environment variable that says for which family of processors a wheel is: ``aarch64``."""


class LibrariesHook(BuildHookInterface[Any]):
    """What hatchling calls around the building of a wheel."""

    def dependencies(self) -> list[str]:
        """Return further requirements of a build: compilers, and a linker where Linux has none.

        Where PyPI has no wheels of the compilers, an installation goes without kernels.
        """
        if not os.environ.get(LEVELS_VARIABLE) and not _have_wheels():
            return []
        sys.path.insert(0, str(SOURCES))
        from delegraph_numba_cpu.library.linking import find_linker

        needs_linker = sys.platform == "linux" and not find_linker(_machine())
        return [*COMPILERS, *(["ziglang"] if needs_linker else [])]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the libraries, and tell hatchling where they are and for which systems."""
        sys.path.insert(0, str(SOURCES))
        from delegraph_numba_cpu.library.linking import levels_named, make_libraries

        in_place = version == "editable"
        machine = None if in_place else _machine()
        named = os.environ.get(LEVELS_VARIABLE)
        levels = levels_named(named or ("all" if machine else "native"), machine)
        self._folder = SOURCES / LIBRARIES if in_place else Path(tempfile.mkdtemp())
        with _Terminal() as terminal:

            def say(text: str) -> None:
                self.app.display_info(text)  # which pip shows with --verbose
                terminal.say(text)

            def tell(level: str, done: int, count: int) -> None:
                text = f"numba_cpu: compiling kernels for {level}: {done} of {count} families"
                if not done:
                    say(text)
                    return
                self.app.display_info(text)
                terminal.show(text)

            made = make_libraries(self._folder, levels, in_place, tell, machine, bool(named))
            for level, reason in made.failures.items():
                say(f"numba_cpu: installed without kernels for {level}: {reason}")
        if not in_place:
            is_whole = set(made.files) == {level.name for level in levels_named("all", machine)}
            build_data["force_include"][str(self._folder)] = LIBRARIES
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform(is_whole)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what has been packed."""
        if version != "editable":
            shutil.rmtree(self._folder, ignore_errors=True)


class _Terminal:
    """Lines on the terminal of the user who waits: pip keeps what a build prints to itself."""

    def __enter__(self) -> _Terminal:
        self._file = None
        with suppress(OSError, AttributeError):  # there is none, as on Windows
            file = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY)
            if os.tcgetpgrp(file) == os.getpgrp():  # in the background, writing might stop us
                self._file = file
            else:
                os.close(file)
        return self

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self.show(f"{text}\r\n")

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


def _have_wheels() -> bool:
    """Whether PyPI has wheels of the compilers for this Python, system and processor.

    Where they are missing, pip would try to build LLVM, and fail.
    """
    machine = platform.machine().lower()
    is_known = sys.version_info < (3, 16) and platform.python_implementation() == "CPython"
    if sys.platform == "linux":
        has_glibc = platform.libc_ver()[0] == "glibc"
        return is_known and has_glibc and machine in ("x86_64", "aarch64")
    return is_known and (sys.platform, machine) in _WITH_WHEELS


_WITH_WHEELS = {("darwin", "arm64"), ("darwin", "x86_64"), ("win32", "amd64")}


def _platform(is_whole: bool) -> str:
    """Return for which systems a wheel is, by the names of packaging.

    On Linux, libraries of kernels need no version of the C library, whichever it is. PyPI takes
    such a wheel when it has every level; another one is for the machine that it was built on.
    """
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    machine = name.removeprefix("linux_")
    if machine == name:
        return name
    machine = _machine() or machine
    if not is_whole:
        return f"linux_{machine}"
    return f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"
