"""``dataclass`` and ``NamedTuple`` of the standard library, without compiling at import.

The standard decorator compiles up to seven methods of each class. A process imports dozens of
dataclasses before its first result, and compiling the methods takes longer than importing the
modules. Here ``__init__`` is compiled only after :data:`FEW` objects of a class exist, and the
other methods are plain functions. ``dataclasses.fields``, ``asdict`` and ``is_dataclass`` know
these classes as well.

A class with this decorator may extend only classes with this decorator; a standard dataclass may
extend both kinds.

The standard ``NamedTuple`` compiles a constructor and each annotation. Here it compiles nothing.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]  # items of all named tuples
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Return a class as ``dataclasses.dataclass`` does.

        Args:
            cls: the class; None returns a decorator.
            options: ``frozen``, ``slots``, ``eq`` or ``kw_only``.
        """
        if cls is None:
            return lambda cls: _Declaration(cls, **options).made()
        return _Declaration(cls, **options).made()

    def field(**options: Any) -> _Field:
        """Return a field; the keywords are those of ``dataclasses.field`` except ``init``."""
        return _Field(options)

    def replace(record: Any, /, **changes: Any) -> Any:
        """Return a copy in which some fields have other values."""
        declared = type(record).__dict__.get("__lazy_dataclass__")
        if declared is None:
            import dataclasses

            return dataclasses.replace(record, **changes)
        names = declared.fields()
        return type(record)(**{name: getattr(record, name) for name in names} | changes)

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


FEW = 32
"""Number of a class's first objects that are made without a compiled ``__init__``."""

_NONE = object()
_set = object.__setattr__
_STANDARD = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")


def _annotations(cls: type) -> dict[str, Any]:
    """Annotations in the body of a class, read without importing ``inspect``, which is slow."""
    found: dict[str, Any] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 - see above
    return found


class _Field:
    """Keyword arguments of a call of :func:`field`."""

    __slots__ = ("options",)

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options


class _Declaration:
    """A class and the keyword arguments of its ``@dataclass`` decorator."""

    __slots__ = (
        "cls", "eq", "filled", "frozen", "getter", "known", "kw_only", "own", "slots", "stub",
    )  # fmt: skip

    def __init__(
        self,
        cls: Any,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        kw_only: bool = False,
    ) -> None:
        self.cls = cls
        self.known: dict[str, dict[str, Any]] | None = None
        self.filled = 0
        self.getter: Any = None
        self.frozen, self.slots, self.eq, self.kw_only = frozen, slots, eq, kw_only
        self.own = {
            name: cls.__dict__.get(name, _NONE)
            for name, kind in _annotations(cls).items()
            if not str(kind).startswith(("ClassVar", "typing.ClassVar"))
        }

    def made(self) -> Any:
        """Return the dataclass: the declared class with its methods; with slots, a new class."""
        cls, members = self.cls, self.cls.__dict__
        for base in cls.__mro__[1:]:
            known = base.__dict__
            if "__dataclass_fields__" in known and "__lazy_dataclass__" not in known:
                raise TypeError(f"{cls.__name__} extends {base.__name__}, a standard dataclass")
        added = _methods(self)
        self.stub = added["__init__"]
        added |= _ATTRIBUTES
        # A class with __eq__ alone has __hash__ None.
        added = {name: each for name, each in added.items() if members.get(name) is None}
        added["__lazy_dataclass__"] = self
        if self.slots:
            bases = cls.__mro__[1:]
            inherited = {name for base in bases for name in base.__dict__.get("__slots__", ())}
            body = {**members, **added, "__qualname__": cls.__qualname__}
            for name in (*self.own, "__dict__", "__weakref__"):
                body.pop(name, None)
            body["__slots__"] = tuple(name for name in self.own if name not in inherited)
            self.cls = type(cls)(cls.__name__, cls.__bases__, body)
            return self.cls
        for name, value in self.own.items():
            if isinstance(value, _Field):
                delattr(cls, name)
                if "default" in value.options:
                    added[name] = value.options["default"]
        for name, value in added.items():
            setattr(cls, name, value)
        return cls

    def fields(self) -> dict[str, dict[str, Any]]:
        """Return each field's options, such as its default, by name; base classes' fields first."""
        if self.known is not None:
            return self.known
        found = {}
        for base in reversed(self.cls.__mro__):
            declared = base.__dict__.get("__lazy_dataclass__")
            for name, value in declared.own.items() if declared is not None else ():
                options = {} if value is _NONE else {"default": value}
                options = value.options if isinstance(value, _Field) else options
                found[name] = {"kw_only": declared.kw_only, **options}
        self.known = found
        return found

    def fill(self, record: Any, values: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Set the fields of *record* without a compiled ``__init__``, for the first objects only.

        Return False for later objects, and for arguments that do not match the fields.

        Args:
            record: the new object.
            values: positional arguments.
            named: keyword arguments.
        """
        if self.filled >= FEW:
            return False
        fields = self.fields()
        ordered = [name for name, options in fields.items() if not options["kw_only"]]
        given = dict(zip(ordered, values, strict=False)) | named
        if len(given) < len(values) + len(named) or not fields.keys() >= named.keys():
            return False  # a repeated field, too many values, or unknown names
        write = _set if self.frozen else setattr
        for name, options in fields.items():
            if name in given:
                write(record, name, given[name])
            elif "default" in options:
                write(record, name, options["default"])
            elif "default_factory" in options:
                write(record, name, options["default_factory"]())
            else:
                return False
        self.filled += 1
        if hasattr(record, "__post_init__"):
            record.__post_init__()
        return True

    def compile(self) -> None:
        """Add the compiled ``__init__`` to the class, unless the class itself defines one."""
        if self.cls.__dict__["__init__"] is not self.stub:
            return
        names: dict[str, Any] = {"_set": _set, "_NONE": _NONE}
        parameters: tuple[list[str], list[str]] = ["self"], []
        lines = ["self.__post_init__()"] if hasattr(self.cls, "__post_init__") else []
        fields = self.fields()
        for place, (name, options) in enumerate(fields.items()):
            parameter, value = name, name
            if "default_factory" in options:
                names[f"_make_{name}"] = options["default_factory"]
                parameter += "=_NONE"
                value = f"_make_{name}() if {name} is _NONE else {name}"
            elif "default" in options:
                names[f"_default_{name}"] = options["default"]
                parameter += f"=_default_{name}"
            parameters[options["kw_only"]].append(parameter)
            line = f"_set(self, {name!r}, {value})" if self.frozen else f"self.{name} = {value}"
            lines.insert(place, line)
        listed = [*parameters[0], *(["*"] if parameters[1] else []), *parameters[1]]
        source = f"def __init__({', '.join(listed)}):\n " + "\n ".join(lines or ["pass"])
        exec(source, names)
        function = names["__init__"]
        function.__qualname__ = f"{self.cls.__qualname__}.__init__"
        bases = reversed(self.cls.__mro__)
        known = {name: kind for base in bases for name, kind in _annotations(base).items()}
        function.__annotations__ = {name: known[name] for name in fields} | {"return": None}
        self.cls.__init__ = function

    def standard(self) -> Any:
        """Return an equivalent class made by the standard ``dataclass`` decorator."""
        import dataclasses

        body = {
            name: dataclasses.field(**value.options) if isinstance(value, _Field) else value
            for name, value in self.own.items()
            if value is not _NONE
        }
        body["__annotations__"] = _annotations(self.cls)
        body["__module__"] = self.cls.__module__
        bases: Any = filter(dataclasses.is_dataclass, self.cls.__bases__)
        plain: Any = type(self.cls.__name__, tuple(bases), body)
        options = {"frozen": self.frozen, "eq": self.eq, "kw_only": self.kw_only}
        made: Any = dataclasses.dataclass(**options)(plain)
        for name in _STANDARD:
            if isinstance(self.cls.__dict__.get(name), _Attribute):
                setattr(self.cls, name, getattr(made, name))
        return made


class _Attribute:
    """A class attribute with a value that all classes share, computed at the first access."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, record: object, owner: Any) -> Any:
        declaration: _Declaration = owner.__lazy_dataclass__
        if self.name != "__signature__":
            return getattr(declaration.standard(), self.name)
        declaration.compile()
        raise AttributeError(self.name)  # so inspect reads it from __init__


_ATTRIBUTES = {name: _Attribute(name) for name in (*_STANDARD, "__signature__")}


def _methods(declaration: _Declaration) -> dict[str, Any]:
    """Return the methods of a class, by name; only ``__init__`` differs between classes."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        if not declaration.fill(self, values, named):
            declaration.compile()
            declaration.cls.__init__(self, *values, **named)

    methods: dict[str, Any] = {"__init__": __init__, "__repr__": _repr, "__replace__": replace}
    if declaration.eq:
        methods["__eq__"] = _eq
        methods["__hash__"] = _hash if declaration.frozen else None
    if declaration.frozen:
        methods |= {"__setattr__": _setattr, "__delattr__": _delattr}
        if declaration.slots:
            methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
    return methods


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return bool(_compared(self) == _compared(other))


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _compared(record: Any) -> Any:
    declaration = type(record).__lazy_dataclass__
    if declaration.getter is None:
        fields = declaration.fields().items()
        names = [name for name, options in fields if options.get("compare", True)]
        declaration.getter = attrgetter(*names) if names else lambda record: ()
    return declaration.getter(record)


def _setattr(self: Any, name: str, value: object) -> None:
    _refuse("assign to", self, name)
    _set(self, name, value)


def _delattr(self: Any, name: str) -> None:
    _refuse("delete", self, name)
    object.__delattr__(self, name)


def _refuse(what: str, record: object, name: str) -> None:
    declaration = type(record).__lazy_dataclass__  # type: ignore[attr-defined]  # of this decorator
    if type(record) is declaration.cls or name in declaration.fields():
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {what} field {name!r}")


def _repr(self: Any) -> str:
    fields = type(self).__lazy_dataclass__.fields().items()
    names = [name for name, options in fields if options.get("repr", True)]
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
    return f"{type(self).__qualname__}({shown})"


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in type(self).__lazy_dataclass__.fields()]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(type(self).__lazy_dataclass__.fields(), state, strict=True):
        _set(self, name, value)


def _completed(cls: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Values of all fields of the class *cls*, in order.

    Args:
        cls: the class.
        values: positional arguments.
        named: keyword arguments.

    Raises:
        TypeError: a field has no value or two values, or a keyword names no field.
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
