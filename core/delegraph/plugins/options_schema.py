"""JSON Schema of a delegate's options, for forms and services that ask for options."""

from __future__ import annotations

import dataclasses
import math
import typing
from enum import Enum
from typing import Any, Literal

from delegraph.plugins.options import (
    BOUNDS,
    Kind,
    default_of,
    is_enum,
    is_union,
    option_fields,
    option_kinds,
)
from delegraph.plugins.specs import DelegateSpec

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_TYPES: dict[Kind, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
}


def options_schema(spec: DelegateSpec) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a mapping with the options of the delegate *spec*.

    Enumerations are given by member names. If a field's type is not among those that
    ``DelegateSpec`` lists, its schema has no ``type``.

    Raises:
        PluginOptionError: an annotation cannot be evaluated.
    """
    kinds, fields = option_kinds(spec), option_fields(spec)
    required = [f.name for f in fields if default_of(f) is dataclasses.MISSING]
    return {
        "$schema": DRAFT,
        "title": spec.name,
        "type": "object",
        "properties": {field.name: _property(field, kinds[field.name]) for field in fields},
        "required": required,
        "additionalProperties": False,
    }


def _property(field: dataclasses.Field[Any], kind: Kind) -> dict[str, Any]:
    bounds = {bound: field.metadata[bound] for bound in BOUNDS if bound in field.metadata}
    schema = _schema(kind, bounds)
    if field.metadata.get("help"):
        schema["description"] = str(field.metadata["help"])
    default = default_of(field)
    if default is not dataclasses.MISSING and not _is_beyond_json(default):
        schema["default"] = _json(default)
    return schema


def _schema(kind: Kind, bounds: dict[str, Any]) -> dict[str, Any]:
    origin: Any = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if kind in (int, float):
        return {"type": _TYPES[kind], **bounds}
    if kind in _TYPES:
        return {"type": _TYPES[kind]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], bounds)}
    if is_union(kind):
        return {"anyOf": [_schema(each, bounds) for each in arguments]}
    return {"enum": list(kind.__members__)} if is_enum(kind) else {}


def _json(value: object) -> Any:
    """Convert a default value to its JSON form."""
    if isinstance(value, Enum):
        return value.name
    return list(map(_json, value)) if isinstance(value, tuple | list) else value


def _is_beyond_json(value: object) -> bool:
    """Whether JSON cannot express a value, such as infinity or an object."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, tuple | list):
        return any(map(_is_beyond_json, value))
    return not isinstance(value, str | int | Enum | None)
