"""``delegraph serve``: what it says where it cannot serve."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.command import Refused

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


@pytest.mark.parametrize("missing", [["grpc", "uvicorn"], ["uvicorn"]])
def test_a_missing_package_is_named_with_its_extra(
    refused: Refused, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    err = refused("serve", DIGITS)
    assert err.startswith("error: serving needs ")
    assert all(name in err for name in missing)
    assert err.endswith(": pip install 'delegraph[serve]'\n")


def test_several_files_have_their_own_names(refused: Refused, tmp_path: Path) -> None:
    for words in ([tmp_path], [DIGITS, DIGITS]):
        err = refused("serve", *words, "--name", "digits")
        assert "--name is for one file; several have the names of their files" in err


def test_two_files_of_one_name_are_a_mistake(refused: Refused) -> None:
    pytest.importorskip("uvicorn", reason="tested by make test-scale-serve")
    assert "would both be served as 'digits_int8': rename one" in refused("serve", DIGITS, DIGITS)


def test_a_folder_without_models_is_a_mistake(refused: Refused, tmp_path: Path) -> None:
    err = refused("serve", tmp_path)
    assert "has no models: expected name.tflite or name/1/model.tflite; --model-control" in err
