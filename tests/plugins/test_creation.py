from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from delegraph.errors import ArgumentError, PluginLoadError
from delegraph.plugins import CompilerSpec, CustomOpSpec, DelegateSpec, Plugin
from delegraph.plugins.creation import compiler_version, describe_custom_op, make_delegate


def described(describe: Any) -> dict[str, str]:
    return describe_custom_op(CustomOpSpec("MyOp", "", print, describe), b"ab", "plugin 'mine'")


def test_a_custom_op_is_described_in_texts() -> None:
    assert described(lambda options: {"length": len(options), 3: None}) == {
        "length": "2",
        "3": "None",
    }
    assert described(None) == {}


@pytest.mark.parametrize(
    ("describe", "message"),
    [
        (lambda options: 1 / 0, "could not be described by plugin 'mine': ZeroDivisionError"),
        (lambda options: exit(3), "could not be described by plugin 'mine': SystemExit: 3"),
        (lambda options: ["a"], "describe() of plugin 'mine' returned a list, expected a dict"),
    ],
    ids=["raises", "exits", "no dictionary"],
)
def test_a_description_that_fails_names_operator_and_plugin(describe: Any, message: str) -> None:
    with pytest.raises(PluginLoadError, match=f"custom operator 'MyOp'.*{re.escape(message)}"):
        described(describe)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (lambda: 1, "version() of plugin 'mine' of mine returned a int, expected a text"),
        (lambda: 1 / 0, "version() of plugin 'mine' of mine failed: ZeroDivisionError"),
    ],
    ids=["no text", "raises"],
)
def test_a_compiler_version_that_fails_names_delegate_and_plugin(
    version: Any, message: str
) -> None:
    spec = CompilerSpec("a", print, print, version)
    with pytest.raises(PluginLoadError, match=f"delegate 'a': {re.escape(message)}"):
        compiler_version(spec, Plugin("mine", "mine", "", "mine"))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ArgumentError("damaged")])
def test_an_interrupt_and_damaged_options_pass_as_they_are(error: BaseException) -> None:
    def describe(options: bytes) -> dict[str, str]:
        raise error

    with pytest.raises(type(error)) as caught:
        described(describe)
    assert caught.value is error


@dataclass
class Speed:
    level: int = 1


@pytest.mark.parametrize(
    ("factory", "options", "advice"),
    [
        (lambda options: options, None, "; it is given options if its DelegateSpec has them: opt"),
        (lambda: None, Speed, " given; it is given the options, a Speed"),
    ],
)
def test_options_that_a_delegate_takes_and_its_spec_has_not_are_named(
    factory: Any, options: type | None, advice: str
) -> None:
    spec = DelegateSpec("mine", "", lambda: factory, options)
    with pytest.raises(PluginLoadError, match=advice):
        make_delegate(spec, None, "plugin 'mine'")
