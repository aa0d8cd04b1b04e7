"""Words that change a set-up, as ``--against`` takes them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from delegraph.cli.options.setup import changed_setup
from delegraph.errors import UnknownDelegateError
from delegraph.tools import Setup


@pytest.fixture
def setup(sines: Path) -> Setup:
    return Setup(str(sines), delegates=("sin",), delegate_files=("a.py",), threads=2)


def test_what_is_not_named_stays(setup: Setup) -> None:
    changed = changed_setup(setup, "--threads 1", "--against")
    assert (changed.threads, changed.delegates, changed.delegate_files) == (1, ("sin",), ("a.py",))
    assert changed_setup(setup, "", "--against") == setup


def test_delegates_replace_all_others(setup: Setup) -> None:
    changed = changed_setup(setup, "-d add_sub -d 'sin'", "--against")
    assert (changed.delegates, changed.delegate_files) == (("add_sub", "sin"), ())
    assert changed_setup(setup, "-d none", "--against").requested_delegates() == []


def test_another_model_and_runtime(setup: Setup, tmp_path: Path) -> None:
    other = tmp_path / "other model.tflite"
    other.touch()
    changed = changed_setup(setup, f"'{other}' --runtime litert", "--against")
    assert (changed.model, changed.runtime) == (str(other), "litert")


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (
            "--runtime litert",
            "note: --beside inherits -d sin --delegate-file a.py; "
            "add -d default for LiteRT's own delegates\n",
        ),
        ("--runtime litert -d default", ""),
        ("--threads 1", ""),
    ],
)
def test_delegates_of_the_command_in_another_runtime_are_noted(
    setup: Setup, words: str, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    changed_setup(setup, words, "--beside")
    assert capsys.readouterr().err == note


def test_a_delegate_that_is_not_installed_is_refused_at_once(setup: Setup) -> None:
    with pytest.raises(UnknownDelegateError, match=r"'sinn' \(did you mean 'sin'\?\)"):
        changed_setup(setup, "-d sinn", "--against")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--thread 1", "--against '--thread 1': No such option"),
        ("nowhere.tflite", "--against 'nowhere.tflite': .* does not exist"),
        ("-d 'sin", "--against .*: No closing quotation"),
        ("--runtime litert --partition-policy measured", "--partition-policy needs --runtime"),
    ],
)
def test_a_mistake_names_the_option_and_the_words(setup: Setup, words: str, message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        changed_setup(setup, words, "--against")
