"""Conversions between strings and numbers, and to and from base 64."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require_bytes
from delegraph_flex.numpy_executor.number_parser import PARSED, number_parser
from delegraph_flex.numpy_executor.operators.strings import each
from delegraph_flex.numpy_executor.registry import COMPLEX, INTEGERS, operator

_PRINTED_FLOATS = (DataType.FLOAT32, DataType.FLOAT64)


@operator("AsString")
def as_string(node: FlexNode) -> Step:
    """Return a function that converts numbers to text, in the formats of C's ``printf``."""
    type = node.type("T")
    if type is DataType.BOOL:
        return _each_number(lambda value: b"true" if value else b"false")
    if type is DataType.STRING:
        return lambda x: x
    precision, width, fill = node.int("precision", -1), node.int("width", -1), node.text("fill", "")
    if fill not in ("", " ", "-", "0", "+"):
        raise Unsupported(f"fill is {fill!r}, expected a blank, '-', '0' or '+'")
    form = f"%{fill}{width if width > -1 else ''}"
    longest = max(width, 0) + max(precision, 0)
    if type in INTEGERS:
        if precision >= 0 or node.bool("scientific", False) or node.bool("shortest", False):
            raise Unsupported("precision, scientific and shortest are for floats")
        return _each_number(lambda value: (form + "d").__mod__(value).encode(), longest)
    if type not in (*_PRINTED_FLOATS, *COMPLEX):
        raise Unsupported(f"AsString of {type.name}", "dtype")
    form += (f".{precision}" if precision > -1 else "") + _float_letter(node)
    if type in COMPLEX:
        both = f"({form},{form})"
        return _each_number(lambda value: (both % (value.real, value.imag)).encode(), 2 * longest)
    return _each_number(lambda value: (form % value).encode(), longest)


def _float_letter(node: FlexNode) -> str:
    scientific, shortest = node.bool("scientific", False), node.bool("shortest", False)
    if scientific and shortest:
        raise Unsupported("scientific and shortest exclude each other")
    return "e" if scientific else "g" if shortest else "f"


def _each_number(function: Callable[[Any], bytes], longest: int = 0) -> Step:
    """Return the function that converts numbers to text by *function*.

    *longest* is the length in bytes that the options alone require, for the memory check.
    """

    def run(x: NDArray[Any]) -> NDArray[Any]:
        require_bytes(np.size(x) * longest, f"text of {longest} bytes for {np.size(x)} numbers")
        result = np.empty(np.shape(x), object)
        flat = result.reshape(-1)
        for i, value in enumerate(np.asarray(x).reshape(-1).tolist()):
            flat[i] = function(value)
        return result

    return run


@operator("StringToNumber")
def to_number(node: FlexNode) -> Step:
    """Return a function that converts text to numbers."""
    type = node.type("out_type", DataType.FLOAT32)
    if type not in PARSED:
        raise Unsupported(f"StringToNumber to {type.name}", "dtype")
    parse = number_parser(type)

    def one(value: bytes) -> Any:
        number = parse(value)
        if number is None:
            raise ValueError(
                f"could not correctly convert string: {value.decode(errors='replace')}"
            )
        return number

    return each(one, type.dtype)


@operator("EncodeBase64")
def encode_base64(node: FlexNode) -> Step:
    """Return a function that encodes strings in URL-safe base 64, optionally padded with ``=``."""
    if node.bool("pad", False):
        return each(base64.urlsafe_b64encode)
    return each(lambda value: base64.urlsafe_b64encode(value).rstrip(b"="))


_BASE64 = re.compile(rb"[A-Za-z0-9_-]*={0,2}")


@operator("DecodeBase64")
def decode_base64(node: FlexNode) -> Step:
    """Return a function that decodes strings in URL-safe base 64, padded or not."""

    def one(value: bytes) -> bytes:
        text = value.rstrip(b"=")
        if not _BASE64.fullmatch(value) or len(text) % 4 == 1:
            raise ValueError(f"invalid base 64: {value!r}")
        try:
            return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
        except binascii.Error as error:
            raise ValueError(f"invalid base 64: {value!r}: {error}") from error

    return each(one)
