from __future__ import annotations

import sys

import pytest

from delegraph import __version__
from delegraph.errors import UnsupportedRuntimeError
from delegraph.native.litert import guard
from delegraph.tools.hosts import Host, hosts


def test_all_three_work_where_litert_is_installed() -> None:
    litert = pytest.importorskip("ai_edge_litert").__name__
    own, interpreter, compiled_model = hosts()
    assert own == Host("delegraph", f"delegraph {__version__}", "Interpreter")
    for host, api in ((interpreter, "Interpreter"), (compiled_model, "CompiledModel")):
        assert (host.package.split()[0], host.api, host.refusal) == (litert, api, "")


def test_what_is_missing_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("ai_edge_litert", "tflite_runtime", "tensorflow"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr("delegraph.native.litert.installed_runtimes.find_spec", lambda name: None)
    own, *official = hosts()
    assert own.refusal == ""
    lacking = "no TFLite runtime is installed", "ai_edge_litert is not installed"
    for host, text in zip(official, lacking, strict=True):
        assert host.package == ""
        assert text in host.refusal
        assert host.refusal.endswith("pip install ai-edge-litert")


def test_what_is_refused_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert")

    def refuse(*_: object) -> None:
        raise UnsupportedRuntimeError("not on this platform")

    monkeypatch.setattr(guard, "require_known", refuse)
    monkeypatch.setattr(guard, "require_known_compiled_model", refuse)
    assert [host.refusal for host in hosts()] == ["", *["not on this platform"] * 2]
