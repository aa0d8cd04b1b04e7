"""``delegraph serve``: what it says where it cannot serve."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.command import Command

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


@pytest.mark.parametrize("missing", [["grpc", "uvicorn"], ["uvicorn"]])
def test_a_missing_package_is_named_with_its_extra(
    delegraph: Command, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    ran = delegraph("serve", DIGITS)
    assert ran.code == 2
    assert ran.err.startswith("error: serving needs ")
    assert all(name in ran.err for name in missing)
    assert ran.err.endswith(": pip install 'delegraph[serve]'\n")


@pytest.mark.parametrize(
    "words", [["--max-batch-size", 0], ["--max-latency", -1], ["--http-port", 70000]]
)
def test_options_out_of_range(delegraph: Command, words: list[object]) -> None:
    ran = delegraph("serve", DIGITS, *words)
    assert ran.code == 2
    assert f"Invalid value for '{words[0]}'" in ran.err


def test_several_files_have_their_own_names(delegraph: Command, tmp_path: Path) -> None:
    for words in ([tmp_path], [DIGITS, DIGITS]):
        ran = delegraph("serve", *words, "--name", "digits")
        assert ran.code == 2
        assert "--name is for one file; several have the names of their files" in ran.err


def test_a_name_is_one_part_of_a_path(delegraph: Command) -> None:
    ran = delegraph("serve", DIGITS, "--name", "a/b")
    assert ran.code == 2
    assert "--name 'a/b' is part of a URL, expected a name without '/'" in ran.err


def test_two_files_of_one_name_are_a_mistake(delegraph: Command) -> None:
    pytest.importorskip("uvicorn", reason="tested by make test-scale-serve")
    ran = delegraph("serve", DIGITS, DIGITS)
    assert ran.code == 2
    assert "would both be served as 'digits_int8': rename one" in ran.err


def test_a_folder_without_models_is_a_mistake(delegraph: Command, tmp_path: Path) -> None:
    ran = delegraph("serve", tmp_path)
    assert ran.code == 2
    assert "has no models: expected name.tflite or name/1/model.tflite; --model-control" in ran.err
