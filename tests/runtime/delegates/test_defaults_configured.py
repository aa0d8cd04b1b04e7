"""Delegates that the user's configuration names, where nobody else names any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delegraph import DelegateFlags, Interpreter, Limits
from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE
from delegraph.delegation.placement import Placement
from delegraph.errors import ConfigurationError
from delegraph.native import LiteRtInterpreter
from delegraph.runtime.arguments import OpResolverType
from support.by_name import ByName, sines
from support.chosen_plugins import use_plugins_of
from support.configured import configure
from support.fake_distributions import write_plugin

TAKING = """\
from dataclasses import dataclass
from delegraph import DelegateSpec, hookimpl

@dataclass
class Options:
    op: str = "SIN"

def _load():
    from support.by_name import ByName
    return lambda options: ByName(options.op, name="taker")

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("taker", "takes one operator", _load, Options)]
"""


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(tmp_path / "site", "taker", TAKING)
    use_plugins_of(monkeypatch, tmp_path / "site")


def delegates(**arguments: Any) -> tuple[str, ...]:
    return Interpreter(model_content=sines(), **arguments).placement.delegates


def test_they_are_applied_where_nobody_names_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, tmp_path, "delegates = ['taker:op=ADD', 'fake-taker:taker']")
    placement = Interpreter(model_content=sines()).placement
    assert placement.delegates == ("taker", "taker")
    assert sorted(p.nodes for p in placement.partitions) == [(0,), (1, 4), (3,)]
    assert placement.notes == {"taker": "by default"}


def test_arguments_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, tmp_path, "delegates = ['taker']")
    assert delegates() == ("taker",)
    own = ByName("ADD", flags=DelegateFlags.NONE)
    assert delegates(delegates=[own]) == ("by_name",)
    assert delegates(delegates=[]) == delegates(experimental_delegates=[]) == ()
    without = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    assert delegates(experimental_op_resolver_type=without) == ()


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, tmp_path, "delegates = ['taker']")
    monkeypatch.setenv(DEFAULT_DELEGATES_VARIABLE, "taker:op=ADD  taker:op=MUL")
    partitions = Interpreter(model_content=sines()).placement.partitions
    assert sorted(p.nodes for p in partitions) == [(1, 4), (2,)]
    monkeypatch.setenv(DEFAULT_DELEGATES_VARIABLE, "")
    assert delegates() == ()
    monkeypatch.setenv(DEFAULT_DELEGATES_VARIABLE, "nobody")
    with pytest.raises(ConfigurationError, match="_DELEGATES: no installed plugin"):
        delegates()


def test_an_interpreter_inside_a_kernel_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, tmp_path, "delegates = ['taker']")
    outer = Interpreter(model_content=sines(), delegates=[])
    assert delegates(limits=Limits(cancellation=outer.session.cancellation)) == ()


def test_in_litert_the_same_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert")
    configure(monkeypatch, tmp_path, "delegates = ['taker:op=ADD', 'fake-taker:taker']")

    def found(**arguments: Any) -> Placement:
        return LiteRtInterpreter(model_content=sines(), **arguments).placement

    placement = found()
    ours = [p.nodes for p in placement.partitions if p.delegate == "taker"]
    assert sorted(ours) == [(0,), (1, 4), (3,)]
    assert placement.notes["taker"] == "by default"
    own = found(delegates=[ByName("ADD")])
    assert own.delegates[0] == "by_name"
    assert "taker" not in own.delegates
    without = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    for arguments in (
        {"delegates": []},
        {"experimental_delegates": []},
        {"experimental_op_resolver_type": without},
    ):
        assert "taker" not in found(**arguments).delegates
    configure(monkeypatch, tmp_path, "delegates = ['takr']")
    with pytest.raises(ConfigurationError, match="no installed plugin provides delegate 'takr'"):
        found()


def test_a_delegate_that_cannot_be_had_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = configure(monkeypatch, tmp_path, "delegates = ['takr']")
    with pytest.raises(
        ConfigurationError, match="no installed plugin provides delegate 'takr'"
    ) as e:
        delegates()
    assert str(e.value).startswith(f"configuration file {str(path)!r}: delegates: ")
    configure(monkeypatch, tmp_path, "delegates = ['taker:ops=ADD']")
    with pytest.raises(ConfigurationError, match="delegate 'taker' has no option 'ops'"):
        delegates()
    configure(monkeypatch, tmp_path, "delegates = ['./lib.so']")
    with pytest.raises(
        ConfigurationError, match=r"no installed plugin provides delegate './lib.so'"
    ):
        delegates()


def test_a_removed_default_leaves_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, tmp_path, "delegates = ['taker']")
    interpreter = Interpreter(model_content=sines())
    interpreter.remove_delegate("taker")
    assert interpreter.placement.notes == {}
