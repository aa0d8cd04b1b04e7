from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator

from delegraph.errors import PluginOptionError
from delegraph.plugins import DelegateSpec, PluginSet, installed, make_options
from delegraph.plugins.options_schema import options_schema


class Level(enum.Enum):
    LOW = "l"
    HIGH = "h"


@dataclass(frozen=True)
class Options:
    path: str
    threads: int = field(default=2, metadata={"help": "how many", "minimum": 1, "maximum": 8})
    ratio: float = field(default=0.5, metadata={"minimum": 0})
    bus: Literal["usb", "pci", 3] = "usb"
    level: Level = Level.LOW
    ops: tuple[str, ...] = ("ADD",)
    sizes: tuple[int, ...] = field(default_factory=lambda: (1, 2), metadata={"minimum": 1})
    limit: int | None = field(default=None, metadata={"minimum": 3})
    patience: float = float("inf")
    unknown: Sequence[int] = ()


SPEC = DelegateSpec("fake", "a fake", print, Options)


def test_each_kind_of_field_has_its_schema() -> None:
    schema = options_schema(SPEC)
    assert schema["properties"] == {
        "path": {"type": "string"},
        "threads": {
            "type": "integer",
            "minimum": 1,
            "maximum": 8,
            "description": "how many",
            "default": 2,
        },
        "ratio": {"type": "number", "minimum": 0, "default": 0.5},
        "bus": {"enum": ["usb", "pci", 3], "default": "usb"},
        "level": {"enum": ["LOW", "HIGH"], "default": "LOW"},
        "ops": {"type": "array", "items": {"type": "string"}, "default": ["ADD"]},
        "sizes": {"type": "array", "items": {"type": "integer", "minimum": 1}, "default": [1, 2]},
        "limit": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}], "default": None},
        "patience": {"type": "number"},  # JSON has no infinity
        "unknown": {"default": []},
    }
    assert schema["required"] == ["path"]
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    "given",
    [
        {"path": "x"},
        {"path": "x", "threads": 8, "bus": 3, "level": "HIGH", "ops": [], "limit": 3},
        {"path": "x", "limit": None, "ratio": 0, "sizes": [4]},
        {"threads": 1},
        {"path": "x", "threads": 0},
        {"path": "x", "threads": 9},
        {"path": "x", "threads": 1.5},
        {"path": "x", "threads": True},
        {"path": "x", "ratio": -1},
        {"path": "x", "bus": "isa"},
        {"path": "x", "level": "l"},
        {"path": "x", "sizes": [0]},
        {"path": "x", "limit": 2},
        {"path": "x", "speed": 1},
    ],
)
def test_the_schema_takes_what_the_delegate_takes(given: dict[str, Any]) -> None:
    is_valid = Draft202012Validator(options_schema(SPEC)).is_valid(given)
    try:
        make_options(SPEC, given)
    except PluginOptionError:
        assert not is_valid
    else:
        assert is_valid


def test_installed_delegates_have_valid_schemas_that_their_defaults_fit() -> None:
    plugins = json.loads(json.dumps(installed().to_json(), allow_nan=False))["plugins"]
    schemas = [delegate["options_schema"] for p in plugins for delegate in p["delegates"]]
    assert schemas
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
        defaults = {name: p["default"] for name, p in schema["properties"].items()}
        Draft202012Validator(schema).validate(defaults)
        make_options(installed().find(schema["title"]).spec, defaults)


def test_an_annotation_that_cannot_be_evaluated_is_told_in_place_of_the_schema() -> None:
    @dataclass
    class Odd:
        x: NoSuchType = None  # type: ignore[name-defined]  # noqa: F821 - the point of the test

    from delegraph.plugins import Plugin

    plugin = Plugin("odd", "fake-odd", "1", "odd", delegates=(DelegateSpec("odd", "", print, Odd),))
    (shown,) = PluginSet(plugins=(plugin,)).to_json()["plugins"][0]["delegates"]
    assert "cannot be evaluated" in shown["error"]
