"""What the distribution offers, by name and on the command line, without heavy imports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

import delegraph_numba_cpu
from delegated import DIGITS
from delegraph import Interpreter
from delegraph.delegation.configuration import CACHE_VARIABLE
from delegraph.delegation.num_threads import usable_processors
from delegraph.errors import PluginOptionError
from delegraph.plugins.options import describe_options, make_options
from delegraph_numba_cpu import command as command_module
from delegraph_numba_cpu import plugin
from delegraph_numba_cpu.command import command
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.library import cache, cpu, prebuilt
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.library.families import families
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.options import NumbaCpuOptions
from delegraph_numba_cpu.plugin import is_ready
from delegraph_numba_cpu.program.pool import POOL

[SPEC] = plugin.delegraph_delegates()


def test_the_plugin_imports_nothing_heavy(fresh_python: Callable[..., str]) -> None:
    heavy = {"numpy", "llvmlite", "numba", "click"}
    out = fresh_python(
        "import sys, delegraph_numba_cpu.plugin as plugin; plugin.delegraph_delegates()\n"
        f"plugin.delegraph_commands(); print(sorted({heavy} & set(sys.modules)))"
    )
    assert out == "[]\n"


def test_the_delegate_runs_without_importing_numba(
    fresh_python: Callable[..., str], lib: Library
) -> None:
    lib.load([])
    out = fresh_python(
        "import sys; from delegraph_numba_cpu.library.kernel_library import library\n"
        "from delegraph_numba_cpu.delegate import NumbaCpuDelegate\n"
        "from delegraph_numba_cpu.options import NumbaCpuOptions\n"
        "library(NumbaCpuDelegate(NumbaCpuOptions()).level).load([])\n"
        "print('numba' in sys.modules)"
    )
    assert out == "False\n"


def test_options_have_defaults_and_descriptions() -> None:
    assert make_options(SPEC, None) == NumbaCpuOptions()
    assert NumbaCpuOptions().exact
    assert all(option.help for option in describe_options(SPEC))
    given = make_options(SPEC, "exact=false,num_threads=2,cpu=generic")
    assert given == NumbaCpuOptions(exact=False, num_threads=2, cpu="generic")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_threads=-1", "num_threads is -1, expected 0 or more"),
        ("num_threads=two", "num_threads"),
        ({"num_threads": True}, "num_threads"),
        ("cpu=sse", "cpu"),
        ("speed=9", "no option 'speed'"),
    ],
)
def test_options_that_do_not_fit_are_refused(text: Any, message: str) -> None:
    with pytest.raises(PluginOptionError, match=message):
        make_options(SPEC, text)


@pytest.mark.parametrize("wrong", [True, "2", 2.0])
def test_a_number_of_threads_is_an_int(wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"num_threads is {wrong!r}, expected an int"):
        NumbaCpuOptions(num_threads=wrong)


def test_so_many_threads_that_nothing_else_could_run_become_fewer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    delegate = NumbaCpuDelegate(NumbaCpuOptions(num_threads=10_000))
    assert delegate.num_threads == 8 * usable_processors()
    assert len(caplog.messages) == 1
    assert "num_threads is 10000" in caplog.text


def test_the_placement_tells_what_is_not_exact() -> None:
    assert NumbaCpuDelegate(NumbaCpuOptions()).note() == ""
    inexact = NumbaCpuDelegate(NumbaCpuOptions(exact=False))
    assert inexact.note() == "integers within 1 unit per operator"


# -- the command -----------------------------------------------------------------------------------


def test_the_command_is_offered() -> None:
    [spec] = plugin.delegraph_commands()
    assert spec.name == "numba"
    assert isinstance(spec.load(), click.Command)


def test_info_shows_what_is_used_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path / "none")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(command_module, "host_features", lambda: frozenset())
    monkeypatch.setenv("COLUMNS", "1000")
    kept = cache.kernel_cache(supported_levels()[0])
    kept.put("a", bytes(2_500_000))
    folder = kept.folder
    prebuilt.usable_manifest.cache_clear()
    lines = CliRunner().invoke(command, ["info"]).output.splitlines()
    answer = json.loads(CliRunner().invoke(command, ["info", "--json"]).output)
    prebuilt.usable_manifest.cache_clear()
    levels, why = [level.name for level in supported_levels()], "no libraries came with this"
    words = [" ".join(line.split()) for line in lines]
    assert words[:2] == ["Levels of instructions", "level chosen by kernels size"]
    assert words[2] == f"{levels[0]} default cache 2.5 MB"
    assert f"default {levels[0]}, the best that this processor has" in words
    assert f"cache {folder.parent}" in words
    assert f"compiled {', '.join(levels)}: {why} installation" in words
    asked = [line.split()[0] for line in words if " cpu=" in line]
    assert (answer["used"], [level["level"] for level in answer["levels"]]) == (levels[0], levels)
    assert asked == levels[1:]
    assert "models get numba_cpu only where it is named" in "".join(lines)
    assert answer["is_ready"] is False
    first = answer["levels"][0]
    assert (first["source"], first["place"], first["bytes"]) == ("cache", str(folder), 2_500_000)
    assert first["why"].startswith(why)


def test_info_fits_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = CliRunner().invoke(command, ["info"]).output.splitlines()
    assert all(len(line) <= 60 for line in lines if "/" not in line)  # a path is one word
    assert any(line.startswith("  ") for line in lines)


def test_info_says_what_a_processor_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "host_features", lambda: frozenset({"avx2", "fma", "bmi2"}))
    monkeypatch.setattr(cpu, "host_machine", lambda: "x86_64")
    shown = CliRunner().invoke(command, ["info"]).output
    words = [" ".join(line.split()) for line in shown.splitlines()]
    assert "avx2 not usable here" in words
    assert any(line.startswith("lacking f16c for avx2") for line in words)
    lacks = json.loads(CliRunner().invoke(command, ["info", "--json"]).output)["lacks"]
    assert "amx-int8" in lacks["amx_int8"]
    assert "generic" not in lacks


def test_it_is_ready_where_the_library_that_is_used_came_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The processor's best one does not help where the environment names another level."""
    best, *others = supported_levels()
    found = SimpleNamespace(files={best.name: ""}, failures={})
    monkeypatch.setattr(prebuilt, "usable_manifest", lambda: found)
    monkeypatch.delenv(cpu.VARIABLE, raising=False)
    assert is_ready()
    assert "models get numba_cpu by default" in CliRunner().invoke(command, ["info"]).output
    if others:
        monkeypatch.setenv(cpu.VARIABLE, others[-1].name)
        assert not is_ready()


def test_doctor_is_told_what_slows_kernels_down(monkeypatch: pytest.MonkeyPatch) -> None:
    best, *others = supported_levels()
    if not others:
        pytest.skip("this processor has the generic level only")
    files = {best.name: "", "generic": ""}
    found = SimpleNamespace(files=files, failures={})
    monkeypatch.setattr(prebuilt, "usable_manifest", lambda: found)
    monkeypatch.delenv(cpu.VARIABLE, raising=False)
    ((text, remedy),) = plugin.advice()
    assert (text.startswith("kernels of the level "), remedy) == (True, "")
    monkeypatch.setenv(cpu.VARIABLE, "generic")
    assert plugin.advice()[0][1] == f"unset {cpu.VARIABLE}"
    monkeypatch.setenv(cpu.VARIABLE, "unknown")
    assert plugin.advice()[0][1] == f"unset {cpu.VARIABLE}"
    monkeypatch.delenv(cpu.VARIABLE)
    del files[best.name]
    ((text, remedy),) = plugin.advice()
    assert f"has no prebuilt kernels for {best.name}" in text
    assert remedy.startswith(f"delegraph numba warmup --cpu {best.name}")
    files.clear()
    ((text, remedy),) = plugin.advice()
    assert (remedy, text[:24]) == ("delegraph numba warmup", "has no prebuilt kernels:")


def test_info_says_that_a_better_level_was_not_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    best, *others = supported_levels()
    if not others:
        pytest.skip("this processor has the generic level only")
    found = SimpleNamespace(files={"generic": "generic.objects"}, failures={})
    monkeypatch.setattr(prebuilt, "usable_manifest", lambda: found)
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path)
    (tmp_path / "generic.objects").touch()
    monkeypatch.delenv(cpu.VARIABLE, raising=False)
    shown = CliRunner().invoke(command, ["info"]).output
    why = f"the best with prebuilt kernels; cpu={best.name} has faster ones"
    assert f"default generic, {why}" in " ".join(shown.split())


def test_a_level_that_the_processor_lacks_shows_when_the_delegate_is_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(cpu.VARIABLE, "abacus")
    assert is_ready()


def test_info_says_that_the_environment_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cpu.VARIABLE, "generic")
    shown = CliRunner().invoke(command, ["info"]).output
    assert "default   generic, as DELEGRAPH_NUMBA_CPU says\n" in shown
    answer = json.loads(CliRunner().invoke(command, ["info", "--json"]).output)
    levels = [level["level"] for level in answer["levels"]]
    assert (answer["used"], levels[0]) == ("generic", "generic")
    assert sorted(levels) == sorted(level.name for level in supported_levels())


def test_info_says_how_to_get_kernels_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path)
    monkeypatch.setitem(sys.modules, "delegraph_numba_cpu.library.cache", None)
    prebuilt.usable_manifest.cache_clear()
    [level, *_] = json.loads(CliRunner().invoke(command, ["info", "--json"]).output)["levels"]
    prebuilt.usable_manifest.cache_clear()
    assert (level["source"], level["place"]) == ("none", "")
    assert "pip install 'delegraph-numba-cpu[jit]' adds what compiles them" in level["why"]


def test_warmup_loads_every_family_of_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, tuple[str, ...]]] = []

    def load(self: Library, names: tuple[str, ...], progress: object = None) -> None:
        loaded.append((self.level.name, tuple(names)))

    monkeypatch.setattr(Library, "load", load)
    delegraph_numba_cpu.warmup()
    delegraph_numba_cpu.warmup("generic")
    best = supported_levels()[0].name
    assert loaded == [(best, families()), ("generic", families())]
    loaded.clear()
    result = CliRunner().invoke(command, ["warmup", "--cpu", "all"])
    assert result.exit_code == 0
    assert [name for name, _ in loaded] == [level.name for level in supported_levels()]
    assert result.output.splitlines()[-1].startswith("generic: ")
    result = CliRunner().invoke(command, ["warmup", "--json"])
    (answer,) = json.loads(result.stdout)["levels"]
    assert (answer["level"], answer["families"]) == (best, len(families()))


def test_exact_integers_are_refused_where_the_kernels_round_like_the_reference_ones() -> None:
    exact = NumbaCpuDelegate(NumbaCpuOptions())
    refused = Interpreter(DIGITS, delegates=[exact], numerics="reference").placement
    assert {node.rejections["numba_cpu"].constraint for node in refused.nodes} == {"numerics"}
    inexact = NumbaCpuDelegate(NumbaCpuOptions(exact=False))
    near = Interpreter(DIGITS, delegates=[inexact], numerics="reference")
    assert near.placement.partitions


@pytest.mark.parametrize(
    ("own", "requested", "expected"), [(0, None, 3), (0, 2, 2), (1, 2, 1), (0, 9, 4), (9, None, 4)]
)
def test_benchmarks_are_told_the_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, own: int, requested: int | None, expected: int
) -> None:
    monkeypatch.setattr("delegraph_numba_cpu.delegate.physical_cores", lambda: 3)
    monkeypatch.setattr(POOL, "most_threads", 4)
    delegate = NumbaCpuDelegate(NumbaCpuOptions(num_threads=own))
    assert delegate.most_threads(requested) == expected
