"""What pip calls to build the package: which kernels are compiled, for which systems a wheel is."""

from __future__ import annotations

import platform
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from delegraph_numba_cpu.library import compile_processes, linking, prebuilt
from delegraph_numba_cpu.library.cpu import supported_levels

HATCHLING = "hatchling.builders.hooks.plugin.interface"
NATIVE = {supported_levels()[0].name, "generic"}

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere wheels name the system")


class Hook:
    """Hatchling's part of a hook, which is there only while a wheel is built."""

    def __class_getitem__(cls, item: object) -> type[Hook]:
        return cls

    def __init__(self) -> None:
        self.said: list[str] = []
        self.app = SimpleNamespace(display_info=self.said.append)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``build_libraries.py``, which builds into a temporary folder."""
    words = HATCHLING.split(".")
    for count in range(1, len(words) + 1):
        name = ".".join(words[:count])
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules[HATCHLING], "BuildHookInterface", Hook, raising=False)
    path = Path(__file__).parents[1] / "build_libraries.py"
    spec = spec_from_file_location("build_libraries", path)
    assert spec is not None
    assert spec.loader is not None
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    monkeypatch.setattr(found, "SOURCES", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for variable in (found.LEVELS_VARIABLE, found.MACHINE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    return found


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the levels that were compiled, which takes no time."""
    names: list[str] = []

    def compile_level(families: Any, level: Any, *others: Any) -> dict[str, bytes]:
        names.append(level.name)
        return {}

    monkeypatch.setattr(linking, "compile_side_by_side", compile_level)
    return names


def build(module: Any, version: str) -> tuple[Any, dict[str, Any]]:
    """Build, and return the hook and what it tells hatchling."""
    hook, data = module.LibrariesHook(), {"force_include": {}}
    hook.initialize(version, data)
    return hook, data


@pytest.mark.parametrize("version", ["editable", "standard"])
def test_a_build_is_for_this_processor_and_tells_each_level(
    module: Any, compiled: list[str], version: str
) -> None:
    hook, _ = build(module, version)
    assert set(compiled) == NATIVE
    count = len(linking.families())
    assert hook.said == [
        f"numba_cpu: compiling kernels for {name}: 0 of {count} families" for name in compiled
    ]


@on_linux
@pytest.mark.usefixtures("compiled")
def test_a_wheel_may_be_published_when_it_has_every_level(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = platform.machine()
    assert build(module, "standard")[1]["tag"] == f"py3-none-linux_{machine}"
    monkeypatch.setenv("DELEGRAPH_CPU", "all")
    whole = f"py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    assert build(module, "standard")[1]["tag"] == whole


@on_linux
def test_a_wheel_for_another_family_has_every_level(
    module: Any, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    monkeypatch.setenv("DELEGRAPH_NUMBA_CPU_MACHINE", other)
    monkeypatch.setattr(linking, "find_linker", lambda machine: None)
    tag = build(module, "standard")[1]["tag"]
    assert tag == f"py3-none-manylinux_2_17_{other}.musllinux_1_1_{other}"
    assert compiled == [level.name for level in linking.levels_named("all", other)]


def test_a_broken_compiler_fails_only_what_was_named(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_processes, "_PROGRAM", "import numbered")
    hook, _ = build(module, "editable")
    manifest = prebuilt.read_manifest(module.SOURCES / module.LIBRARIES)
    assert (manifest.files, set(manifest.failures)) == ({}, NATIVE)
    assert hook.said[-1].startswith("numba_cpu: installed without kernels for generic: ")
    monkeypatch.setenv("DELEGRAPH_CPU", "generic")
    with pytest.raises(linking.CompileError, match="No module named 'numbered'"):
        build(module, "editable")


@pytest.mark.parametrize("missing", ["wheels for musl", "wheels for a new Python"])
def test_where_there_are_no_wheels_of_compilers_none_are_asked_for(
    missing: str, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "wheels for musl":
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    else:
        monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    hook = module.LibrariesHook()
    assert hook.dependencies() == []
    monkeypatch.setenv("DELEGRAPH_CPU", "generic")
    assert hook.dependencies()[:2] == module.COMPILERS
