"""Reads options of custom operators, which are encoded as a FlexBuffer map."""

from __future__ import annotations

from typing import Any

from delegraph.errors import OperatorError


def flexbuffer_value(data: bytes) -> Any:
    """Return the content of the FlexBuffer *data*: a dict, a list, a number, text or bytes.

    Raises:
        OperatorError: *data* is no FlexBuffer.
    """
    from flatbuffers import flexbuffers  # lazy import: few models have such options

    try:
        return flexbuffers.Loads(data)
    except Exception as error:  # damage shows as struct.error, IndexError and more
        raise OperatorError(f"custom options are no FlexBuffer: {error}") from error


def flexbuffer_options(data: bytes) -> dict[str, Any]:
    """Return the options encoded in *data*; an empty dict if *data* is empty.

    Raises:
        OperatorError: *data* is no FlexBuffer map.
    """
    if not data:
        return {}
    loaded = flexbuffer_value(data)
    if not isinstance(loaded, dict):
        raise OperatorError(f"custom options are a {type(loaded).__name__}, expected a map")
    return loaded


def integer_option(options: dict[str, Any], name: str, least: int) -> int:
    """Return the option *name* in *options* as an integer, at least *least*; 0 if it is absent.

    Raises:
        OperatorError: the option is no number, or is below *least*.
    """
    value = options.get(name, 0)
    if not isinstance(value, (int, float)) or int(value) < least:
        raise OperatorError(f"option {name} is {value!r}, expected a number from {least} up")
    return int(value)
