"""Writes ``schemas/`` and the table of ``json.md`` beside this file: what ``--json`` prints.

    python docs/generate_json_schemas.py

Runs the examples of ``json_examples.py``, without and with the delegates applied by default. Where
a command prints one of Delegraph's result classes, the schema is what the class declares, its
fields and properties; the other parts are as the examples show them. They need the example plugin,
and all delegates but those of other engines. A command may print keys that its schema does not
have: new ones are no change for a program.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache, reduce
from itertools import product
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin
from unittest.mock import patch

import numpy as np
from json_examples import EXAMPLES, WITHOUT_EXAMPLE, own_folder

from delegraph import cli, json_records
from delegraph.cli.answers.printing import JsonAnswer
from delegraph.cli.failure import CheckFailed
from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE

FOLDER = Path(__file__).with_name("schemas")
PAGE = Path(__file__).with_name("json.md")
DRAFT = "https://json-schema.org/draft/2020-12/schema"

MAPS = {
    "notes", "rejections", "operators", "claims", "options", "types", "metadata", "by_type",
    "environment", "packages", "tolerance", "tolerances", "custom", "lacks", "bytes_by_planner",
    "metadata_facts", "imported_from", "read_as",
}  # fmt: skip
"""Keys whose objects have names of a model or a machine as keys."""

DESCRIPTIONS = {
    "memory": {
        "subject": "What all figures of this level are of: `as it runs` if delegates are named, "
        "without --micro; otherwise `core alone` where it can run the model. Null if only TFLM "
        "runs it; then plans are absent.",
        "planners": "Plans of the first subgraph; `bytes_by_planner` counts all that run.",
        "subgraphs": "The same figures of the other subgraphs that run, each in its own arena.",
        "bytes_by_planner": "Bytes of the arenas of all subgraphs that run.",
        "peak": "The point at which most of the arena is in use, as the first of `planners` plans.",
        "unknown": "Why a run needs more than these figures; empty if it does not.",
        "offline_plan": "The plan for TFLM inside the model, in words; empty if it has none.",
        "with_delegates": "The same figures of the model as it runs; null if that is the "
        "`subject`, or if no delegate takes a node.",
        "without_delegates": "The same figures of the core alone; null if that is the `subject`, "
        "or if only delegates can run the model.",
        "suggestions": "What would save memory of the `subject`.",
        "is_by_node": "Whether positions in the execution plan are the indices of nodes.",
        "needed": "Bytes of the arena that are compared with the budget: see `needed_of`. A run "
        "needs more if `is_complete` is false.",
        "needed_of": "The `subject`, and the planner of `needed`; TFLM with --micro.",
    },
    "predict": {
        "rows_per_second": "Rate after the start: of `seconds` without `start_seconds`.",
        "start_seconds": "Part of `seconds` before the first process had loaded the model.",
    },
    "numba-roof": {
        "seconds": "Sum of the least times of all operators and partitions.",
        "operators": "Partitions of other delegates are rows without a roof (`roof_seconds` and "
        "`bound` are null). `share` is of the time of all rows, `of_roof` is `roof_seconds` "
        "divided by `seconds`, both 0 to 1; `bytes` are read or written at least. `bound` tells "
        "from which limit `roof_seconds` follows, not what limits the measured time.",
        "roof_seconds": "Sum of the roofs of all operators that have one.",
        "of_roof": "`roof_seconds` divided by the time of the same operators.",
    },
}
"""Descriptions of keys, by command, where a key's name does not say what the value is of."""

NULLABLE = {
    "crossing_bytes": "crossing_bytes", "threads": "invoke", "delegate": "of_roof",
    "default": "help", "bound": "of_roof",
}  # fmt: skip
"""Keys that are null in some answers, of models for example whose shapes are known only while
invoking, but in no example; each with a key that is in the same object."""

Schema = dict[str, Any]


class Described(dict[str, Any]):
    """A result class, and the JSON that describes one of its objects."""

    cls: type


# -- running the examples ----------------------------------------------------------------------


def answer_of(words: Iterable[object]) -> tuple[Any, list[Described]]:
    """Return the JSON that a command prints, and all objects of result classes in it."""
    made: list[Described] = []
    plain = json_records._object

    def described(record: Any) -> Described:
        found = Described(plain(record))
        found.cls = type(record)
        made.append(found)
        return found

    answer, printed = JsonAnswer(), io.StringIO()
    given = [*map(str, words), "--json"]
    with (
        patch.object(json_records, "_object", described),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.redirect_stdout(printed),  # where commands of some plugins print it
        contextlib.suppress(CheckFailed),  # after the answer
    ):
        cli.delegraph.main(given, "delegraph", standalone_mode=False, obj=answer)
    return dict(answer) or json.loads(printed.getvalue()), made


# -- schemas of result classes -----------------------------------------------------------------


@cache
def names_of(module: str) -> dict[str, Any]:
    """Return a module's names, including its imports under ``TYPE_CHECKING``."""
    found = importlib.import_module(module)
    names = dict(vars(found))
    for node in ast.parse(inspect.getsource(found)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                with contextlib.suppress(ImportError):
                    exec(ast.unparse(line), names)
    return names


def hint(annotation: Any, module: str) -> Any:
    """Return the type named by an annotation in a module; Any if it cannot be resolved."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, names_of(module))
    except (NameError, TypeError, AttributeError):
        return Any


def class_schema(cls: type, classes: dict[str, type]) -> Schema:
    """Return the schema of what ``json_records`` makes of objects of *cls*; see there."""
    from dataclasses import fields

    hints = {
        name: hint(text, base.__module__)
        for base in reversed(cls.__mro__)
        for name, text in inspect.get_annotations(base).items()
    }
    properties: Schema = {}
    for field in fields(cls):
        key = field.metadata.get("json_key", field.name)
        convert = field.metadata.get("json_value")
        if key is not None:
            kind = hints[field.name] if convert is None else returned(convert)
            properties[key] = type_schema(kind, classes)
    for key, name in getattr(cls, "json_properties", {}).items():
        properties[key] = type_schema(returned(getattr(cls, name)), classes)
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def returned(value: Any) -> Any:
    """Return the declared return type of a property or function; Any if not declared."""
    function = value.fget if isinstance(value, property) else getattr(value, "func", value)
    if function is object.__str__ or getattr(function, "__name__", "") == "__str__":
        return str
    declared = getattr(function, "__annotations__", {})
    return hint(declared.get("return", Any), getattr(function, "__module__", "builtins"))


SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"}, bool: {"type": "boolean"}, int: {"type": "integer"},
    float: {"type": ["number", "null"]}, NoneType: {"type": "null"}, None: {"type": "null"},
}  # fmt: skip
"""Numbers that JSON does not have, NaN and infinity, are null."""


def type_schema(kind: Any, classes: dict[str, type]) -> Schema:
    """Return the schema of a type's values; *classes* collects the classes it refers to."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return reduce(merged, (type_schema(each, classes) for each in arguments))
    if origin is Literal:
        return {"enum": list(arguments)}
    if not isinstance(origin, type):
        return {}
    if issubclass(origin, Enum):
        members = list(origin)
        return {"enum": [m.value if isinstance(m.value, str) else m.name for m in members]}
    if hasattr(origin, "__dataclass_fields__"):
        own = getattr(origin, "to_json", None)
        if own is not None and own is not json_records.JsonRecord.to_json:
            return {"type": "object"}
        return reference(origin, classes)
    if hasattr(origin, "__fspath__"):
        return {"type": "string"}
    if issubclass(origin, np.ndarray):
        return {"type": "array"}
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": type_schema(arguments[1], classes)}
    if issubclass(origin, Sequence | AbstractSet | Iterable):
        items = [type_schema(each, classes) for each in arguments if each is not ...]
        return {"type": "array", **_if_any("items", items)}
    return {}


def _if_any(key: str, schemas: Sequence[Schema]) -> Schema:
    """Return ``{key: schema of any of schemas}``; empty if *schemas* is empty."""
    return {key: reduce(merged, schemas)} if schemas else {}


def reference(cls: type, classes: dict[str, type]) -> Schema:
    """Return a reference to the schema of *cls*, and add *cls* to *classes*."""
    name = cls.__name__
    if classes.setdefault(name, cls) is not cls:
        name = f"{cls.__module__.rpartition('.')[2]}.{name}"
        classes[name] = cls
    return {"$ref": f"#/$defs/{name}"}


# -- schemas of what examples show -------------------------------------------------------------


def value_schema(
    value: Any, made: Sequence[Described], classes: dict[str, type], key: str = ""
) -> Schema:
    """Return the schema of one value; *key* is its key in the parent object."""
    if isinstance(value, Described):
        return reference(value.cls, classes)
    if isinstance(value, Mapping):
        if key in MAPS or not all(re.fullmatch("[a-z][a-z0-9_]*", name) for name in value):
            items = [value_schema(item, made, classes) for item in value.values()]
            return {"type": "object", **_if_any("additionalProperties", items)}
        properties = {k: value_schema(v, made, classes, k) for k, v in value.items()}
        nullable = [k for k, beside in NULLABLE.items() if {k, beside} <= value.keys()]
        properties |= {k: merged(properties[k], SIMPLE[None]) for k in nullable}
        for part in spread(value, made):
            declared = class_schema(part.cls, classes)["properties"]
            properties |= {k: known for k, known in declared.items() if known}
        return {"type": "object", "properties": properties, "required": sorted(properties)}
    if isinstance(value, list | tuple):
        items = [value_schema(item, made, classes) for item in value]
        return {"type": "array", **_if_any("items", items)}
    return SIMPLE[type(value)]


def spread(value: Mapping[str, Any], made: Sequence[Described]) -> list[Described]:
    """Return the objects whose keys and values were all merged into *value*."""
    return [
        part
        for part in made
        if len(part) > 2 and all(k in value and value[k] is v for k, v in part.items())
    ]


def merged(a: Schema, b: Schema) -> Schema:
    """Return a schema that accepts the values of both schemas."""
    if a == b:
        return a
    if not a or not b:
        return {}  # anything
    options: list[Schema] = []
    for each in (*a.get("anyOf", [a]), *b.get("anyOf", [b])):
        for position, known in enumerate(options):
            joined = joined_types(known, each)
            if joined is not None:
                options[position] = joined
                break
        else:
            options.append(each)
    return options[0] if len(options) == 1 else {"anyOf": options}


def joined_types(a: Schema, b: Schema) -> Schema | None:
    """Return one schema for two of the same type; else None."""
    if a == b:
        return a
    if a.get("type") == b.get("type") == "object":
        mine, yours = a.get("properties"), b.get("properties")
        if mine is None or yours is None:
            more = [x["additionalProperties"] for x in (a, b) if "additionalProperties" in x]
            return (b if mine is None else a) | _if_any("additionalProperties", more)
        both = {
            key: merged(mine[key], yours[key]) if key in mine and key in yours else schema
            for key, schema in (mine | yours).items()
        }
        required = sorted({*a["required"]} & {*b["required"]})
        return {"type": "object", "properties": both, "required": required}
    if a.get("type") == b.get("type") == "array":
        items = [each["items"] for each in (a, b) if "items" in each]
        return {"type": "array", **_if_any("items", items)}
    if all(set(each) == {"type"} for each in (a, b)) and "object" not in (a["type"], b["type"]):
        types = {t for each in (a, b) for t in np.atleast_1d(each["type"]).tolist()}
        if types <= {"integer", "number", "null"}:
            types -= {"integer"} if "number" in types else set()
            return {"type": sorted(types) if len(types) > 1 else types.pop()}
    return None


# -- schemas of commands -----------------------------------------------------------------------

ERROR: Schema = {
    "type": "object",
    "description": "What went wrong; a failed check has the answer beside it.",
    "properties": {
        "type": {"type": "string"}, "message": {"type": "string"}, "exit_code": {"type": "integer"},
    },
    "required": ["exit_code", "message", "type"],
}  # fmt: skip


def command_schema(name: str) -> Schema:
    """Return the schema of the JSON that the examples of command *name* print."""
    classes: dict[str, type] = {}
    shown: list[Schema] = []
    own = os.environ.get(DEFAULT_DELEGATES_VARIABLE)
    for words, default in product(EXAMPLES[name], ("", own)):
        changed = {} if default is None else {DEFAULT_DELEGATES_VARIABLE: default}
        with own_folder(), patch.dict(os.environ, changed):
            answer, made = answer_of(words)
        shown.append(value_schema(answer, made, classes))
    found = reduce(merged, shown)
    definitions: Schema = {}
    while missing := sorted(classes.keys() - definitions.keys()):
        definitions |= {each: class_schema(classes[each], classes) for each in missing}
    known = without_null(found)
    for key, text in DESCRIPTIONS.get(name, {}).items():
        known["properties"][key] = {"description": text, **known["properties"][key]}
    if known["type"] == "object":
        known["properties"]["error"] = ERROR
        known["anyOf"] = [{"required": known.pop("required")}, {"required": ["error"]}]
    return {
        "$schema": DRAFT,
        "title": f"what delegraph {name.replace('-', ' ')} prints with --json",
        **known,
        "$defs": dict(sorted(without_null(definitions).items())),
    }


def without_null(schema: Any) -> Any:
    """Return a schema that accepts any value where all examples had null."""
    if isinstance(schema, dict):
        if schema == {"type": "null"}:
            return {}
        return {k: v if k == "anyOf" else without_null(v) for k, v in schema.items()}
    return [without_null(each) for each in schema] if isinstance(schema, list) else schema


TABLE = "| command | schema | keys that are always there |\n|---|---|---|\n"


def page() -> str:
    """Return the page with its table of every command's schema and the keys of its answer."""
    rows = []
    for name, ((*words,), *_) in EXAMPLES.items():
        schema = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        shown = [str(word) for word in words if word == name or word in name.split("-")]
        shown += [f"--{option}" for option in ("against", "bisect") if name.endswith(f"-{option}")]
        always = schema["anyOf"][0]["required"] if schema["type"] == "object" else []
        keys = ", ".join(f"`{key}`" for key in always) or "a list with an object for each model"
        rows.append(f"| `{' '.join(shown)}` | [{name}.json](schemas/{name}.json) | {keys} |\n")
    rest = [f"| `{name}` | none: {why} | |\n" for name, why in WITHOUT_EXAMPLE.items()]
    written = PAGE.read_text(encoding="utf-8")
    return written[: written.index(TABLE)] + TABLE + "".join([*rows, *rest])


def main() -> None:
    """Write the schemas and the page."""
    FOLDER.mkdir(exist_ok=True)
    for name in EXAMPLES:
        text = json.dumps(command_schema(name), indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
