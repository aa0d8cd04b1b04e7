"""Levels of instructions: what a processor has, and which one an option selects."""

from __future__ import annotations

import builtins
import io
import os
import platform
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from delegraph.errors import DelegateError
from delegraph_numba_cpu.codegen.cpu_levels import LEVELS
from delegraph_numba_cpu.library import cpu, prebuilt
from delegraph_numba_cpu.library.cpu import (
    host_features,
    level_named,
    may_use_tiles,
    physical_cores,
    supported_levels,
)

OF_X86 = {name: level for name, level in LEVELS.items() if level.machine in ("", "x86_64")}
SERVER = frozenset(f for level in OF_X86.values() for f in level.needs)


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No kernels are prebuilt, and no processor is remembered."""
    came_along(monkeypatch)
    yield
    supported_levels.cache_clear()
    physical_cores.cache_clear()


def came_along(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Pretend that the kernels of these levels are prebuilt."""
    found = SimpleNamespace(files=dict.fromkeys(names, "library.so"), failures={})
    monkeypatch.setattr(prebuilt, "usable_manifest", lambda: found)


def processor(monkeypatch: pytest.MonkeyPatch, machine: str, features: frozenset[str]) -> list[str]:
    """The names of the levels of a processor."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(cpu, "host_features", lambda: features)
    monkeypatch.setattr(cpu, "may_use_tiles", lambda: True)
    supported_levels.cache_clear()
    return [level.name for level in supported_levels()]


@pytest.mark.parametrize("machine", ["x86_64", "AMD64"])
def test_a_server_has_every_level_the_best_first(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ["amx_int8", "avx512_vbmi", "avx512_vnni", "avx_vnni", "avx2", "generic"]
    assert processor(monkeypatch, machine, SERVER) == expected


def test_matrix_registers_must_be_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    processor(monkeypatch, "x86_64", SERVER)
    monkeypatch.setattr(cpu, "may_use_tiles", lambda: False)
    supported_levels.cache_clear()
    assert supported_levels()[0].name == "avx512_vbmi"


def test_only_linux_is_asked_for_matrix_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not may_use_tiles()


@pytest.mark.parametrize("missing", sorted(SERVER))
def test_a_level_needs_all_of_its_features(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = processor(monkeypatch, "x86_64", SERVER - {missing})
    assert found == [n for n, level in OF_X86.items() if missing not in level.needs]
    assert found[-1] == "generic"


@pytest.mark.parametrize("machine", ["riscv64", ""])
def test_other_processors_have_the_generic_level(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert processor(monkeypatch, machine, SERVER) == ["generic"]


HWCAPS = {"neon": (0x8FF, 0), "neon_dotprod": (0x119FFF, 0), "neon_i8mm": (0x119FFF, 0x2000)}
"""What Linux says of a Cortex-A72, of a Neoverse N1, and of one with i8mm."""


@pytest.mark.parametrize("best", HWCAPS)
def test_linux_tells_the_levels_of_arm(best: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(cpu, "auxiliary_value", dict(zip((16, 26), HWCAPS[best], strict=True)).get)
    names = ["neon_i8mm", "neon_dotprod", "neon", "generic"]
    assert levels_of(monkeypatch, "aarch64") == names[names.index(best) :]


@pytest.mark.parametrize(
    ("lacks", "best"), [("", "neon_i8mm"), ("I8MM", "neon_dotprod"), ("LRCPC", "neon")]
)
def test_macos_tells_the_levels_of_arm(
    lacks: str, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(cpu, "system_value", lambda name: name != f"hw.optional.arm.FEAT_{lacks}")
    assert levels_of(monkeypatch, "arm64")[0] == best


def test_other_systems_on_arm_have_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert levels_of(monkeypatch, "ARM64") == ["neon", "generic"]


def levels_of(monkeypatch: pytest.MonkeyPatch, machine: str) -> list[str]:
    """The names of the levels of this system on a processor."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    supported_levels.cache_clear()
    return [level.name for level in supported_levels()]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux passes these words")
def test_the_auxiliary_vector_is_read() -> None:
    page_size = 6
    assert cpu.auxiliary_value(page_size) == os.sysconf("SC_PAGE_SIZE")


def test_linux_and_numpy_know_what_llvm_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    llvm = pytest.importorskip("llvmlite.binding")
    known = {name for name, has in llvm.get_host_cpu_features().items() if has}
    if sys.platform == "linux":
        assert host_features() & SERVER == known & SERVER
    monkeypatch.setattr(sys, "platform", "win32")
    assert host_features() == known & SERVER - {"amx-tile", "amx-int8", "avxvnni"}


def test_auto_is_the_best_level_and_names_are_those_of_the_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert level_named("auto") == supported_levels()[0]
    processor(monkeypatch, "x86_64", frozenset(LEVELS["avx2"].needs))
    assert level_named("auto").name == "avx2"
    assert level_named("generic").name == "generic"
    with pytest.raises(
        DelegateError, match="cpu=avx512_vnni: this processor has only: avx2, generic"
    ):
        level_named("avx512_vnni")


def test_auto_is_the_best_level_whose_kernels_came_along(monkeypatch: pytest.MonkeyPatch) -> None:
    processor(monkeypatch, "x86_64", frozenset(LEVELS["avx2"].needs))
    came_along(monkeypatch, "avx512_vbmi", "generic")
    assert level_named("auto").name == "generic"
    came_along(monkeypatch, "avx2", "generic")
    assert level_named("auto").name == "avx2"
    monkeypatch.setenv("DELEGRAPH_NUMBA_CPU", "generic")
    assert level_named("auto").name == "generic"


def test_the_environment_says_what_auto_means(monkeypatch: pytest.MonkeyPatch) -> None:
    processor(monkeypatch, "x86_64", frozenset(LEVELS["avx_vnni"].needs))
    monkeypatch.setenv("DELEGRAPH_NUMBA_CPU", "avx2")
    assert level_named("auto").name == "avx2"
    assert level_named("avx_vnni").name == "avx_vnni"
    monkeypatch.setenv("DELEGRAPH_NUMBA_CPU", "")
    assert level_named("auto").name == "avx_vnni"
    monkeypatch.setenv("DELEGRAPH_NUMBA_CPU", "avx512_vnni")
    expected = "DELEGRAPH_NUMBA_CPU=avx512_vnni: this processor has only: avx_vnni, avx2, generic"
    with pytest.raises(DelegateError, match=expected):
        level_named("auto")


def _siblings(monkeypatch: pytest.MonkeyPatch, files: dict[int, str]) -> None:
    """Pretend that the system has these processors, with the content of their sibling files."""
    real = builtins.open

    def fake(path: Any, *arguments: Any, **keywords: Any) -> Any:
        for number, text in files.items():
            if str(path) == f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list":
                if not text:
                    raise FileNotFoundError(path)
                return io.StringIO(text)
        return real(path, *arguments, **keywords)

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(files), raising=False)
    monkeypatch.setattr(builtins, "open", fake)
    physical_cores.cache_clear()


def test_two_threads_of_a_core_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _siblings(monkeypatch, {0: "0,2\n", 1: "1,3\n", 2: "0,2\n", 3: "1,3\n"})
    assert physical_cores() == 2


def test_processors_about_which_nothing_is_known_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    _siblings(monkeypatch, {0: "", 1: "", 5: ""})
    assert physical_cores() == 3


def test_a_system_that_does_not_tell_has_half_of_its_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    physical_cores.cache_clear()
    assert physical_cores() == 4
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    physical_cores.cache_clear()
    assert physical_cores() == 1
