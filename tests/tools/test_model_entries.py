"""``compile_model`` for a delegate that keeps what it decides in the model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.delegation.compiled_partition import CUSTOM_OP
from delegraph.errors import ArgumentError, PluginError, PluginOptionError
from delegraph.graph.associated_files import AssociatedFiles
from delegraph.graph.loader import parse_model
from delegraph.graph.model_entries import with_entries
from delegraph.tools import compile_model
from delegraph.tools.kept_entries import NAMESPACE, listed_entries
from support.by_name import run, sines
from support.chosen_plugins import use_plugins_of
from support.compiling_plugin import install_compiler
from support.described_models import with_metadata
from support.fake_distributions import write_plugin
from support.keeping_plugin import install_keeping


@pytest.fixture(autouse=True)
def keeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_keeping(tmp_path, monkeypatch)


def decided() -> list[str]:
    """What the delegate has decided anew since the last call."""
    module: Any = sys.modules["fake_keeping"]
    found = list(module.decided)
    module.decided.clear()
    return found


def entries(content: bytes) -> list[str]:
    found = parse_model(content).entries
    return [] if found is None else sorted(n for n in found.places if not n.startswith(NAMESPACE))


def test_the_model_stays_and_what_was_kept_is_used() -> None:
    compiled = compile_model(sines(), ["keeping"], cpu=["one", "two"])
    assert compiled.content.startswith(sines())
    assert compiled.partitions == ()
    assert decided() == ["one", "one", "two", "two"]
    assert [(k.delegate, k.entries, k.size) for k in compiled.kept] == [
        ("keeping:cpu=one", 2, 6),
        ("keeping:cpu=two", 2, 6),
    ]
    for level, new in (("one", []), ("two", []), ("three", ["three"] * 2)):
        interpreter = Interpreter(
            model_content=compiled.content, delegates={"keeping": {"cpu": level}}
        )
        plain = Interpreter(model_content=sines(), delegates=[])
        np.testing.assert_allclose(run(interpreter), run(plain), rtol=1e-6)
        assert decided() == new


def test_compiling_again_keeps_other_entries_but_not_other_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = compile_model(sines(), ["keeping:cpu=one"]).content
    both = compile_model(one, ["keeping:cpu=two"]).content
    assert len(entries(both)) == 4
    assert compile_model(both, ["keeping:cpu=one"]).content == both
    monkeypatch.setattr(sys.modules["fake_keeping"], "VERSION", "2")
    newer = compile_model(both, ["keeping:cpu=one"]).content
    assert [name.split("/")[1] for name in entries(newer)] == ["2", "2"]


def listed(content: bytes) -> list[tuple[str, int | None]]:
    return [(row.delegate, row.threads) for row in listed_entries(parse_model(content))]


def test_the_file_lists_levels_and_threads_of_what_it_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = compile_model(sines(), ["keeping"], cpu=["one"], threads=[1, 4]).content
    rows = [("keeping:cpu=one", 1), ("keeping:cpu=one", 4)]
    assert listed(one) == rows
    both = compile_model(one, ["keeping:cpu=two"]).content
    assert listed(both) == [*rows, ("keeping:cpu=two", None)]
    monkeypatch.setattr(sys.modules["fake_keeping"], "VERSION", "2")
    assert listed(compile_model(both, ["keeping:cpu=two"]).content) == [("keeping:cpu=two", None)]


@pytest.mark.parametrize("content", [b"no JSON", b'{"delegate": "x"}', b'[{"delegate": 1}]'])
def test_a_damaged_list_counts_as_none(content: bytes) -> None:
    file = with_entries(sines(), {"delegraph/1/list-0": content})
    assert listed(file) == []


def test_labels_stay_with_either_form_of_zip() -> None:
    model = with_metadata(sines(), files={"labels.txt": b"one\n"})
    compiled = compile_model(model, ["keeping"]).content
    again = compile_model(compiled, ["keeping"]).content
    assert again == compiled
    assert len(entries(compiled)) == 2
    assert AssociatedFiles(np.frombuffer(compiled, np.uint8)).read("labels.txt") == b"one\n"
    Interpreter(model_content=compiled, delegates=["keeping"])
    decided()
    Interpreter(model_content=compiled, delegates=["keeping"])
    assert decided() == []


def test_partitions_of_an_engine_come_before_what_others_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_compiler(tmp_path, monkeypatch, left=("SIN",))
    compiled = compile_model(sines(), ["keeping", "engine"])
    assert [partition.delegate for partition in compiled.partitions] == ["engine"] * 2
    (kept,) = compiled.kept
    assert kept.entries == 2
    names = [o.name for o in parse_model(compiled.content).subgraphs[0].operators]
    assert names == ["SIN", CUSTOM_OP, "SIN", CUSTOM_OP]
    decided()
    Interpreter(model_content=compiled.content, delegates=["keeping"])
    assert decided() == []


def test_unused_arguments_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_compiler(tmp_path, monkeypatch)
    write_plugin(tmp_path, "plain")
    use_plugins_of(monkeypatch, tmp_path)
    with pytest.raises(ArgumentError, match="store programs"):
        compile_model(sines(), ["engine"], cpu=["one"])
    with pytest.raises(PluginError, match=r"'plain' cannot be compiled.*file: .*fake-keeping:kee"):
        compile_model(sines(), ["plain"])
    with pytest.raises(PluginOptionError):
        compile_model(sines(), ["keeping:other=1"])
