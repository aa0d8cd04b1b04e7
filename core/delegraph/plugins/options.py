"""A delegate's options: a documented dataclass, filled from text, a mapping or an instance.

As text, options are ``key=value,key=value``. A part without ``=`` belongs to the value before it,
so ``ops=ADD,SUB,threads=2`` gives two options. Booleans are ``true``/``false`` (``yes``, ``no``,
``on``, ``off``, ``1``, ``0``), and integers may be hexadecimal. Enums are given by member name.
Where None is allowed, ``none`` means None. :mod:`delegraph.plugins.address` splits off the
delegate's name before the options (``name:key=value``).

In a field's metadata, ``help`` documents the option, and ``minimum`` and ``maximum`` limit a
number, or each number of a tuple; both limits are inclusive.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from enum import Enum
from typing import Any, Literal, Union

from delegraph.errors import PluginOptionError, did_you_mean
from delegraph.lazy_dataclass import dataclass
from delegraph.plugins.specs import DelegateSpec

Kind = Any  # an annotation: a type, Literal[...], tuple[T, ...] or a union
Given = Mapping[str, Any] | str | object | None

BOUNDS = ("minimum", "maximum")
"""Metadata keys of a field that limit its value, named as in JSON Schema."""

_BOOLS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


@dataclass(frozen=True, slots=True)
class Option:
    """Description of one option of a delegate, for documentation.

    Attributes:
        name: key of the option.
        type: text that describes the allowed values.
        default: default value as text; None if the option is required.
        help: effect of the option; may be empty.
    """

    name: str
    type: str
    default: str | None
    help: str

    def __str__(self) -> str:
        default = "required" if self.default is None else f"default {self.default}"
        return f"{self.name} ({self.type}, {default})"


def describe_options(spec: DelegateSpec) -> tuple[Option, ...]:
    """Return the options of the delegate *spec*, in the order of its dataclass fields.

    Raises:
        PluginOptionError: an annotation cannot be evaluated.
    """
    kinds = option_kinds(spec)
    return tuple(
        Option(
            field.name, _values_text(field, kinds[field.name]), _default_text(field), _help(field)
        )
        for field in option_fields(spec)
    )


def make_options(spec: DelegateSpec, given: Given) -> object:
    """Return a delegate's options object with the user's values; None if it has no options.

    Args:
        spec: the delegate.
        given: text, a mapping (string values are read like text), an instance of the delegate's
            dataclass, or None for the defaults.

    Raises:
        PluginOptionError: an option does not exist, a required option is missing, or a value has
            the wrong type or is out of range. The dataclass may raise this error as well.
    """
    if spec.options is None:
        if given:
            raise PluginOptionError(f"delegate {spec.name!r} has no options, {given!r} was given")
        return None
    options = given if isinstance(given, spec.options) else _made(spec, spec.options, given)
    _require_in_range(spec, options)
    return options


def _made(spec: DelegateSpec, kind: type, given: Given) -> object:
    if isinstance(given, str):
        given = split_text(spec.name, given)
    elif given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise PluginOptionError(
            f"options of delegate {spec.name!r} are {given!r}, expected text, a mapping or "
            f"{kind.__name__}"
        )
    return _build(spec, kind, given)


def options_text(spec: DelegateSpec, options: object) -> str:
    """Return *options* as text ``key=value,key=value``, without options at their default."""
    values = {field: getattr(options, field.name) for field in option_fields(spec)}
    return ",".join(
        f"{field.name}={_text(value) if value not in ('', (), []) else ''}"
        for field, value in values.items()
        if _text(value) != _default_text(field)
    )


def split_text(delegate: str, text: str) -> dict[str, str]:
    """Convert text ``key=value,key=value`` to a dictionary.

    *delegate* is the delegate's name, for the error.

    >>> split_text("d", "ops=ADD,SUB,threads=2")
    {'ops': 'ADD,SUB', 'threads': '2'}

    Raises:
        PluginOptionError: there is text before the first key, or a key is given twice.
    """
    values: dict[str, str] = {}
    key = ""
    for part in text.split(",") if text else []:
        before, equals, value = part.partition("=")
        if equals:
            key = before.strip()
            if key in values:
                raise PluginOptionError(f"option {key!r} of delegate {delegate!r} is given twice")
            values[key] = value
        elif key:
            values[key] += f",{part}"
        else:
            raise PluginOptionError(
                f"options of delegate {delegate!r} are {text!r}, expected 'key=value,key=value'"
            )
    return values


def _build(spec: DelegateSpec, kind: type, given: Mapping[str, Any]) -> object:
    kinds = option_kinds(spec)
    unknown = sorted(given.keys() - kinds.keys(), key=str)
    if unknown:
        raise unknown_option(spec, unknown[0])
    values = {name: _value(spec, name, kinds[name], value) for name, value in given.items()}
    missing = [o for o in describe_options(spec) if o.default is None and o.name not in values]
    if missing:
        raise PluginOptionError(f"delegate {spec.name!r} needs option {missing[0]}")
    try:
        return kind(**values)
    except PluginOptionError:
        raise
    except (ValueError, TypeError) as error:
        raise PluginOptionError(f"options of delegate {spec.name!r}: {error}") from error


def _require_in_range(spec: DelegateSpec, options: object) -> None:
    for field in option_fields(spec):
        value = getattr(options, field.name)
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(_is_in_range(number, field) for number in numbers):
            expected = _values_text(field, option_kinds(spec)[field.name])
            raise PluginOptionError(
                f"option {field.name!r} of delegate {spec.name!r} is {value!r}, expected {expected}"
            )


def _is_in_range(number: object, field: dataclasses.Field[Any]) -> bool:
    if not isinstance(number, int | float):
        return True
    low, high = (field.metadata.get(bound) for bound in BOUNDS)
    return (low is None or number >= low) and (high is None or number <= high)


def unknown_option(spec: DelegateSpec, name: object) -> PluginOptionError:
    """Return the error for the option *name*, which the delegate does not have."""
    options = describe_options(spec)
    if not options:
        return PluginOptionError(f"delegate {spec.name!r} has no options, {name!r} was given")
    close = did_you_mean(str(name), [option.name for option in options])
    valid = "; ".join(map(str, options))
    return PluginOptionError(
        f"delegate {spec.name!r} has no option {name!r}{close}; valid options: {valid}"
    )


def option_without_value(spec: DelegateSpec, name: str) -> PluginOptionError:
    """Return the error for the option *name*, which the user gave without a value."""
    for option in describe_options(spec):
        if option.name == name:
            example = f"{spec.name}:{name}={option.default or '...'}"
            return PluginOptionError(
                f"option {name!r} of delegate {spec.name!r} has no value ({option.type}); "
                f"write {example!r}, for example"
            )
    return unknown_option(spec, name)


def _value(spec: DelegateSpec, name: str, kind: Kind, value: object) -> object:
    try:
        return _read(value, kind) if isinstance(value, str) else _checked(value, kind)
    except (ValueError, KeyError) as error:
        close = did_you_mean(str(value), map(str, typing.get_args(kind)))
        text = f"is {value!r}, expected {type_text(kind)}{close}"
        raise PluginOptionError(f"option {name!r} of delegate {spec.name!r} {text}") from error


def _read(text: str, kind: Kind) -> object:
    """Convert *text* to a value of the type *kind*; raise ValueError or KeyError if impossible."""
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(text.strip())
    arguments = typing.get_args(kind)
    if _origin(kind) is Literal:
        return {str(choice): choice for choice in arguments}[text]
    if _origin(kind) is tuple:
        return tuple(_read(part, arguments[0]) for part in text.split(",") if part)
    if is_union(kind):
        if type(None) in arguments and text.lower() == "none":
            return None
        return _first(arguments, lambda choice: _read(text, choice))
    if is_enum(kind):
        return kind[text]
    raise ValueError(f"{kind} cannot be given as text")


def _checked(value: object, kind: Kind) -> object:
    """Convert *value*, given by Python code, to the type *kind*; raise ValueError if impossible."""
    arguments = typing.get_args(kind)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if _origin(kind) is tuple and isinstance(value, (list, tuple)):
        return tuple(
            _read(v, arguments[0]) if isinstance(v, str) else _checked(v, arguments[0])
            for v in value
        )
    if is_union(kind):
        return _first(arguments, lambda choice: _checked(value, choice))
    if _origin(kind) is Literal:
        fits = any(value == c and type(value) is type(c) for c in arguments)
    elif _is_class(kind):
        fits = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    else:
        fits = False
    if not fits:
        raise ValueError(value)
    return value


def _first(kinds: tuple[Kind, ...], convert: Callable[[Kind], object]) -> object:
    for kind in kinds:
        try:
            return convert(kind)
        except (ValueError, KeyError):
            continue
    raise ValueError(kinds)


def type_text(kind: Kind) -> str:
    """Text that lists the allowed values of the annotation *kind*.

    >>> type_text(Literal["usb", "pci"])
    "one of 'pci', 'usb'"
    """
    arguments = typing.get_args(kind)
    if kind is bool:
        return "true or false"
    if kind is type(None):
        return "none"
    if _origin(kind) is Literal:
        return "one of " + ", ".join(sorted(map(repr, arguments)))
    if _origin(kind) is tuple:
        return f"comma-separated {type_text(arguments[0])}"
    if is_union(kind):
        return " or ".join(map(type_text, arguments))
    if is_enum(kind):
        return "one of " + ", ".join(sorted(repr(name) for name in kind.__members__))
    return kind.__name__ if _is_class(kind) else str(kind)


def option_fields(spec: DelegateSpec) -> list[dataclasses.Field[Any]]:
    """Return the fields that users may set in the options dataclass of *spec*."""
    if spec.options is None:
        return []
    return [field for field in dataclasses.fields(spec.options) if field.init]


def option_kinds(spec: DelegateSpec) -> dict[str, Kind]:
    """Annotations of the option fields of *spec*, by name.

    Raises:
        PluginOptionError: an annotation cannot be evaluated.
    """
    try:
        hints = typing.get_type_hints(spec.options) if spec.options is not None else {}
    except Exception as error:
        raise PluginOptionError(
            f"the options of delegate {spec.name!r} have an annotation that cannot be evaluated: "
            f"{error}"
        ) from error
    return {field.name: hints[field.name] for field in option_fields(spec)}


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Default value of a field; ``dataclasses.MISSING`` for a required field."""
    if field.default is MISSING and field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _default_text(field: dataclasses.Field[Any]) -> str | None:
    default = default_of(field)
    return None if default is MISSING else _text(default)


def _values_text(field: dataclasses.Field[Any], kind: Kind) -> str:
    """Text that lists the allowed values of *field*, of type *kind*, with its limits if any."""
    low, high = (field.metadata.get(bound) for bound in BOUNDS)
    text = type_text(kind)
    if low is None:
        return text if high is None else f"{text}, at most {high}"
    return f"{text}, {low} or more" if high is None else f"{text}, {low} to {high}"


def _text(value: object) -> str:
    """Return *value* as text in the syntax of the command line."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value)) or "(empty)"
    return str(value) if value != "" else "(empty)"


def _help(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("help", ""))


def _origin(kind: Kind) -> Any:
    return typing.get_origin(kind)


def is_union(kind: Kind) -> bool:
    """Whether the annotation *kind* is a union of types."""
    return _origin(kind) in (Union, types.UnionType)


def _is_class(kind: Kind) -> bool:
    """Whether *kind* is a class, so that ``isinstance`` works; ``list[int]`` is not."""
    return isinstance(kind, type) and _origin(kind) is None


def is_enum(kind: Kind) -> bool:
    """Whether the annotation *kind* is an enumeration."""
    return _is_class(kind) and issubclass(kind, Enum)


_READERS: dict[Kind, Callable[[str], object]] = {
    bool: lambda text: _BOOLS[text.lower()],
    int: lambda text: int(text, 0),
    float: float,
    str: str,
}
