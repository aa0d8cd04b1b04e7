from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delegraph.delegation.blob_cache import BlobCache
from delegraph.plugins.plugin import Plugin, PluginState
from delegraph.plugins.sources import pip_install
from delegraph.runtime.delegates.failure_memory import KnownFailure
from delegraph.tools import environment_check
from delegraph.tools.default_delegates import DefaultDelegates
from delegraph.tools.environment_check import check_environment
from delegraph.tools.hosts import Host
from delegraph.tools.machine_report import Cache, MachineReport, machine_report
from delegraph.tools.plugin_check import Finding, Level

OWN = Host("delegraph", "delegraph 1.0", "Interpreter")
READY = DefaultDelegates(("fast",), "it is ready")


@pytest.fixture(autouse=True)
def usual(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine whose control group grants all cores, and whose user has chosen nothing."""
    monkeypatch.setattr(environment_check, "QUOTA_FILE", tmp_path / "absent")
    monkeypatch.setattr(environment_check, "default_delegates", lambda: (None, ""))


def sound(tmp_path: Path, **changed: Any) -> MachineReport:
    report = machine_report()
    whole = replace(report.processor, cores=8, usable_cores=8)
    BlobCache("fast-programs", "1", tmp_path).put("key", bytes(100))
    cache = Cache("the system", str(tmp_path), 1, 100)
    return replace(report, **{"processor": whole, "caches": (cache,), **changed})


def found(
    report: MachineReport, *hosts: Host, by_default: DefaultDelegates = READY
) -> list[Finding]:
    return list(check_environment(report, (OWN, *hosts), by_default))


def test_nothing_is_found_on_a_sound_machine(tmp_path: Path) -> None:
    tested = Host("litert", "ai_edge_litert 2.3.0", "Interpreter")
    assert found(sound(tmp_path), tested) == []


def test_a_host_that_takes_no_delegates_is_told_with_its_reason(tmp_path: Path) -> None:
    refused = Host("litert", "", "Interpreter", "other structs")
    report = sound(tmp_path, versions={"ai-edge-litert": "9.0"})
    (finding,) = found(report, refused)
    assert (finding.level, finding.subject) == (Level.WARNING, "--runtime litert")
    assert finding.text == "takes no delegates: other structs"
    assert "pip install ai-edge-litert" in finding.remedy
    (absent,) = found(sound(tmp_path, versions={}), refused)
    assert absent.level is Level.NOTE  # no option names that runtime


@pytest.mark.parametrize("runtime", ["litert", "litert2"])
def test_an_untested_version_is_told_with_the_newest_tested(tmp_path: Path, runtime: Any) -> None:
    host = Host(runtime, "ai_edge_litert 9.0", "Interpreter", is_tested=False)
    (finding,) = found(sound(tmp_path), host)
    assert "ai_edge_litert 9.0 on this platform was tried now" in finding.text
    assert finding.remedy == "pip install ai-edge-litert==2.3.0"


def test_an_untested_python_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Future:
        minor = 99

    monkeypatch.setattr(environment_check.sys, "version_info", Future)
    (finding,) = found(sound(tmp_path))
    assert finding.text.startswith("3.99 is not among those tested: 3.10 to 3.")
    assert finding.remedy.endswith("-m venv FOLDER")


def test_slow_kernels_are_told(tmp_path: Path) -> None:
    none = DefaultDelegates((), "fast: not prebuilt; a plugin is broken")
    (finding,) = found(sound(tmp_path), by_default=none)
    assert finding.text.endswith("slow kernels: fast: not prebuilt")
    assert finding.remedy.startswith(f"{pip_install('delegraph-numba-cpu')}; if it is installed")


def test_a_default_delegate_that_the_users_lists_exclude_is_told_with_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELEGRAPH_DISABLE_PLUGINS", "flex, numba_cpu")
    none = DefaultDelegates((), "no installed delegate applies by default")
    why = "disabled by DELEGRAPH_DISABLE_PLUGINS"
    fast = Plugin("numba_cpu", "delegraph-numba-cpu", "1", "m", PluginState.DISABLED, why)
    (finding,) = check_environment(sound(tmp_path), (OWN,), none, plugins=(fast,))
    assert finding.text.endswith(f"slow kernels: {fast}: {why}")
    assert finding.remedy == "DELEGRAPH_DISABLE_PLUGINS=flex allows it"


def test_a_cache_that_is_nearly_full_is_told_with_its_stale_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Cache("the system", str(tmp_path), 1, 3_600_000_000, limit=4_000_000_000)
    report = sound(tmp_path, caches=(full,))
    monkeypatch.setattr(environment_check, "stale_bytes", lambda folder: 3_000_000_000)
    (finding,) = found(report)
    assert finding.text == "holds 3.6 GB of at most 4.0 GB, 3.0 GB of it of versions not in use"
    assert (finding.level, finding.remedy) == (Level.NOTE, "delegraph cache clear --stale")
    broken = Plugin("p", "fake-p", "1", "m", PluginState.BROKEN, "why")
    (finding,) = check_environment(report, (OWN,), READY, plugins=(broken,))
    assert finding.text == "holds 3.6 GB of at most 4.0 GB"
    assert found(replace(report, caches=(replace(full, bytes=3_000_000_000),))) == []


def test_a_misspelt_variable_is_told_with_the_right_name(tmp_path: Path) -> None:
    names = ("DELEGRAPH_DISABLE_PLUGIN", "DELEGRAPH_CACHE", "DELEGRAPH_OTHER_CACHE", "DELEGRAPH_X")
    misspelt, other = found(sound(tmp_path, variables=dict.fromkeys(names, "")))
    assert misspelt.subject == "variable DELEGRAPH_DISABLE_PLUGIN"
    assert misspelt.text.endswith("did you mean DELEGRAPH_DISABLE_PLUGINS?")
    assert (other.level, other.subject) == (Level.NOTE, "variable DELEGRAPH_X")
    assert other.remedy == "unset DELEGRAPH_X, unless a plugin of yours reads it"


def test_a_switch_that_is_neither_0_nor_1_is_told(tmp_path: Path) -> None:
    values = {"DELEGRAPH_NUMBA_KEEP": "false", "DELEGRAPH_NUMBA_GUARD": "1"}
    (finding,) = found(sound(tmp_path, variables=values))
    assert (finding.level, finding.subject) == (Level.WARNING, "variable DELEGRAPH_NUMBA_KEEP")
    assert finding.text == "is 'false', expected 0 (off) or 1 (on)"


def test_the_users_own_choice_of_none_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment_check, "default_delegates", lambda: ((), "the environment"))
    assert found(sound(tmp_path), by_default=DefaultDelegates((), "set by it")) == []


def test_cores_that_are_not_granted_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text("150000 100000\n")
    monkeypatch.setattr(environment_check, "QUOTA_FILE", quota)
    some = replace(machine_report().processor, cores=8, usable_cores=4)
    note, warning = found(sound(tmp_path, processor=some))
    assert (note.level, note.text) == (Level.NOTE, "this process may use 4 of 8 cores")
    assert "grants the time of 1.5 cores, and 4 are seen" in warning.text
    assert warning.remedy.startswith("--threads 1,")
    quota.write_text("max 100000\n")
    assert [each.level for each in found(sound(tmp_path, processor=some))] == [Level.NOTE]


def test_a_first_start_without_kept_programs_is_told(tmp_path: Path) -> None:
    new = Cache("the system", str(tmp_path / "not" / "there"))
    (finding,) = found(sound(tmp_path, caches=(new,)))
    assert "the first start of a model that needs some takes longer" in finding.text
    assert finding.remedy == "delegraph cache warm MODEL.tflite"
    none = DefaultDelegates((), "no installed delegate applies by default")
    others = found(sound(tmp_path, caches=(new,)), by_default=none)
    assert [each.subject for each in others] == ["default delegate"]  # nothing would be kept


def test_digests_and_other_delegates_entries_are_no_programs(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    BlobCache("fast-sources", "1", folder).put("key", bytes(32))
    BlobCache("slow", "1", folder).put("key", bytes(20_000))
    report = sound(tmp_path, caches=(Cache("the system", str(folder), 2, 20_032),))
    (finding,) = found(report)
    assert finding.text.startswith("keeps no programs yet")
    BlobCache("fast", "1", folder).put("key", bytes(100))
    assert found(report) == []


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_check, "LITTLE_SPACE", 1 << 62)
    (finding,) = found(sound(tmp_path))
    assert (finding.level, finding.remedy) == (Level.WARNING, "delegraph cache clear")


def test_no_folder_for_temporary_files_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = sound(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    (finding,) = found(report)
    assert (finding.level, finding.subject) == (Level.ERROR, "temporary files")
    assert finding.remedy.startswith("TMPDIR=FOLDER names another")


def test_failures_of_default_delegates_are_told(tmp_path: Path) -> None:
    known = [
        KnownFailure("fast", "fast 1.0", each, ((1,),), "prepare", "no", False, file)
        for each, file in (("00", "models/a.tflite"), ("00", "models/a.tflite"), ("01", ""))
    ]
    (finding,) = check_environment(sound(tmp_path), (OWN,), READY, known)
    assert (finding.level, finding.subject) == (Level.NOTE, "default delegate fast")
    assert finding.text.startswith("failed at 2 models (a.tflite): ")
    assert "delegraph doctor --report FILE" in finding.remedy
    assert "delegraph cache clear default-failures" in finding.remedy
