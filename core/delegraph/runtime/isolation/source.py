"""Description from which another process loads a delegate: a name or a file, not an object."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from delegraph.errors import PluginOptionError
from delegraph.json_records import JsonRecord
from delegraph.lazy_dataclass import dataclass

_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class DelegateSource(JsonRecord):
    """Name, options and kind of a delegate, in a form that another process can load.

    Attributes:
        name: name of an installed delegate, with ``dist:`` and options as users write it; or the
            path of a library or a Python file.
        is_python_file: whether *name* is the path of a Python file.
        options: options as text or by name; None means the options in *name*, or the defaults.
        is_compiled: whether the delegate runs partitions that the installed delegate has compiled
            ahead of time.
    """

    name: str
    is_python_file: bool = False
    options: str | Mapping[str, Any] | None = None
    is_compiled: bool = False

    @classmethod
    def of(
        cls, name: str | os.PathLike[str], options: object, *, is_python_file: bool = False
    ) -> DelegateSource:
        """Return the source of the delegate or Python file *name*, with checked options.

        Raises:
            PluginOptionError: the options cannot be written as JSON for another process.
        """
        text = os.fspath(name)
        if options is None or isinstance(options, str):
            return cls(text, is_python_file, options)
        if not isinstance(options, Mapping):
            raise PluginOptionError(
                f"options of delegate {text!r} are a {type(options).__name__}; for a delegate in a "
                "separate process, write them as text or as a dictionary"
            )
        return cls(
            text, is_python_file, {str(key): _plain(text, key, options[key]) for key in options}
        )

    @property
    def shown(self) -> str:
        """Name for messages until the process has sent the delegate's own name."""
        return Path(self.name).stem if self.is_python_file else self.name


def _plain(delegate: str, key: object, value: object) -> object:
    """Return *value* of option *key* in JSON form; the error for other values names *delegate*."""
    if isinstance(value, list | tuple) and all(isinstance(item, _PLAIN) for item in value):
        return list(value)
    if isinstance(value, _PLAIN):
        return value
    raise PluginOptionError(
        f"option {key!r} of delegate {delegate!r} is a {type(value).__name__}; for a delegate in a "
        "separate process, write it as text"
    )
