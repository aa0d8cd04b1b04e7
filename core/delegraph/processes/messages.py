"""Messages between processes: JSON, followed by the bytes of arrays.

Nothing is pickled, so the message of a broken process cannot run code in the reader. Records are
restored as objects of a class only if the reader has named the class.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from delegraph import errors
from delegraph.errors import DelegraphError, in_words

_HEADER = struct.Struct("<4sQ")  # the mark, and the bytes of JSON that follow
_MARK = b"DgM1"
_PLAIN = (type(None), bool, int, float, str)


def write(stream: BinaryIO, value: Any) -> None:
    """Write a message to a stream.

    Args:
        stream: stream to the other process.
        value: lists, tuples and dictionaries of plain values, paths, ``bytes``, NumPy arrays,
            numbers and dtypes, dataclasses, named tuples, enums and errors.

    Raises:
        TypeError: *value* contains a value of an unsupported type; nothing is written.
        OSError: the other process has ended.
    """
    buffers: list[bytes | memoryview] = []
    plain = _plain(value, buffers)
    text = json.dumps([plain, [len(each) for each in buffers]]).encode()
    stream.write(_HEADER.pack(_MARK, len(text)) + text)
    for each in buffers:
        stream.write(each)
    stream.flush()


def read(stream: BinaryIO, records: Sequence[type] = ()) -> Any:
    """Return the next message of a stream.

    Args:
        stream: stream from the other process.
        records: the dataclasses, named tuples and enums that the message may hold.

    Raises:
        EOFError: the other process has ended.
        OSError: the child sent no valid message.
    """
    try:
        mark, size = _HEADER.unpack(_whole(stream, _HEADER.size))
        if mark != _MARK:
            raise OSError(f"no message begins with {mark!r}")
        plain, sizes = json.loads(bytes(_whole(stream, size)))
        buffers = [_whole(stream, size) for size in sizes]
        return _Reader(buffers, {kind.__name__: kind for kind in records}).value(plain)
    except (EOFError, OSError):
        raise
    except Exception as error:  # data from a broken process may raise any error here
        raise OSError(f"a message that cannot be read: {in_words(error)}") from error


def _whole(stream: BinaryIO, size: int) -> memoryview:
    found = view = np.empty(size, np.uint8).data
    while view:
        count = stream.readinto(view)  # type: ignore[attr-defined]  # every binary stream has it
        if not count:
            raise EOFError("the other process has closed its end")
        view = view[count:]
    return found


# -- writing ---------------------------------------------------------------------------------------


def _plain(value: Any, buffers: list[bytes | memoryview]) -> Any:
    """Return *value* as JSON; types that JSON lacks become dictionaries ``{kind: content}``.

    The bytes of arrays are added to *buffers*.
    """
    if type(value) in _PLAIN:
        return value
    if type(value) is list:
        return [_plain(each, buffers) for each in value]
    if type(value) is tuple:
        return {"tuple": [_plain(each, buffers) for each in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_plain(k, buffers), _plain(v, buffers)] for k, v in value.items()]}
    if isinstance(value, Path):
        return {"path": str(value)}
    if isinstance(value, bytes):
        buffers.append(value)
        return {"bytes": len(buffers) - 1}
    if isinstance(value, np.ndarray | np.generic):
        return _plain_array(value, buffers)
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"type": _dtype_name(np.dtype(value))}
    if isinstance(value, Enum):
        return {"enum": [type(value).__name__, value.value]}
    if isinstance(value, Exception):
        return {"error": _plain(_error_parts(value), buffers)}
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value) if each.init]
    elif isinstance(value, tuple):
        names = list(value._fields)  # type: ignore[attr-defined]  # a named tuple: tuples are above
    else:
        raise TypeError(f"a {type(value).__name__} cannot be sent to another process")
    content = {name: _plain(getattr(value, name), buffers) for name in names}
    return {"record": [type(value).__name__, content]}


def _plain_array(value: Any, buffers: list[bytes | memoryview]) -> dict[str, Any]:
    if value.dtype.hasobject:
        items = [_plain(each, buffers) for each in value.ravel().tolist()]
        return {"objects": [list(value.shape), items]}
    flat = np.ascontiguousarray(value).reshape(-1)  # not copied, if it is contiguous
    buffers.append(flat.view(np.uint8).data if flat.itemsize else b"")
    name = _dtype_name(value.dtype)
    kind = "array" if isinstance(value, np.ndarray) else "scalar"
    return {kind: [name, list(value.shape), len(buffers) - 1]}


def _dtype_name(dtype: np.dtype[Any]) -> str:
    """Name of *dtype*, from which :func:`_dtype` makes the dtype, also for ``ml_dtypes``."""
    return dtype.str if np.dtype(dtype.str) == dtype else dtype.name


def _error_parts(error: Exception) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return class name, arguments and attributes of an error; unknown errors become text."""
    for kind in type(error).__mro__:
        if kind.__module__ == errors.__name__:
            try:
                _plain([error.args, vars(error)], [])
            except TypeError:
                break
            return kind.__name__, error.args, vars(error)
    return DelegraphError.__name__, (in_words(error),), {}


# -- reading ---------------------------------------------------------------------------------------


class _Reader:
    """Restores values from JSON, with one method for each kind."""

    def __init__(self, buffers: Sequence[memoryview], records: Mapping[str, type]) -> None:
        self._buffers, self._records = buffers, records

    def value(self, plain: Any) -> Any:
        """Return the value from which :func:`_plain` made *plain*."""
        if isinstance(plain, list):
            return [self.value(each) for each in plain]
        if not isinstance(plain, dict):
            return plain
        ((kind, content),) = plain.items()
        return _KINDS[kind](self, content)

    def _tuple(self, content: list[Any]) -> tuple[Any, ...]:
        return tuple(self.value(content))

    def _dict(self, content: list[Any]) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in content}

    def _path(self, content: str) -> Path:
        return Path(content)

    def _bytes(self, content: int) -> bytes:
        return bytes(self._buffers[content])

    def _array(self, content: list[Any]) -> np.ndarray[Any, Any]:
        name, shape, number = content
        dtype = _dtype(name)
        if dtype.hasobject:
            raise TypeError(f"an array of bytes has no dtype {name!r}")
        return np.ndarray(shape, dtype, self._buffers[number])

    def _scalar(self, content: list[Any]) -> Any:
        return self._array(content)[()]

    def _objects(self, content: list[Any]) -> np.ndarray[Any, Any]:
        shape, items = content
        found = np.empty(len(items), object)
        found[:] = self.value(items)
        return found.reshape(shape)

    def _type(self, content: str) -> type:
        return _dtype(content).type

    def _enum(self, content: list[Any]) -> Any:
        name, value = content
        return self._records[name](value)

    def _record(self, content: list[Any]) -> Any:
        name, attributes = content
        return self._records[name](**{key: self.value(each) for key, each in attributes.items()})

    def _error(self, content: Any) -> DelegraphError:
        name, args, attributes = self.value(content)
        kind = getattr(errors, name)
        if not issubclass(kind, DelegraphError):
            raise TypeError(f"{name!r} is none of our errors")
        error: DelegraphError = _constructor(kind)(kind, *args)
        error.args = args
        error.__dict__.update(attributes)
        return error


_KINDS: Mapping[str, Callable[[_Reader, Any], Any]] = {
    "tuple": _Reader._tuple,
    "dict": _Reader._dict,
    "path": _Reader._path,
    "bytes": _Reader._bytes,
    "array": _Reader._array,
    "scalar": _Reader._scalar,
    "objects": _Reader._objects,
    "type": _Reader._type,
    "enum": _Reader._enum,
    "record": _Reader._record,
    "error": _Reader._error,
}


def _constructor(kind: type) -> Callable[..., Any]:
    """Return the ``__new__`` that Python calls for an error of *kind*, also of two built-in bases.

    ``kind.__new__`` may be that of the other base, which refuses the class.
    """
    while "__new__" not in vars(kind) and kind.__base__ is not None:
        kind = kind.__base__
    return kind.__new__


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        found: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), name))
        return found
