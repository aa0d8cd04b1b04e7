"""Delegates that a model gets without asking, because its custom operators call for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delegraph import Interpreter, OpResolverType, Registration, Rejection
from delegraph.errors import PluginLoadError, UnresolvedOpError
from delegraph.plugins.sources import pip_install
from delegraph.testing import graph_model
from support.by_name import ByName, X, run
from support.chosen_plugins import disable_plugins, use_plugins_of
from support.fake_distributions import write_distribution

PLUGIN = """\
from support.by_name import ByName
from delegraph import DelegateSpec, hookimpl

def _twice():
    return lambda: ByName("Twice", name="twice")

def _broken():
    raise ImportError("no such library")

@hookimpl
def delegraph_delegates():
    return [
        DelegateSpec("twice", "a fake", _twice, custom_ops=("Twi*",)),
        DelegateSpec("broken", "a fake", _broken, custom_ops=("Broken",)),
    ]
"""


@pytest.fixture
def twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A model with an operator that an installed delegate is there for."""
    write_distribution(tmp_path, "fake-twice", {"fake_twice": PLUGIN}, {"twice": "fake_twice"})
    use_plugins_of(monkeypatch, tmp_path)
    return graph_model([("Twice", "x", "a"), ("SIN", "a", "y")], inputs="x", outputs="y")


def test_a_model_gets_the_delegate_that_its_custom_operator_calls_for(twice: bytes) -> None:
    interpreter = Interpreter(model_content=twice)
    assert interpreter.placement.delegates == ("twice",)
    np.testing.assert_allclose(run(interpreter), np.sin(2 * X), rtol=1e-6)


def test_it_comes_before_the_delegates_that_are_asked_for(twice: bytes) -> None:
    interpreter = Interpreter(model_content=twice, delegates=[ByName("Twice", "SIN")])
    assert interpreter.placement.delegates == ("twice", "by_name")
    assert [p.delegate for p in interpreter.placement.partitions] == ["twice", "by_name"]


def test_it_is_not_added_when_it_is_asked_for(twice: bytes) -> None:
    interpreter = Interpreter(model_content=twice, delegates=[ByName("SIN"), "twice"])
    assert interpreter.placement.delegates == ("by_name", "twice")


def test_an_empty_list_of_delegates_switches_it_off(twice: bytes) -> None:
    interpreter = Interpreter(model_content=twice, delegates=[])
    assert interpreter.placement.delegates == ()
    advice = r"'twice' is there for it and was not applied: delegates=\['twice'\]"
    with pytest.raises(UnresolvedOpError, match=advice):
        interpreter.allocate_tensors()


@pytest.mark.parametrize(
    "resolver", [OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES]
)
def test_resolvers_without_default_delegates_switch_it_off(
    twice: bytes, resolver: OpResolverType
) -> None:
    interpreter = Interpreter(model_content=twice, experimental_op_resolver_type=resolver)
    assert interpreter.placement.delegates == ()


def test_an_operator_that_has_a_kernel_calls_for_nothing(twice: bytes) -> None:
    ops = {"Twice": Registration("Twice", lambda context, node: lambda: None)}
    assert Interpreter(model_content=twice, custom_ops=ops).placement.delegates == ()


def test_a_delegate_that_is_called_for_and_broken_is_an_error_that_names_it(twice: bytes) -> None:
    model = graph_model([("Broken", "x", "y")], inputs="x", outputs="y")
    with pytest.raises(PluginLoadError, match=r"'broken'.*fake-twice.*no such library"):
        Interpreter(model_content=model)


def test_unresolved_operators_are_listed_with_counts_and_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disable_plugins(monkeypatch, "flex")
    model = graph_model(
        [("FlexErf", "x", "a"), ("Mystery", "a", "b"), ("Mystery", "b", "y")],
        inputs="x",
        outputs="y",
    )
    with pytest.raises(UnresolvedOpError) as caught:
        Interpreter(model_content=model).allocate_tensors()
    text = str(caught.value)
    assert f"FlexErf (1 node): {pip_install('delegraph-flex')}" in text
    assert "Mystery (2 nodes): it needs register_custom_op()" in text
    assert caught.value.node_index == 0


def test_the_reason_of_a_delegate_that_knows_an_operator_is_given(twice: bytes) -> None:
    class Picky(ByName):
        def is_node_supported_by_delegate(self, *asked: object) -> Rejection:
            return Rejection("size", "more than it can do")

    with pytest.raises(UnresolvedOpError, match="'twice' refuses it: more than it can do"):
        Interpreter(model_content=twice, delegates=[Picky(name="twice")]).allocate_tensors()
