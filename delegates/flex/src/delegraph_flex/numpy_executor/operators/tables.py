"""Look-up tables from keys to values, shared by all subgraphs of an interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.handles import of_kind, shared
from delegraph_flex.numpy_executor.registry import functions, operator, step_of

Array = NDArray[Any]


@dataclass(slots=True)
class Table:
    """A look-up table from keys to values.

    Attributes:
        name: name in the table's handle.
        key_type: type of the keys.
        value_type: type of the values.
        value_shape: shape of one value; () for scalar values.
        is_mutable: whether the table can be changed; otherwise it can be filled only once.
        items: mapping from keys to values; None before initialisation.
    """

    name: str
    key_type: DataType
    value_type: DataType
    value_shape: tuple[int, ...]
    is_mutable: bool
    items: dict[Any, Any] | None = field(default=None)

    def contents(self) -> dict[Any, Any]:
        """Return a mapping from the keys of the table to their values.

        Raises:
            ValueError: the table is not initialised.
        """
        if self.items is None:
            raise ValueError(f"table {self.name!r} is not initialized")
        return self.items

    def put(self, keys: Array, values: Array, *, anew: bool) -> None:
        """Add keys with their values to the table; *anew* removes the old entries first."""
        if np.shape(values) != (*np.shape(keys), *self.value_shape):
            raise ValueError(f"keys are {np.shape(keys)}, values {np.shape(values)}")
        found = {} if anew or self.items is None else self.items
        flat = np.asarray(values).reshape(-1, *self.value_shape)
        for key, value in zip(_keys(keys), flat, strict=True):
            if not self.is_mutable and found.get(key, value) != value:
                raise ValueError(f"table {self.name!r} has key {key!r} with another value already")
            found[key] = np.array(value) if self.value_shape else value
        self.items = found


def _keys(keys: Array) -> list[Any]:
    return list(np.asarray(keys).reshape(-1).tolist())


def _table(handle: Any) -> Table:
    return of_kind(handle, Table, "table")


@operator("HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2")
def table(node: FlexNode) -> Step:
    """Return a function that returns the handle of a table.

    A table that is not mutable can be filled only once.
    """
    keys, values = node.type("key_dtype"), node.type("value_dtype")
    shape, is_mutable = node.shape("value_shape") or (), node.op != "HashTableV2"
    items: dict[Any, Any] | None = {} if is_mutable else None
    found = shared(node, "table", lambda name: Table(name, keys, values, shape, is_mutable, items))
    return lambda: found


@step_of("LookupTableFindV2")
def find(handle: Any, keys: Array, default: Array) -> Array:
    """Return the values of *keys* in a table, and *default* for missing keys."""
    table = _table(handle)
    items, missing = table.contents(), default[()] if not table.value_shape else default
    if np.shape(default) != table.value_shape:
        raise ValueError(f"default is {np.shape(default)}, expected {table.value_shape}")
    require((np.size(keys), *table.value_shape), table.value_type.dtype)
    result = np.empty((np.size(keys), *table.value_shape), table.value_type.dtype)
    for i, key in enumerate(_keys(keys)):
        result[i] = items.get(key, missing)
    return result.reshape(*np.shape(keys), *table.value_shape)


def _writing(anew: bool) -> Step:
    def run(handle: Any, keys: Array, values: Array) -> tuple[()]:
        _table(handle).put(keys, values, anew=anew)
        return ()

    return run


functions(
    {
        "LookupTableImportV2": _writing(anew=True),
        "InitializeTableV2": _writing(anew=False),
        "LookupTableInsertV2": _writing(anew=False),
        "LookupTableSizeV2": lambda handle: np.array(len(_table(handle).contents()), np.int64),
    }
)


@step_of("LookupTableRemoveV2")
def remove(handle: Any, keys: Array) -> tuple[()]:
    """Remove *keys* from a table."""
    items = _table(handle).contents()
    for key in _keys(keys):
        items.pop(key, None)
    return ()


@step_of("LookupTableExportV2")
def export(handle: Any) -> list[Array]:
    """Return all keys and values of a table."""
    table = _table(handle)
    items = table.contents()
    keys = np.empty(len(items), table.key_type.dtype)
    keys[:] = list(items)
    values = np.empty((len(items), *table.value_shape), table.value_type.dtype)
    for i, value in enumerate(items.values()):
        values[i] = value
    return [keys, values]
