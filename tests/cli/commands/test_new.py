from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.cli.commands.new import ENGINES, TEMPLATES
from delegraph.tools.scaffold import ENGINES as KNOWN_ENGINES
from delegraph.tools.scaffold import KINDS
from support.command import Command, Refused


def test_new_writes_a_project_and_says_what_comes_next(
    delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = delegraph("new", "my-chip", "--operators", "sin, add")
    assert (ran.code, ran.err) == (0, "")
    assert "cd delegraph-my-chip" in ran.lines
    told = "Delegate my_chip is in delegraph-my-chip; Python imports it as delegraph_my_chip."
    assert told in ran.lines
    source = tmp_path / "delegraph-my-chip" / "src" / "delegraph_my_chip" / "delegate.py"
    text = source.read_text(encoding="utf-8")
    assert '    "SIN": np.sin,\n    "ADD": np.add,\n' in text
    assert "class MyChipDelegate(" in text


def test_json_lists_the_files(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    shown = delegraph("new", "sin", "--directory", folder, "--json").json
    assert (shown["delegate"], shown["directory"]) == ("sin", str(folder))
    assert str(folder / "pyproject.toml") in shown["files"]
    assert "provided by plugin 'example'" in shown["warnings"][0]


def test_new_writes_where_it_is_told_and_never_twice(
    delegraph: Command, refused: Refused, tmp_path: Path
) -> None:
    folder = tmp_path / "here"
    assert delegraph("new", "mychip", "--directory", folder).code == 0
    assert (folder / "src" / "delegraph_mychip" / "py.typed").is_file()
    assert "is not empty; nothing was written" in refused("new", "mychip", "--directory", folder)


def test_a_name_in_use_is_a_warning(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    ran = delegraph("new", "sin", "--directory", tmp_path / "sin")
    assert ran.code == 0
    assert "warning: delegate 'sin' is provided by plugin 'example'" in ran.err


def test_a_custom_operator_is_named_as_in_models(delegraph: Command, tmp_path: Path) -> None:
    words = ("new", "my-op", "--template", "custom-op", "--directory", tmp_path / "op")
    assert "Operator MyOp is in" in delegraph(*words).out
    shown = delegraph(*words[:-1], tmp_path / "other", "--json").json
    assert (shown["operator"], shown["template"]) == ("MyOp", "custom-op")
    source = tmp_path / "op" / "src" / "delegraph_my_op" / "operator.py"
    assert '@custom_op("MyOp")' in source.read_text(encoding="utf-8")


def test_the_options_take_every_template_and_engine() -> None:
    assert list(TEMPLATES) == list(KINDS)
    assert list(ENGINES) == list(KNOWN_ENGINES)


def test_an_engine_chooses_its_template(delegraph: Command, tmp_path: Path) -> None:
    words = ("new", "chip", "--engine", "onnxruntime", "--directory", tmp_path / "new", "--json")
    assert delegraph(*words).json["template"] == "engine"
    assert "onnxruntime>=" in (tmp_path / "new" / "pyproject.toml").read_text(encoding="utf-8")
