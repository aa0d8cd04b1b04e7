"""``NamedTuple`` of the standard library, without compiling at import.

``typing.NamedTuple`` compiles a constructor and each annotation of a class, which takes longer than
importing a small module.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]  # as of every named tuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _NamedTupleType(type):
        """Metaclass that turns the annotated names of a class into items of its tuples."""

        def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            """Create the class *name* with a read-only attribute for each field."""
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            body |= {field: _tuplegetter(i, None) for i, field in enumerate(fields)}
            body |= {"__slots__": (), "__match_args__": fields}
            body |= {"_fields": fields, "_field_defaults": defaults}
            return super().__new__(mcs, name, bases, body)

    class NamedTuple(tuple, metaclass=_NamedTupleType):
        """Base class of classes with named items, as in the standard library."""

        def __new__(cls, /, *values: Any, **named: Any) -> Any:
            """Return a tuple of the given fields; other fields have their defaults."""
            if named or len(values) != len(cls._fields):
                values = _completed(cls, values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values: Any) -> Any:
            return cls(*values)

        def _replace(self, /, **changes: Any) -> Any:
            return type(self)(**self._asdict() | changes)

        __replace__ = _replace

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            items = (f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({', '.join(items)})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)


def _completed(cls: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Values of all fields of the class *cls*, in order.

    Args:
        cls: the class.
        values: positional arguments.
        named: keyword arguments.

    Raises:
        TypeError: a field has no value or two values, or there is no such field.
    """
    fields, defaults = cls._fields, cls._field_defaults
    rest = fields[len(values) :]
    if len(values) > len(fields) or named.keys() - set(rest):
        raise TypeError(f"{cls.__name__} has the fields {', '.join(fields)}, each with one value")
    given = defaults | named
    missing = [name for name in rest if name not in given]
    if missing:
        raise TypeError(f"{cls.__name__} has no value of {', '.join(missing)}")
    return (*values, *(given[name] for name in rest))
