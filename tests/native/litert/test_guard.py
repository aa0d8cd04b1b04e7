"""Which runtimes our delegates get into. A layout is altered in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError, UnsupportedRuntimeError
from delegraph.native.litert import guard
from delegraph.native.litert.installed_runtimes import (
    OfficialRuntime,
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


def self_check(change: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ALTERED), change, "ai_edge_litert"]
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, env=environment
    )


@pytest.mark.parametrize("change", REFUSED)
def test_a_layout_that_differs_where_it_is_read_is_refused(change: str) -> None:
    assert self_check(change).returncode != 0


@pytest.mark.parametrize("change", ["none", *UNREAD])
def test_what_is_not_read_does_not_matter(change: str) -> None:
    done = self_check(change)
    assert done.returncode == 0, done.stderr


def runtime() -> OfficialRuntime:
    return runtime_of(vars(litert))


def test_a_runtime_tells_package_version_and_library() -> None:
    found = runtime()
    assert found.package == "ai_edge_litert"
    assert found.version[0].isdigit()
    assert found.extension.is_file()
    assert len(found.fingerprint) == 64


def test_an_unknown_version_is_checked_once(tmp_path: Path) -> None:
    known = runtime()
    unknown = OfficialRuntime(known.package, "99.0", known.extension)
    file = tmp_path / "verdicts" / "litert.json"
    assert not guard.is_known(unknown)
    assert guard.kept_verdict(unknown, file) is None
    (key,) = verdicts = json.loads(file.read_text())
    assert key.startswith("ai_edge_litert 99.0 ")
    verdicts[key] = "kept"
    file.write_text(json.dumps(verdicts))
    assert guard.kept_verdict(unknown, file) == "kept"


def test_another_library_is_another_verdict(tmp_path: Path) -> None:
    library = tmp_path / "wrapper.so"
    library.write_bytes(b"one")
    first = OfficialRuntime("ai_edge_litert", "1", library).fingerprint
    library.write_bytes(b"two")
    assert OfficialRuntime("ai_edge_litert", "1", library).fingerprint != first


def test_a_file_of_verdicts_that_is_damaged_is_made_anew(tmp_path: Path) -> None:
    known = runtime()
    file = tmp_path / "litert.json"
    file.write_text("{")
    assert guard.kept_verdict(OfficialRuntime(known.package, "98.0", known.extension), file) is None
    assert json.loads(file.read_text())


def test_a_runtime_that_fails_its_check_is_refused_with_the_versions_that_work() -> None:
    nobody = OfficialRuntime("nobody", "1.0", Path(litert.__file__))
    assert "none of the official runtimes" in (guard.check(nobody) or "")


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
