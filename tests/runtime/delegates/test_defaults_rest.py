"""The delegate that computes what all others leave, though nobody names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delegraph import DelegateFlags, Interpreter, Limits, PlacementPolicy
from delegraph.delegation.configuration import CACHE_VARIABLE, DEFAULT_DELEGATES_VARIABLE
from delegraph.errors import DefaultDelegateWarning, DelegateError, PlacementError
from delegraph.plugins import known_packages
from delegraph.runtime.arguments import OpResolverType
from support.by_name import ByName, sines
from support.chosen_plugins import use_plugins_of
from support.configured import configure
from support.fake_distributions import write_plugin

TAKING = """\
from delegraph import DelegateSpec, hookimpl
from support.by_name import ByName

class Taker(ByName):
    def is_node_supported_by_delegate(self, registration, node, context):
        {claim}
        return node.delegate is None and registration.name in ("ADD", "SIN")

@hookimpl
def delegraph_delegates():
    make = lambda: {made}
    return [DelegateSpec("taker", "takes two operators", lambda: make, default_rank={rank},
                         is_ready={is_ready})]
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what installs the delegate that computes the rest."""

    def write(
        is_ready: str = "lambda: True",
        rank: int | None = 0,
        claim: str = "pass",
        made: str = "Taker('ADD', name='taker')",
    ) -> None:
        code = TAKING.format(is_ready=is_ready, rank=rank, claim=claim, made=made)
        write_plugin(tmp_path / "site", "taker", code)
        use_plugins_of(monkeypatch, tmp_path / "site")

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(DEFAULT_DELEGATES_VARIABLE)
    monkeypatch.setattr(known_packages, "OUR_DISTRIBUTIONS", {"fake-taker", "fake-other"})
    return write


def interpreter(**arguments: Any) -> Interpreter:
    return Interpreter(model_content=sines(), **arguments)


def nodes_of(made: Interpreter) -> dict[str, list[tuple[int, ...]]]:
    found: dict[str, list[tuple[int, ...]]] = {}
    for partition in made.placement.partitions:
        found.setdefault(partition.delegate, []).append(partition.nodes)
    return {name: sorted(nodes) for name, nodes in found.items()}


def test_it_takes_what_others_leave(install: Install) -> None:
    install()
    assert nodes_of(interpreter()) == {"taker": [(0, 1), (3, 4)]}
    made = interpreter(delegates=[ByName("SIN")])
    assert nodes_of(made) == {"by_name": [(0,), (3,)], "taker": [(1, 4)]}
    assert made.placement.delegates == ("by_name", "taker")
    assert made.placement.notes == {"taker": "by default"}
    assert made.placement.default_delegate == "taker"
    by_default = [node.index for node in made.placement.nodes if node.is_by_default]
    assert by_default == [1, 4]
    assert [p.is_by_default for p in made.placement.partitions] == [False, False, True]
    assert str(made.placement) == (
        "5 nodes: by_name takes 2 in 2 partitions; the rest: 2 on taker (by default), "
        "1 on Delegraph's kernels"
    )


def test_without_delegates_of_the_official_argument_it_applies(install: Install) -> None:
    install()
    assert interpreter(experimental_delegates=[]).placement.delegates == ("taker",)


@pytest.mark.parametrize(
    "arguments",
    [
        {"delegates": []},
        {"experimental_op_resolver_type": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES},
        {"experimental_op_resolver_type": OpResolverType.BUILTIN_REF},
        {"numerics": "reference"},
    ],
    ids=str,
)
def test_ways_to_leave_it_out(install: Install, arguments: dict[str, Any]) -> None:
    install()
    assert interpreter(**arguments).placement.delegates == ()


def test_where_all_tensors_are_kept_it_stays_out(install: Install) -> None:
    install()
    with pytest.warns(UserWarning, match="preserve"):
        made = interpreter(experimental_preserve_all_tensors=True)
    assert made.placement.delegates == ()


def test_the_environment_and_the_configuration_leave_it_out(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    configure(monkeypatch, tmp_path, "delegates = []")
    assert interpreter(delegates=[ByName("SIN")]).placement.delegates == ("by_name",)
    configure(monkeypatch, tmp_path, "")
    assert interpreter().placement.delegates == ("taker",)
    monkeypatch.setenv(DEFAULT_DELEGATES_VARIABLE, "")
    assert interpreter().placement.delegates == ()


def test_a_kernels_own_interpreter_does_without(install: Install) -> None:
    install()
    outer = interpreter()
    inner = interpreter(limits=Limits(cancellation=outer.session.cancellation))
    assert inner.placement.delegates == ()


def test_what_must_be_full_is_so_without_it(install: Install) -> None:
    install()
    made = interpreter(delegates=[ByName("SIN")], placement=PlacementPolicy(require=None))
    made.allocate_tensors()
    with pytest.raises(PlacementError, match="3 nodes stay behind"):
        interpreter(delegates=[ByName("SIN")], placement=PlacementPolicy(require="full"))


def test_one_that_would_have_to_compile_is_left_out_with_one_warning(
    install: Install, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("delegraph.runtime.delegates.defaults.told", set())
    install(is_ready="lambda: False")
    assert interpreter(delegates=["taker"]).placement.delegates == ("taker",)
    assert "slow kernels" not in caplog.text
    assert interpreter().placement.delegates == interpreter().placement.delegates == ()
    assert caplog.text.count("taker is installed, but not ready to run") == 1
    assert interpreter(delegates=["taker"]).placement.delegates == ("taker",)


def test_one_that_fails_to_say_whether_it_is_ready_is_left_out(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(is_ready="lambda: 1 // 0")
    assert interpreter().placement.delegates == ()
    assert "delegate 'taker': is_ready() failed: ZeroDivisionError" in caplog.text


def test_one_that_is_asked_for_is_not_applied_twice(install: Install) -> None:
    install()
    placement = interpreter(delegates=["taker"]).placement
    assert placement.delegates == ("taker",)
    assert placement.notes == {}


def test_the_rank_of_a_third_partys_delegate_does_not_count(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    monkeypatch.setattr(known_packages, "OUR_DISTRIBUTIONS", {"another-package"})
    assert interpreter().placement.delegates == ()


def test_one_without_a_default_rank_waits_to_be_asked(install: Install) -> None:
    install(rank=None)
    assert interpreter().placement.delegates == ()


@pytest.mark.parametrize(
    ("rank", "is_ready", "applied"),
    [(1, "lambda: True", "taker"), (-1, "lambda: True", "other"), (-1, "lambda: False", "taker")],
)
def test_of_two_the_lowest_rank_that_is_ready_is_applied(
    install: Install, tmp_path: Path, rank: int, is_ready: str, applied: str
) -> None:
    made = "Taker('ADD', name='other')"
    code = TAKING.format(is_ready=is_ready, rank=rank, claim="pass", made=made)
    write_plugin(tmp_path / "site", "other", code.replace('"taker"', '"other"'))
    install()
    assert interpreter().placement.delegates == (applied,)


def test_where_it_fails_the_model_runs_all_the_same(install: Install) -> None:
    install(claim="raise RuntimeError('broken')")
    with pytest.warns(DefaultDelegateWarning, match="'taker', which is applied by default"):
        made = interpreter()
    made.allocate_tensors()
    made.invoke()
    assert made.placement.delegates == ()
    [incident] = made.incidents
    assert (incident.delegate, incident.phase) == ("taker", "claim")
    assert "broken" in incident.error


def test_one_that_cannot_be_made_is_an_incident(install: Install) -> None:
    install(made="1 // 0")
    with pytest.warns(DefaultDelegateWarning, match="phase initialize: .*ZeroDivisionError"):
        made = interpreter()
    made.allocate_tensors()
    made.invoke()
    assert [incident.phase for incident in made.incidents] == ["initialize"]
    assert str(made.placement).endswith("; taker failed in initialize")


def test_a_delegate_that_is_applied_later_comes_before_it(install: Install) -> None:
    install()
    made = interpreter()
    made.allocate_tensors()
    made.modify_graph_with_delegate(ByName("SIN"))
    assert nodes_of(made) == {"by_name": [(0,), (3,)], "taker": [(1, 4)]}
    assert made.placement.delegates == ("by_name", "taker")
    made.invoke()


def test_a_later_one_that_fails_leaves_all_as_it_was(install: Install) -> None:
    install()
    made = interpreter()

    class Broken(ByName):
        def is_node_supported_by_delegate(self, *about: Any) -> bool:
            raise RuntimeError("broken")

    with pytest.raises(DelegateError, match="broken"):
        made.modify_graph_with_delegate(Broken("SIN"))
    assert nodes_of(made) == {"taker": [(0, 1), (3, 4)]}


def test_it_can_be_taken_off(install: Install) -> None:
    install()
    made = interpreter()
    made.remove_delegate("taker")
    assert made.placement.delegates == ()
    made.modify_graph_with_delegate(ByName("SIN", flags=DelegateFlags.NONE))
    assert made.placement.delegates == ("by_name",)
