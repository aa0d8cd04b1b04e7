"""Which names are those of compiled libraries, and how their delegates come from above."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from delegraph import Delegate, load_delegate
from delegraph.delegation.driver import SimpleDelegate
from delegraph.errors import PluginOptionError, UnknownDelegateError
from delegraph.runtime.delegates import compiled_delegates
from delegraph.runtime.delegates.compiled_delegates import is_library
from delegraph.runtime.delegates.requested_delegates import as_delegates
from support.by_name import ByName

Loaded = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaded]:
    """What a loader of this test's own was asked for."""
    found: Loaded = []

    def load(library: str, options: Mapping[str, Any]) -> Delegate:
        found.append((library, dict(options)))
        return SimpleDelegate(ByName(name=library))

    loader = types.ModuleType("a_loader")
    vars(loader)["ExternalDelegate"] = load
    monkeypatch.setitem(sys.modules, loader.__name__, loader)
    monkeypatch.setattr(compiled_delegates, "LOADER", loader.__name__)
    return found


@pytest.mark.parametrize(
    "name", ["libx.so", "libx.so.1", "libx.so.1.2", "libx.dylib", "x.dll", "./x", "/opt/x", "a\\b"]
)
def test_paths_and_endings_make_a_library(name: str) -> None:
    assert is_library(name)


@pytest.mark.parametrize(
    "name", ["sin", "numba_cpu", "dist:sin", "so", "x.so.y", "sonar", "./m.tflite"]
)
def test_other_names_are_those_of_installed_delegates(name: str) -> None:
    assert not is_library(name)


@pytest.mark.parametrize(
    ("text", "library", "options"),
    [
        ("./libx.so", "./libx.so", {}),
        ("./libx.so:a=1,b=2", "./libx.so", {"a": "1", "b": "2"}),
        ("libx.so.1:cache=/tmp/c.so", "libx.so.1", {"cache": "/tmp/c.so"}),
        ("/a=b/libx.so", "/a=b/libx.so", {}),
    ],
)
def test_text_is_read_as_for_installed_delegates(
    loaded: Loaded, text: str, library: str, options: dict[str, str]
) -> None:
    as_delegates([text])
    load_delegate(text)
    assert loaded == [(library, options)] * 2


def test_a_file_is_taken_as_it_is_called(loaded: Loaded, tmp_path: Path) -> None:
    path = tmp_path / "x:a=1.so"
    path.touch()
    load_delegate(str(path), {"b": 2})
    assert loaded == [(str(path), {"b": 2})]


def test_options_are_not_given_twice(loaded: Loaded) -> None:
    with pytest.raises(PluginOptionError, match="given twice"):
        load_delegate("./libx.so:a=1", {"b": 2})
    assert loaded == []


def test_a_path_among_the_options_makes_no_library(loaded: Loaded) -> None:
    with pytest.raises(UnknownDelegateError):
        load_delegate("nobody:cache=/tmp/c.so")
    assert loaded == []


def test_without_an_order_libraries_have_rank_0_and_go_by_name(loaded: Loaded) -> None:
    found = as_delegates({"./libb.so": {"x": 1}, "./liba.so": None})
    assert [delegate.name() for delegate in found] == ["./liba.so", "./libb.so"]
    assert loaded == [("./liba.so", {}), ("./libb.so", {"x": 1})]
    assert [d.name() for d in as_delegates({"./libb.so", "./liba.so"})] == [
        "./liba.so",
        "./libb.so",
    ]
