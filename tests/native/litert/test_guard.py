"""Which runtimes our delegates get into. A layout is altered in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from delegraph.delegation.blob_cache import CACHE_VARIABLE
from delegraph.errors import ArgumentError, UnsupportedRuntimeError
from delegraph.native.litert import guard
from delegraph.native.litert.installed_runtimes import (
    OfficialRuntime,
    compiled_model_module,
    compiled_model_runtime,
    interpreter_module,
    runtime_of,
)

litert = pytest.importorskip("ai_edge_litert.interpreter")

ALTERED = Path(__file__).with_name("altered_layouts.py")

REFUSED = [
    "Tensor.dims+",
    "Tensor.bytes=allocation",
    "Tensor.data_is_stale=is_variable",
    "Node.outputs+",
    "Node.user_data+",
    "Registration.inplace_operator-",
    "Registration.prepare=invoke",
    "Registration.custom_name+",
    "Delegate.flags=opaque_delegate_builder",
    "Delegate.CopyFromBufferHandle=CopyToBufferHandle",
    "DelegateParams.input_tensors+",
    "Context.ResizeTensor=ReportError",
    "Context.ReleaseSubgraphContext+",
]
UNREAD = ["Node.intermediates=temporaries", "Delegate.opaque_delegate_builder+"]


def self_check(change: str, api: str = "ai_edge_litert") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ALTERED), change, api]
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, env=environment
    )


@pytest.mark.repetition(2)  # each is a process
@pytest.mark.parametrize("change", REFUSED)
def test_a_layout_that_differs_where_it_is_read_is_refused(change: str) -> None:
    assert self_check(change).returncode != 0


@pytest.mark.repetition(2)
@pytest.mark.parametrize("change", ["none", *UNREAD])
def test_what_is_not_read_does_not_matter(change: str) -> None:
    done = self_check(change)
    assert done.returncode == 0, done.stderr


@pytest.mark.repetition(2)
@pytest.mark.parametrize(
    "change",
    [
        "Environment._HANDLE+8",
        "Environment._REGISTRY+8",
        "Tensor.dims+",
        "Node.user_data+",
        "Registration.prepare=invoke",
        "DelegateParams.input_tensors+",
    ],
)
def test_a_compiled_model_that_differs_where_it_is_read_is_refused(change: str) -> None:
    assert self_check(change, "CompiledModel").returncode != 0


def test_the_known_compiled_model_passes_its_check() -> None:
    done = self_check("none", "CompiledModel")
    assert done.returncode == 0, done.stderr


def test_an_untried_compiled_model_is_checked_in_a_process_and_the_verdict_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = compiled_model_runtime(compiled_model_module())
    assert guard.is_known(known)
    untried_one = replace(known, version="99.0")
    assert not guard.is_known(untried_one)
    assert guard.kept_verdict(untried_one) is None
    monkeypatch.setattr(guard, "check", lambda runtime: "another layout")
    assert guard.kept_verdict(untried_one) is None
    assert guard.kept_verdict(replace(known, version="99.1")) == "another layout"


def test_a_refused_compiled_model_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(__file__=litert.__file__)
    other = SimpleNamespace(__name__="other", __file__="other.py", _cm=library)
    monkeypatch.setattr(guard, "compiled_model_module", lambda: other)
    monkeypatch.setattr(guard, "KNOWN_COMPILED_MODELS", set())
    monkeypatch.setattr(guard, "kept_verdict", lambda runtime: f"{runtime} is another")
    with pytest.raises(UnsupportedRuntimeError, match=r"\(CompiledModel\) is another"):
        guard.require_known_compiled_model()


def test_an_old_compiled_model_has_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(compiled_model_module(), "Environment")
    with pytest.raises(UnsupportedRuntimeError, match=r"version 2\.1\.6 has"):
        compiled_model_module()


def runtime() -> OfficialRuntime:
    return runtime_of(vars(litert))


def test_a_runtime_tells_package_version_and_library() -> None:
    found = runtime()
    assert found.package == "ai_edge_litert"
    assert found.version[0].isdigit()
    assert found.extension.is_file()
    assert len(found.fingerprint) == 64


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for the verdicts."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def untried() -> OfficialRuntime:
    known = runtime()
    return OfficialRuntime(known.package, "99.0", known.extension)


@pytest.mark.parametrize("verdict", [None, "another layout"])
def test_the_verdict_on_an_unknown_version_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, verdict: str | None
) -> None:
    checks: list[OfficialRuntime] = []
    monkeypatch.setattr(guard, "check", lambda runtime: checks.append(runtime) or verdict)
    assert not guard.is_known(untried())
    assert [guard.kept_verdict(untried()) for _ in range(2)] == [verdict, verdict]
    assert len(checks) == 1


def test_an_unknown_version_with_the_known_layout_is_accepted(folder: Path) -> None:
    assert guard.kept_verdict(untried()) is None


def test_another_library_is_another_verdict(tmp_path: Path) -> None:
    library = tmp_path / "wrapper.so"
    library.write_bytes(b"one")
    first = OfficialRuntime("ai_edge_litert", "1", library).fingerprint
    library.write_bytes(b"two")
    assert OfficialRuntime("ai_edge_litert", "1", library).fingerprint != first


@pytest.mark.parametrize("what", ["file", "folder"])
def test_verdicts_that_others_may_write_are_not_believed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    monkeypatch.setattr(guard, "check", lambda runtime: None)
    guard.kept_verdict(untried())
    monkeypatch.setattr(guard, "check", lambda runtime: "checked again")
    [file] = folder.rglob("*.blob")
    (file if what == "file" else folder).chmod(0o777)
    assert guard.kept_verdict(untried()) == "checked again"
    assert "may be written by others" in caplog.text


def test_a_runtime_that_fails_its_check_is_refused_with_the_versions_that_work() -> None:
    nobody = OfficialRuntime("nobody", "1.0", Path(litert.__file__))
    assert "none of the official runtimes" in (guard.check(nobody) or "")


def test_a_check_that_fails_is_told_by_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(guard.MODULES, "absent", "absent")
    refusal = guard.check(OfficialRuntime("absent", "1.0", Path(litert.__file__)))
    assert refusal is not None
    assert "cannot run in it (delegraph.errors." in refusal
    assert "no runtime 'absent'" in refusal


def test_a_module_that_is_no_interpreter_is_refused() -> None:
    with pytest.raises(UnsupportedRuntimeError, match="no interpreter module of an official"):
        guard.require_known({"__name__": "somebody.elses"})


def test_this_platform_is_supported() -> None:
    assert guard.unsupported_platform() is None


def test_runtimes_are_chosen_by_name() -> None:
    assert interpreter_module("ai_edge_litert") is litert
    with pytest.raises(ArgumentError, match="no runtime 'litert'; there are: ai_edge_litert"):
        interpreter_module("litert")


@pytest.mark.parametrize(("name", "value"), [("platform", "win32"), ("byteorder", "big")])
def test_another_platform_is_refused_with_what_it_takes(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, name, value)
    refusal = guard.unsupported_platform()
    assert refusal is not None
    assert refusal.startswith("delegates in an official runtime need 64-bit little-endian CPython")
