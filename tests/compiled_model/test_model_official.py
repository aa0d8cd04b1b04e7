"""Every class and function has the official arguments, in the official order."""

from __future__ import annotations

import dataclasses
import inspect
from importlib import import_module
from inspect import Parameter
from operator import attrgetter
from typing import Any

import pytest

OFFICIAL = import_module("ai_edge_litert.compiled_model")
OURS = import_module("delegraph.compiled_model")

NAMES = (
    "CompiledModel",
    "CpuKernelMode",
    "CpuOptions",
    "Environment",
    "EnvironmentOptions",
    "GpuOptions",
    "HardwareAccelerator",
    "IntelOpenVinoOptions",
    "Options",
    "QualcommOptions",
    "TensorBuffer",
)

CLASSES = [name for name in NAMES if name not in ("CpuKernelMode", "HardwareAccelerator")]

MEMBERS = [
    f"{name}.{member}"
    for name in CLASSES
    for member in dir(getattr(OFFICIAL, name))
    if not member.startswith("_") or member in ("__init__", "__enter__", "__exit__")
]


def shape(function: Any) -> list[tuple[str, Any, str]]:
    """Name, kind and default of each parameter, apart from additions by keyword."""
    found = inspect.signature(function).parameters.values()
    return [
        (p.name, p.kind, "=" if p.default is Parameter.empty else repr(p.default))
        for p in found
        if p.kind is not Parameter.VAR_KEYWORD
    ]


def test_the_official_names_are_there() -> None:
    assert sorted(OURS.__all__) == sorted(NAMES)
    assert all(hasattr(OFFICIAL, name) for name in NAMES)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_has_the_official_signature(name: str) -> None:
    official, own = (attrgetter(name)(module) for module in (OFFICIAL, OURS))
    if callable(official) and not isinstance(official, type):
        assert shape(own) == shape(official)
    else:
        assert type(own).__name__ == type(official).__name__


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_called_with_the_official_arguments(name: str) -> None:
    assert shape(getattr(OURS, name)) == shape(getattr(OFFICIAL, name))


@pytest.mark.parametrize("name", [n for n in CLASSES if dataclasses.is_dataclass(getattr(OURS, n))])
def test_options_have_the_official_fields(name: str) -> None:
    official, own = (dataclasses.fields(getattr(module, name)) for module in (OFFICIAL, OURS))
    assert [f.name for f in own] == [f.name for f in official]
    assert repr(getattr(OURS, name)()) == repr(getattr(OFFICIAL, name)())


@pytest.mark.parametrize("name", ["CpuKernelMode", "HardwareAccelerator"])
def test_enumerations_have_the_official_members(name: str) -> None:
    official, own = (getattr(module, name) for module in (OFFICIAL, OURS))
    assert [(m, int(v)) for m, v in own.__members__.items()] == [
        (m, int(v)) for m, v in official.__members__.items()
    ]
    assert own.__mro__[1] is official.__mro__[1]


@pytest.mark.parametrize("name", ["QualcommOptions", "IntelOpenVinoOptions"])
def test_choices_of_vendors_are_the_official_ones(name: str) -> None:
    choices = [n for n in vars(getattr(OFFICIAL, name)) if n.isupper()]
    for choice in choices:
        official, own = (getattr(getattr(module, name), choice) for module in (OFFICIAL, OURS))
        assert {m: int(v) for m, v in own.__members__.items()} == {
            m: int(v) for m, v in official.__members__.items()
        }
    assert choices
