"""JSON of results: ``to_json`` and ``from_json`` of every dataclass.

Each field is a key. Nested dataclasses become objects; enums become their text or name; paths
become text; tuples, sets (sorted) and NumPy arrays become lists; NumPy scalars become numbers. A
class declares exceptions:

>>> from dataclasses import dataclass, field
>>> @dataclass(frozen=True)
... class Latency(JsonRecord):
...     json_properties: ClassVar = {"mean": "mean", "text": "__str__"}
...     runs: tuple[float, ...] = field(metadata={"json_key": "seconds"})
...     source: bytes = field(default=b"", metadata={"json_key": None})
...     shares: Mapping[int, float] = field(default_factory=dict, metadata={"json_value": len})
...
...     @property
...     def mean(self) -> float:
...         return sum(self.runs) / len(self.runs)
...
...     def __str__(self) -> str:
...         return f"{self.mean} s"
>>> Latency((1.0, 3.0)).to_json()
{'seconds': [1.0, 3.0], 'shares': 0, 'mean': 2.0, 'text': '2.0 s'}
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from enum import Enum
from functools import partial
from types import UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
R = TypeVar("R", bound="JsonRecord")

_NAMES = {"ClassVar": ClassVar[T]} if sys.version_info < (3, 11) else None
"""Values of names in annotations: Python 3.10 rejects ``ClassVar`` without a type."""


class JsonRecord:
    """Base class of dataclasses with ``to_json`` and ``from_json``.

    A field's ``metadata`` may have these items: ``json_key`` is the key in JSON; None omits the
    field. ``json_value`` is a function that ``to_json`` applies to the value first. ``json_read``
    is a function that ``from_json`` applies to the JSON value.

    Attributes:
        json_properties: more keys, each with the name of a property or of a method without
            arguments. They follow the fields, and replace a field of the same key.
    """

    __slots__ = ()
    json_properties: ClassVar[Mapping[str, str]] = {}

    def to_json(self) -> dict[str, Any]:
        """Return the object as a dictionary for ``json.dumps``."""
        return _object(self)

    @classmethod
    def from_json(cls: type[R], content: object) -> R:
        """Return the object whose :meth:`to_json` gives *content*; see :func:`from_json`."""
        return from_json(cls, content)


def to_json(value: Any) -> Any:
    """Return *value* in a form for ``json.dumps``; an object's ``to_json`` method has priority.

    >>> to_json({2: (1, None), "types": {"b", "a"}})
    {'2': [1, None], 'types': ['a', 'b']}
    """
    if isinstance(value, str | int | float | None) and not isinstance(value, Enum):
        return value
    if hasattr(value, "__dataclass_fields__"):
        return value.to_json() if hasattr(value, "to_json") else _object(value)
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    if hasattr(value, "__fspath__"):  # a path; its module takes milliseconds
        return str(value)
    if hasattr(value, "dtype"):  # of NumPy, which the command line does not import for its help
        return value.tolist()
    if isinstance(value, AbstractSet):
        return sorted(map(to_json, value))
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [to_json(item) for item in value]
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _object(record: Any) -> dict[str, Any]:
    from dataclasses import fields  # lazy import: few programs write JSON

    found = {}
    for entry in fields(record):
        key = entry.metadata.get("json_key", entry.name)
        if key is not None:
            convert = entry.metadata.get("json_value", to_json)
            found[key] = to_json(convert(getattr(record, entry.name)))
    for key, name in getattr(record, "json_properties", {}).items():
        value = getattr(record, name)
        found[key] = to_json(value() if callable(value) else value)
    return found


def from_json(kind: type[T], content: object) -> T:
    """Return the object of *kind*, a class or an annotation, whose JSON is *content*.

    A missing field has its default; unknown keys are ignored.

    Raises:
        ValueError: a field that has no default is missing, or a value does not match its
            annotation.

    >>> from_json(tuple[float, ...], [1, 2.5])
    (1, 2.5)
    """
    found = _read(kind, content)
    return found  # type: ignore[no-any-return] # _read follows the annotation


def _read(hint: Any, value: Any) -> Any:
    kind, args = get_origin(hint) or hint, get_args(hint)
    if hasattr(kind, "__value__"):  # an alias, as NDArray is from NumPy 2.5 on
        return _read(kind.__value__[args], value)
    if kind in (Union, UnionType):
        for each in args:
            with suppress(ValueError):
                return _read(each, value)
    elif kind is Any or (kind is Literal and value in args):
        return value
    elif not isinstance(kind, type):
        pass
    elif hasattr(kind, "__dataclass_fields__") and isinstance(value, dict):
        return _read_object(kind, value)
    elif issubclass(kind, Enum) and isinstance(value, str):
        return kind[value] if value in kind.__members__ else kind(value)
    elif hasattr(kind, "__fspath__") and isinstance(value, str):
        return kind(value)
    elif kind.__name__ == "ndarray" and isinstance(value, list):
        import numpy as np

        return np.array(value, get_args(args[1])[0])
    elif kind is tuple and isinstance(value, list):
        hints = args[:1] * len(value) if args[1:] == (...,) else args
        return tuple(_read(each, item) for each, item in zip(hints, value, strict=True))
    elif kind in (dict, Mapping) and isinstance(value, dict):
        return {key: _read(args[1], item) for key, item in value.items()}
    elif type(value) is kind or (kind is float and type(value) is int):
        return value
    raise ValueError(f"{value!r:.80} is no {getattr(hint, '__name__', hint)}")


def _read_object(kind: type, content: Mapping[str, Any]) -> Any:
    from dataclasses import fields

    hints, found = get_type_hints(kind, localns=_NAMES), {}
    for entry in fields(kind):
        key = entry.metadata.get("json_key", entry.name)
        if key in content:
            read = entry.metadata.get("json_read", partial(_read, hints[entry.name]))
            found[entry.name] = read(content[key])
    try:
        return kind(**found)
    except TypeError as error:  # a field is missing
        raise ValueError(str(error)) from error
