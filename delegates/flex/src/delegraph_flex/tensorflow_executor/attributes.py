"""Checks a NodeDef's attributes against the OpDef, and converts them for eager execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.flex_node import KINDS, FlexNode, Unsupported
from delegraph_flex.node_def import AttrValue, Function

_NAMES = {type: kind for kind, types in KINDS.items() for type in types}


def checked_attributes(node: FlexNode, op_def: Any) -> dict[str, AttrValue]:
    """Return the attributes of *node* that *op_def* knows, after a check; others are dropped.

    Raises:
        Unsupported: an attribute has another kind, has a value that TensorFlow does not allow, or
            is missing without a default.
    """
    inferred = {
        name
        for arg in op_def.input_arg
        for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)
    }
    known = {}
    for declared in op_def.attr:
        if declared.name in node.node_def.attrs:
            value = node.node_def.attrs[declared.name]
            _check(declared, value)
            known[declared.name] = value
        elif not declared.HasField("default_value") and declared.name not in inferred:
            raise Unsupported(
                f"attribute {declared.name!r} ({declared.type}) is missing, and {node.op} has no "
                "default for it"
            )
    return known


def check_types(node: FlexNode, op_def: Any, attrs: Mapping[str, AttrValue]) -> None:
    """Check that the number and types of the node's tensors match its attributes *attrs*.

    *op_def* is the operator's definition.

    Raises:
        Unsupported: a number or a type does not match.
    """
    sides = (
        ("input", op_def.input_arg, node.input_types),
        ("output", op_def.output_arg, node.output_types),
    )
    for side, args, given in sides:
        expected = argument_types(op_def, args, attrs)
        if expected is None:
            continue
        if len(expected) != len(given):
            raise Unsupported(
                f"{node.op} has {len(given)} {side}s here, TensorFlow expects {len(expected)}",
                "arity",
            )
        for i, (type, right) in enumerate(zip(given, expected, strict=True)):
            if right is not None and not _holds(type, right):
                raise Unsupported(
                    f"{side} {i} of {node.op} is {type.name}, its attributes say {right.name}",
                    "dtype",
                )


def argument_types(
    op_def: Any, args: Sequence[Any], attrs: Mapping[str, AttrValue]
) -> list[DataType | None] | None:
    """Return the types of inputs or outputs, *args*; None for a type that TensorFlow infers.

    *op_def* is the operator's definition, and *attrs* its attributes.

    The result is None if TensorFlow also infers the number of *args*.
    """
    defaults = {attr.name: attr.default_value.type for attr in op_def.attr}
    types: list[DataType | None] = []
    for arg in args:
        if arg.type_list_attr:
            listed = attrs.get(arg.type_list_attr)
            if not isinstance(listed, list):
                return None
            types += listed
            continue
        count = attrs.get(arg.number_attr) if arg.number_attr else 1
        if not isinstance(count, int):
            return None
        code = arg.type or attrs.get(arg.type_attr) or defaults.get(arg.type_attr)
        types += [DataType(code) if isinstance(code, int) and code else None] * count
    return types


def eager_attribute(value: AttrValue, functions: Mapping[str, str]) -> Any:
    """Return an attribute's value, which is no tensor, in the form for eager execution.

    *functions* maps each function of the model to TensorFlow's name for it.
    """
    if isinstance(value, list):
        return [eager_attribute(item, functions) for item in value]
    if isinstance(value, DataType):
        return int(value)
    if isinstance(value, Function):
        return functions[value.name]
    if isinstance(value, tuple):
        return list(value)
    return value


def function_names(attrs: Mapping[str, AttrValue]) -> list[str]:
    """Return the sorted names of the model's functions that occur in the attributes *attrs*."""
    values = [
        item for value in attrs.values() for item in (value if isinstance(value, list) else [value])
    ]
    return sorted({value.name for value in values if isinstance(value, Function)})


def has_tensors(attrs: Mapping[str, AttrValue]) -> bool:
    """Whether an attribute in *attrs* is a tensor, or a list with a tensor."""
    return any(
        isinstance(item, np.ndarray)
        for value in attrs.values()
        for item in (value if isinstance(value, list) else [value])
    )


def _holds(stored: TensorType, type: DataType) -> bool:
    """Whether a tensor of type *stored* in the file may have values of *type*.

    QINT8 is stored as INT8; older files store handles as INT32.
    """
    if stored.name == type.name or type.name == f"Q{stored.name}":
        return True
    return stored is TensorType.INT32 and type in (DataType.RESOURCE, DataType.VARIANT)


def _check(declared: Any, value: AttrValue) -> None:
    expected: str = declared.type
    is_list = expected.startswith("list(")
    kind = expected.removeprefix("list(").removesuffix(")")
    items = value if is_list and isinstance(value, list) else [value]
    if isinstance(value, list) != is_list or any(type(v) not in KINDS[kind] for v in items):
        raise Unsupported(
            f"attribute {declared.name!r} is {value!r}, of kind {_kind(value)}, "
            f"TensorFlow expects kind {expected}"
        )
    if declared.has_minimum:
        measured = len(items) if is_list else value
        if isinstance(measured, int) and measured < declared.minimum:
            what = "values are listed" if is_list else "is its value"
            raise Unsupported(
                f"attribute {declared.name!r}: {measured} {what}, "
                f"TensorFlow expects at least {declared.minimum}"
            )
    allowed = [DataType(code) for code in declared.allowed_values.list.type if code in _CODES]
    _check_allowed(declared.name, items, allowed or list(declared.allowed_values.list.s))


def _check_allowed(name: str, items: Sequence[Any], allowed: Sequence[Any]) -> None:
    for item in items:
        if allowed and item not in allowed:
            raise Unsupported(
                f"attribute {name!r} is {_shown(item)}, TensorFlow expects "
                + " or ".join(sorted(map(_shown, allowed)))
            )


_CODES = frozenset(int(type) for type in DataType)


def _kind(value: AttrValue) -> str:
    if isinstance(value, list):
        return f"list({', '.join(sorted({_kind(item) for item in value}))})"
    return _NAMES[type(value)]


def _shown(value: Any) -> str:
    return value.name if isinstance(value, DataType) else repr(value.decode(errors="replace"))
