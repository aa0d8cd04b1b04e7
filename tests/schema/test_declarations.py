"""The declared schema against the code that flatc generated for the official package."""

from __future__ import annotations

import inspect
import re
from enum import IntEnum
from typing import Any, NamedTuple

import pytest
from ai_edge_litert import schema_py_generated as generated

from delegraph.schema import enums, options, tables
from delegraph.schema.table import (
    INT32,
    ArrayVector,
    Child,
    ChildVector,
    Scalar,
    ScalarVector,
    String,
    Table,
    Union,
    int32,
    string,
)


class Declared(NamedTuple):
    """A field as far as both descriptions tell: ``int32``, ``[float32]``, ``[Tensor]``, ..."""

    type: str
    default: Any


def tables_of(module: Any) -> dict[str, type]:
    return {
        name: value
        for name in dir(module)
        if inspect.isclass(value := getattr(module, name))
        and (hasattr(value, "GetRootAs") or issubclass(value, Table))
    }


GENERATED = tables_of(generated)
OURS = {**tables_of(options), **tables_of(tables)}
OURS.pop("Table")
DEPRECATED = {("ResizeBilinearOptions", 0), ("ResizeBilinearOptions", 1), ("SignatureDef", 3)}


def generated_fields(name: str) -> dict[tuple[int, str], Declared]:
    """Read ids, names, types and defaults out of the accessors' source code."""
    accessors: dict[int, dict[str, str]] = {}
    for method, function in inspect.getmembers(GENERATED[name], inspect.isfunction):
        source = inspect.getsource(function)
        offset = re.search(r"_tab\.Offset\((\d+)\)", source)
        if offset is not None:
            accessors.setdefault((int(offset.group(1)) - 4) // 2, {})[method] = source
    return {
        (field_id, plain(base)): declared(sources[base], f"{base}Length" in sources)
        for field_id, sources in accessors.items()
        for base in [min(sources, key=len)]
    }


def declared(source: str, is_vector: bool) -> Declared:
    flags = [f for f in re.findall(r"number_types\.(\w+)Flags", source) if f != "UOffsetT"]
    table = re.search(r"obj = (\w+)\(\)", source)
    returned = re.findall(r"return (.+)", source)[-1]
    if "_tab.Union(" in source:
        return Declared("union", None)
    if "_tab.String(" in source:
        return Declared("string", None)
    type_ = table.group(1) if table else flags[0].lower()
    if is_vector:
        return Declared(f"[{type_}]", None)
    return Declared(type_, None if table else eval(returned))


def our_fields(table: type[Table]) -> dict[tuple[int, str], Declared]:
    found = {}
    for field in table.FIELDS:
        match field.kind:
            case Scalar(dtype):
                entry = Declared(dtype.name, field.default)
            case String():
                entry = Declared("string", field.default)
            case ScalarVector(dtype) | ArrayVector(dtype):
                entry = Declared(f"[{dtype.name}]", field.default or None)
            case Child(child):
                entry = Declared(child.__name__, field.default)
            case ChildVector(child):
                entry = Declared(f"[{child.__name__}]", field.default)
            case Union():
                found[field.id - 1, plain(f"{field.name}_type")] = Declared("uint8", 0)
                entry = Declared("union", field.default)
        found[field.id, plain(field.name)] = entry
    return found


def plain(name: str) -> str:
    """``FusedActivationFunction`` and ``fused_activation_function`` are the same name."""
    return name.replace("_", "").lower()


def differences(table: type[Table]) -> set[Any]:
    ours, theirs = our_fields(table), generated_fields(table.__name__)
    fields = set(ours.items()) ^ set(theirs.items())
    return {field for field in fields if (table.__name__, field[0][0]) not in DEPRECATED}


def test_fields_are_declared_in_the_order_of_their_ids() -> None:
    ids = {name: [field.id for field in table.FIELDS] for name, table in OURS.items()}
    assert {name: found for name, found in ids.items() if found != sorted(set(found))} == {}


def test_there_are_the_same_tables() -> None:
    assert sorted(OURS) == sorted(GENERATED)
    assert len(OURS) == 170


def test_fields_have_the_same_id_name_type_and_default() -> None:
    found = {name: differences(table) for name, table in OURS.items()}
    assert {name: fields for name, fields in found.items() if fields} == {}


class WrongId(Table):
    values_count: int = int32(0, default=0)
    axis: int = int32(2, default=0)


class WrongDefault(Table):
    values_count: int = int32(0, default=0)
    axis: int = int32(1, default=1)


class WrongType(Table):
    values_count: int = int32(0, default=0)
    axis: str | None = string(1, default=None)


class Missing(Table):
    values_count: int = int32(0, default=0)


@pytest.mark.parametrize("wrong", [WrongId, WrongDefault, WrongType, Missing])
def test_a_wrong_declaration_is_noticed(wrong: type[Table]) -> None:
    assert INT32.name == "int32"
    named = type(Table)("PackOptions", (Table,), {field.name: field for field in wrong.FIELDS})
    assert differences(named)


ENUMS = [e for _, e in inspect.getmembers(enums, inspect.isclass) if issubclass(e, IntEnum)]
ENUMS.remove(IntEnum)


def test_enumerations_have_the_same_members() -> None:
    assert {enum.__name__: {m.name: m.value for m in enum} for enum in ENUMS} == {
        enum.__name__: {
            name: value
            for name, value in vars(getattr(generated, enum.__name__)).items()
            if isinstance(value, int) and not name.startswith("_")
        }
        for enum in ENUMS
    }


def test_every_enumeration_is_declared() -> None:
    is_enum = {
        name
        for name, value in vars(generated).items()
        if inspect.isclass(value)
        and not hasattr(value, "GetRootAs")
        and not name.endswith("T")
        and any(isinstance(v, int) for v in vars(value).values())
    }
    assert {enum.__name__ for enum in ENUMS} == is_enum


@pytest.mark.parametrize(
    ("tag", "tables_by_tag"),
    [
        (enums.BuiltinOptions, options.BUILTIN_OPTIONS),
        (enums.BuiltinOptions2, options.BUILTIN_OPTIONS_2),
        (enums.QuantizationDetails, tables.QUANTIZATION_DETAILS),
        (enums.SparseIndexVector, tables.SPARSE_INDEX_VECTOR),
    ],
)
def test_unions_have_a_table_for_every_tag(
    tag: type[IntEnum], tables_by_tag: dict[int, type[Table]]
) -> None:
    named = {number: table.__name__ for number, table in tables_by_tag.items()}
    assert named == {m.value: m.name for m in tag if m.name != "NONE"}


def test_every_options_table_belongs_to_an_operator() -> None:
    members = {*options.BUILTIN_OPTIONS.values(), *options.BUILTIN_OPTIONS_2.values()}
    assert set(options.OPTIONS_OF_OPERATOR.values()) == members


def test_options_are_found_by_an_operators_number_too() -> None:
    found = options.OPTIONS_OF_OPERATOR
    add, custom = enums.BuiltinOperator.ADD, enums.BuiltinOperator.CUSTOM
    assert found[add] is found.get(int(add)) is options.AddOptions  # type: ignore[call-overload]
    assert (custom in found, 10**6 in found, "ADD" in found) == (False, False, False)
    assert found.get(custom) is None


@pytest.mark.parametrize("module", [enums, options])
def test_a_name_that_is_not_there_is_an_error(module: Any) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchName'"):
        _ = module.NoSuchName
