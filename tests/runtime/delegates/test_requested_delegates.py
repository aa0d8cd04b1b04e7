"""From what users write to delegates in the order in which they apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delegraph import Interpreter, delegate_from_file, load_delegate
from delegraph.errors import (
    ArgumentAttributeError,
    ArgumentError,
    ArgumentTypeError,
    DelegateLibraryError,
    PluginOptionError,
    UnknownDelegateError,
)
from delegraph.plugins import PluginSet, plugin_set
from delegraph.runtime.delegates.requested_delegates import as_delegates
from support.by_name import ByName
from support.fake_distributions import write_plugin

RANKED = """\
import dataclasses
from delegraph import DelegateSpec, SimpleDelegateInterface, hookimpl

@dataclasses.dataclass
class Options:
    level: int = 1
    def __post_init__(self):
        if not 1 <= self.level <= 9:
            raise ValueError(f"level is {{self.level}}, expected 1 to 9")

class Fake(SimpleDelegateInterface):
    def __init__(self, options): self.options = options
    def name(self): return f"{name}{{self.options.level}}"
    def is_node_supported_by_delegate(self, registration, node, context): return False
    def create_delegate_kernel_interface(self): raise AssertionError("takes no node")

@hookimpl
def delegraph_delegates():
    return [DelegateSpec("{name}", "a fake", lambda: Fake, Options, rank={rank})]
"""


@pytest.fixture(autouse=True)
def _plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delegates a, b and c, the last of the lowest rank, are all that is installed."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, rank in (("b", 0), ("a", 0), ("c", -5), ("d", 7)):
        write_plugin(tmp_path, name, RANKED.format(name=name, rank=rank))
    allowed = [f"fake-{name}:{name}" for name in "abcd"]
    monkeypatch.setattr(plugin_set, "found_plugins", PluginSet(allow=allowed))


def names(delegates: Any) -> list[str]:
    return [delegate.name() for delegate in as_delegates(delegates)]


def test_a_list_keeps_its_order() -> None:
    assert names(["d:level=2", "a", "c", "b"]) == ["d2", "a1", "c1", "b1"]
    assert names(("b", "a")) == ["b1", "a1"]
    assert names(iter(["b", "a"])) == ["b1", "a1"]


def test_a_set_is_ordered_by_rank_and_name() -> None:
    assert names({"d", "b:level=3", "fake-a:a", "c"}) == ["c1", "a1", "b3", "d1"]
    assert names(frozenset({"b", "a"})) == ["a1", "b1"]


def test_a_mapping_gives_options_and_is_ordered_by_rank() -> None:
    given = {"d": {"level": "4"}, "b": {}, "a": None, "c": "level=2"}
    assert names(given) == ["c2", "a1", "b1", "d4"]


def test_delegates_themselves_have_rank_0() -> None:
    assert names({ByName("SIN"), "d", "c"}) == ["c1", "by_name", "d1"]


def test_all_offers_come_by_rank() -> None:
    assert [offer.spec.name for offer in plugin_set.installed().by_rank()] == ["c", "a", "b", "d"]


def test_the_interpreter_applies_by_rank(tmp_path: Path) -> None:
    from delegraph.testing import one_op_model, tensor

    model = one_op_model("SIN", [tensor((2,))], [tensor((2,))])
    interpreter = Interpreter(model_content=model, delegates={"d": None, "c": {"level": 3}})
    assert list(interpreter.placement.nodes[0].rejections) == ["c3", "d1"]


@pytest.mark.parametrize("one", ["a", ByName("SIN")])
def test_a_single_delegate_is_no_list(one: Any) -> None:
    with pytest.raises(ArgumentError, match="delegates is a list; write delegates="):
        as_delegates(one)


@pytest.mark.parametrize("item", [7, None, b"a"])
def test_what_is_no_delegate_is_refused(item: Any) -> None:
    for delegates in ([item], {item}):
        with pytest.raises(ArgumentAttributeError, match="a delegate is a name, a SimpleDelegate"):
            as_delegates(delegates)


@pytest.mark.parametrize(
    ("item", "hint"),
    [(PluginSet, r"write PluginSet\(\)"), (("sin", {}), "options behind the name")],
)
def test_a_class_or_a_pair_is_refused_with_a_hint(item: Any, hint: str) -> None:
    with pytest.raises(ArgumentAttributeError, match=hint):
        as_delegates([item])


@pytest.mark.parametrize("name", [7, None])
def test_the_name_of_a_delegate_is_text_or_a_path(name: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="the name of a delegate is text or a path, not"):
        load_delegate(name)


@pytest.mark.parametrize("path", [Path("a"), b"a"])
def test_a_path_is_a_library_whatever_its_name(path: Any) -> None:
    with pytest.raises(DelegateLibraryError, match="Failed to load delegate from a\n"):
        load_delegate(path)


def test_options_are_a_mapping() -> None:
    with pytest.raises(ArgumentTypeError, match="options of a delegate are a dictionary, not 5"):
        load_delegate("a", 5)  # type: ignore[arg-type]  # that is the point


def test_options_as_load_delegate_gives_them_are_converted_and_checked() -> None:
    assert load_delegate("a", {"level": "3"}).name() == "a3"
    for options, message in (
        ({"level": "x"}, "option 'level' of delegate 'a' is 'x', expected int"),
        ({"level": 2.0}, r"option 'level' of delegate 'a' is 2\.0, expected int"),
        ({"level": "10"}, "level is 10, expected 1 to 9"),
        ({"speed": "3"}, "no option 'speed'"),
        ({3: "x", "speed": "3"}, "no option 3"),
    ):
        with pytest.raises(PluginOptionError, match=message):
            load_delegate("a", options)  # type: ignore[arg-type]  # keys that are no text
    with pytest.raises(PluginOptionError, match="option 'level' of delegate 'a' is given twice"):
        as_delegates(["a:level=1,level=2"])
    with pytest.raises(PluginOptionError, match="are given twice"):
        as_delegates({"a:level=1": {"level": 2}})


def test_every_delegate_is_made_before_any_is_applied() -> None:
    with pytest.raises(UnknownDelegateError, match="'nope'"):
        as_delegates({"nope", "a"})


def test_a_python_file_is_named_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(RANKED.format(name="e", rank=0))
    assert names([str(file), f"{file}:level=2"]) == ["e1", "e2"]
    assert load_delegate(file, {"level": 3}).name() == "e3"
    with pytest.raises(PluginOptionError, match="are given twice"):
        load_delegate(f"{file}:level=2", {"level": 3})
    with pytest.raises(ArgumentError, match=r"no delegate file 'nowhere\.py'"):
        as_delegates(["nowhere.py"])


def test_the_old_name_for_python_files_works_and_warns(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text(RANKED.format(name="e", rank=0))
    with pytest.warns(DeprecationWarning, match=r"goes in 0\.3; use delegraph\.load_delegate"):
        assert delegate_from_file(file, "level=2").name() == "e2"
