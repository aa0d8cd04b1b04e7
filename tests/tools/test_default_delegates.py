"""What a model gets by default, as ``delegraph plugins list`` and ``doctor`` say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE
from delegraph.plugins import DelegateSpec, Plugin, PluginSet, PluginState
from delegraph.tools.default_delegates import defaults_among
from support.configured import configure


def plugins(
    is_ready: bool = True, state: PluginState = PluginState.OK, error: str = ""
) -> PluginSet:
    ready = {"default_rank": 0, "is_ready": lambda: is_ready}
    specs = (DelegateSpec("numba_cpu", "fast", lambda: object, **ready),)
    offered = specs if state is PluginState.OK else ()
    identity = ("numba_cpu", "delegraph-numba-cpu", "0.1.0", "somewhere")
    return PluginSet(plugins=(Plugin(*identity, state, error, offered),))


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    configure(monkeypatch, tmp_path, "")


@pytest.mark.usefixtures("unset")
def test_the_one_of_the_rest_is_named_where_it_is_ready() -> None:
    found = defaults_among(plugins())
    assert found.to_json() == {
        "delegates": ["numba_cpu"],
        "why": "it is ready, and computes what other delegates leave",
    }
    assert str(found).startswith("By default: numba_cpu (it is ready")


@pytest.mark.usefixtures("unset")
def test_one_that_is_not_ready_is_not_applied_and_the_reason_is_named() -> None:
    assert str(defaults_among(plugins(is_ready=False))) == (
        "By default: Delegraph's own kernels (numba_cpu: not prebuilt, would have to compile first)"
    )


@pytest.mark.usefixtures("unset")
def test_one_that_is_missing_or_disabled_is_told() -> None:
    found = defaults_among(PluginSet(plugins=()))
    assert (found.delegates, found.why) == ((), "no installed delegate applies by default")
    found = defaults_among(plugins(state=PluginState.DISABLED, error="it is on a list"))
    assert found.delegates == ()
    assert "is disabled: it is on a list" in found.why


def test_who_names_the_defaults_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    configure(monkeypatch, tmp_path, "delegates = ['sin']")
    found = defaults_among(plugins())
    assert found.delegates == ("sin",)
    assert found.why == f"set by configuration file {str(tmp_path / 'delegraph.toml')!r}: delegates"
    monkeypatch.setenv(DEFAULT_DELEGATES_VARIABLE, "")
    assert str(defaults_among(plugins())) == (
        "By default: Delegraph's own kernels (set by DELEGRAPH_DEFAULT_DELEGATES)"
    )
