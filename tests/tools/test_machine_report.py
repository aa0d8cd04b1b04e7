from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from delegraph.delegation.blob_cache import LIMIT, BlobCache
from delegraph.delegation.cache_entries import cache_entries
from delegraph.tools.machine_report import Cache, MachineReport, check_machine, machine_report
from delegraph.tools.plugin_check import Level
from support.fake_distributions import write_distribution

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions are those of POSIX")


def report_with(*caches: Cache) -> MachineReport:
    return replace(machine_report(), caches=caches)


def test_versions_are_those_installed() -> None:
    report = machine_report()
    assert {"delegraph", "numpy", "click", "ai-edge-litert", "pillow"} <= report.versions.keys()
    assert report.versions["numpy"] == __import__("numpy").__version__
    assert report.processor.memory > 1 << 20
    assert 1 <= report.processor.usable_cores <= report.processor.cores
    assert sys.executable in report.python


def test_requirements_of_plugins_have_versions_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requires = ("absent-engine>=2", "pytest; extra == 'jit'", "absent-extra; extra == 'jit'")
    extras = ("Provides-Extra: jit", *(f"Requires-Dist: {each}" for each in requires))
    monkeypatch.syspath_prepend(tmp_path)
    write_distribution(tmp_path, "fake-engine", {}, {})
    metadata = next(tmp_path.glob("*.dist-info/METADATA"))
    metadata.write_text(metadata.read_text().rstrip() + "\n" + "\n".join(extras) + "\n")
    versions = machine_report(["fake-engine"]).versions
    assert versions["absent-engine"] is None
    assert versions["pytest"] == pytest.__version__
    assert "absent-extra" not in versions


def test_extras_are_listed_with_what_they_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = metadata.version

    def version(name: str) -> str:
        if name in ("grpcio", "pyarrow"):
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "version", version)
    report = machine_report()
    extras = {extra.name: extra for extra in report.extras}
    assert any(each.startswith("grpcio>=") for each in extras["serve"].missing)
    assert extras["parquet"].missing == ("pyarrow>=17",)
    assert all(extra.needed_by for extra in report.extras)
    assert report.versions["grpcio"] is None
    assert "uvicorn" in report.versions


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_cache_that_the_file_system_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELEGRAPH_CACHE", "/proc/absent")
    cache = machine_report().caches[-1]
    assert "/proc" in cache.error
    (finding,) = check_machine(report_with(cache))
    assert finding.level is Level.ERROR


def test_a_sound_machine_has_no_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert list(check_machine(report_with(), ["delegraph-example", "not-installed"])) == []


def test_a_cache_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path))
    BlobCache("kept", "1").put("key", b"123")
    (tmp_path / "kept" / "a.lock").write_bytes(b"")
    cache = machine_report().caches[0]
    [entry] = cache_entries()
    assert cache == Cache("DELEGRAPH_CACHE", str(tmp_path), 1, entry.size, limit=LIMIT)
    assert "DELEGRAPH_CACHE" in machine_report().variables


@pytest.mark.parametrize("name", ["SERVE_TOKEN", "MINE_KEY", "my_secret", "DB_PASSWORD"])
def test_the_values_of_secrets_are_not_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"DELEGRAPH_{name}", "hunter2")
    assert "hunter2" not in str(machine_report())
    assert machine_report().variables[f"DELEGRAPH_{name}"] == "***"


@posix
def test_a_cache_that_others_may_write_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path))
    cache = machine_report().caches[0]
    assert "may be written by others; 'chmod go-w" in cache.error
    (finding,) = check_machine(report_with(cache))
    assert (finding.level, finding.subject) == (Level.ERROR, f"cache {tmp_path}")
    assert finding.remedy.startswith("DELEGRAPH_CACHE=FOLDER names another")


def test_a_cache_whose_content_may_not_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(Path(folder) / "delegate"))

    monkeypatch.setattr(os, "scandir", refuses)
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path))
    assert machine_report().caches[0].error == f"{tmp_path / 'delegate'} Permission denied"


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o555)
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path / "a" / "b"))
    assert machine_report().caches[0].error == f"this user may not write {tmp_path}"


def test_a_cache_that_is_not_there_yet_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path / "a" / "b"))
    assert machine_report().caches[0].error == ""


def test_missing_and_wrong_packages_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_distribution(tmp_path, "needy", {}, {})
    metadata = tmp_path / "needy-1.0.dist-info" / "METADATA"
    needs = ("not-there-at-all>=2", "numpy<1", "click>=8", "absent; extra == 'more'")
    metadata.write_text(metadata.read_text() + "".join(f"Requires-Dist: {n}\n" for n in needs))
    monkeypatch.syspath_prepend(tmp_path)
    first, second = check_machine(report_with(), ["needy"])
    assert (first.subject, first.text) == ("needy", "needs not-there-at-all>=2, which is missing")
    assert first.remedy == "pip install 'not-there-at-all>=2'"
    assert second.text.startswith("needs numpy<1, and ")
