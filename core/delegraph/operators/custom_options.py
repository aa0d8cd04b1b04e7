"""Options of a custom operator, as its Python function receives them."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from delegraph.errors import OperatorError
from delegraph.operators.flexbuffer_options import flexbuffer_options, flexbuffer_value


class CustomOptions:
    """Options of a custom operator by name or position; decoded at the first access.

    Attributes:
        raw: the bytes in the model file, which may be no FlexBuffer.

    >>> from flatbuffers import flexbuffers
    >>> options = CustomOptions(bytes(flexbuffers.Dumps({"factor": 2.5})))
    >>> options["factor"], options.get("offset", 0), len(options)
    (2.5, 0, 1)
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @cached_property
    def value(self) -> dict[str, Any] | list[Any]:
        """The decoded options; an empty dict if the node has no options.

        Raises:
            OperatorError: the bytes are no FlexBuffer map or vector.
        """
        loaded = flexbuffer_value(self.raw) if self.raw else {}
        if not isinstance(loaded, dict | list):
            raise OperatorError(
                f"custom options are a {type(loaded).__name__}, expected a map or a vector"
            )
        return loaded

    def __getitem__(self, key: str | int) -> Any:
        """Return the option with the name or position *key*.

        Raises:
            OperatorError: the model lacks the option.
        """
        if key not in self:
            what = ", ".join(map(repr, self.keys())) or "none"
            raise OperatorError(f"the model gives no option {key!r}; it gives: {what}")
        value: Any = self.value
        return value[key]

    def get(self, key: str | int, default: Any = None) -> Any:
        """Return the option *key*, or *default* if the node does not have it."""
        if key not in self:
            return default
        return self[key]

    def keys(self) -> list[Any]:
        """Return the names of the options, or their positions if they are a list."""
        return [*self.value] if isinstance(self.value, dict) else [*range(len(self.value))]

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"CustomOptions({self.raw!r})"


def options_as(kind: object, raw: bytes) -> Any:
    """Convert encoded options to the type that an operator's function declares.

    Args:
        kind: a dataclass, whose fields are the options; or ``bytes``; anything else means
            :class:`CustomOptions`.
        raw: the bytes in the model file.

    Raises:
        OperatorError: the dataclass has no field for an option, does not take its value, or needs
            an option that is missing.
    """
    if kind is bytes:
        return raw
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _as_dataclass(kind, flexbuffer_options(raw))
    return CustomOptions(raw)


def _as_dataclass(kind: type, given: dict[str, Any]) -> object:
    fields = [field for field in dataclasses.fields(kind) if field.init]
    names = {field.name for field in fields}
    unknown = sorted(given.keys() - names)
    if unknown:
        known = ", ".join(sorted(names)) or "none"
        raise OperatorError(f"the model gives option {unknown[0]!r}, known are: {known}")
    needed = {
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    missing = sorted(needed - given.keys())
    if missing:
        raise OperatorError(f"the model gives no option {missing[0]!r}, which is needed")
    hints = typing.get_type_hints(kind)
    try:
        return kind(**{name: _as(hints[name], name, value) for name, value in given.items()})
    except (ValueError, TypeError) as error:
        raise OperatorError(f"custom options: {error}") from error


def _as(kind: object, name: str, value: object) -> object:
    """Return *value* if it is of type *kind*; whole numbers are accepted as floats.

    *name* is the name of the option, for the error.
    """
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in (bool, int, float, str, bytes) and type(value) is not kind:
        expected = kind.__name__ if isinstance(kind, type) else kind
        raise OperatorError(f"option {name!r} is {value!r}, expected {expected}")
    return value


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Signature of a function, even if its annotations use undefined names.

    Python 3.14 allows such functions, since it evaluates annotations only when they are read.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def options_kind(function: Callable[..., Any]) -> object:
    """Annotation of the function's parameter ``options``; None if it has no annotation."""
    annotation = signature_of(function).parameters["options"].annotation
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, inspect.unwrap(function).__globals__)  # its module's own text
    except Exception as error:
        raise OperatorError(
            f"options of {function.__qualname__} are annotated {annotation!r}, which its module "
            f"does not know: {error}"
        ) from error
