"""Reads executables of the real compiler (``DWN1``), and explains why they cannot run.

Real executables are flatbuffers. A package has one or more executables, each with parameters and
with instructions of an undocumented processor.

Source:
    executable/executable.fbs of google-coral/libedgetpu.
"""

from __future__ import annotations

import ctypes.util
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from flatbuffers import encode
from flatbuffers import number_types as numbers
from flatbuffers.packer import uoffset
from flatbuffers.table import Table

from delegraph_edgetpu.devices import CACHE_BYTES, Parameters
from delegraph_edgetpu.errors import ExecutableError
from delegraph_edgetpu.executable import RealExecutable

_MOST = 1024
"""Largest number of executables, layers or chunks of instructions in a valid package."""


class ExecutableKind(IntEnum):
    """Purpose of an executable in a package."""

    STAND_ALONE = 0
    PARAMETER_CACHING = 1
    EXECUTION_ONLY = 2


class DataType(IntEnum):
    """Element types of inputs and outputs."""

    FIXED_POINT8 = 0
    FIXED_POINT16 = 1
    SIGNED_FIXED_POINT32 = 2
    BFLOAT = 3
    HALF = 4
    SINGLE = 5
    SIGNED_FIXED_POINT8 = 8
    SIGNED_FIXED_POINT16 = 9


@dataclass(frozen=True, slots=True)
class Layer:
    """An input or output of an executable.

    Attributes:
        name: name of the layer, usually that of its tensor.
        type: name of the element type in :class:`DataType`, or a number that is not in it.
        shape: height, width and depth.
        bytes: size in bytes, with padding.
        scale: scale of its quantization; 0.0 if absent.
        zero_point: zero point of its quantization.
    """

    name: str
    type: str
    shape: tuple[int, int, int]
    bytes: int
    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class Part:
    """One executable of a package: its kind and its sizes in bytes.

    Attributes:
        kind: name of the kind in :class:`ExecutableKind`, or a number that is not in it.
        parameter_bytes: bytes of weights and biases.
        instruction_bytes: bytes of the device's code.
        scratch_bytes: bytes of working memory for one inference.
        caching_token: caching token of its parameters; 0 for none.
        estimated_cycles: the real compiler's estimate of cycles; 0 if absent.
        inputs: inputs in the file's order.
        outputs: outputs in the file's order.
    """

    kind: str
    parameter_bytes: int
    instruction_bytes: int
    scratch_bytes: int
    caching_token: int
    estimated_cycles: int
    inputs: tuple[Layer, ...]
    outputs: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class RealPackage:
    """All information that can be read from a real executable.

    Attributes:
        bytes: size of the package in bytes.
        compiler_version: version that its compiler wrote; may be empty.
        runtime_version: oldest runtime version that may run it.
        chip: name of the chip for which it was compiled, ``beagle`` or empty.
        parts: its executables.
    """

    bytes: int
    compiler_version: str
    runtime_version: int
    chip: str
    parts: tuple[Part, ...]

    @property
    def streamed_bytes(self) -> int:
        """Number of parameter bytes that are sent at each inference."""
        return sum(
            p.parameter_bytes for p in self.parts if p.kind != ExecutableKind.PARAMETER_CACHING.name
        )

    @property
    def cached_bytes(self) -> int:
        """Number of parameter bytes that are cached on the chip."""
        return sum(part.parameter_bytes for part in self.parts) - self.streamed_bytes


def read_real(executable: RealExecutable) -> RealPackage:
    """Return the readable information of a real executable.

    Raises:
        ExecutableError: the package is damaged.
    """
    content = executable.content
    what = "the package"
    try:
        package = _root(content)
        multi = _root(_content(package, 1))
        parts, chips = [], []
        for i, part in enumerate(_texts(multi, 0)):
            what = f"executable {i} in it"
            root = _root(part)
            parts.append(_part(root))
            chips.append(_text(root, 10))
        what = "the head of the package"
        return RealPackage(
            len(content),
            _text(package, 4),
            _number(package, 0, numbers.Int32Flags),
            next(filter(None, chips), ""),
            tuple(parts),
        )
    except Exception as error:  # damage shows as struct.error, IndexError and other errors
        raise ExecutableError(
            f"the executable (DWN1, {len(content)} bytes) is damaged: {what}: {error!r}"
        ) from error


def parameters_of_real(executable: RealExecutable) -> Parameters:
    """Return the sizes, key and caching token of a real executable's parameters, for a device."""
    package = read_real(executable)
    key = hashlib.blake2b(executable.content, digest_size=16).digest()
    token = next((p.caching_token for p in package.parts if p.caching_token), 0)
    return Parameters(
        key,
        token or int.from_bytes(key[:8], "little"),
        min(package.cached_bytes, CACHE_BYTES),
        package.streamed_bytes,
    )


def explain_refusal(executable: RealExecutable) -> str:
    """Return a text that explains why a real executable cannot run here, with an alternative."""
    library = device_library()
    try:
        version = read_real(executable).compiler_version
    except ExecutableError as error:
        return str(error)
    by = f", compiler {version}" if version not in ("", "cl/") else ""
    text = (
        f"its executable (DWN1, {len(executable.content)} bytes{by}) is code for a real Edge TPU, "
        "which is not simulated. Run the uncompiled model in its place: --delegate "
        "edgetpu:twin=MODEL.tflite, or compile that by `delegraph edgetpu compile MODEL.tflite`"
    )
    if library is None:
        return text
    return (
        f"{text}. {library} is installed here: with a device attached, this file runs by "
        f"experimental_delegates=[load_delegate({library!r})], with the load_delegate of delegraph "
        "or of the official interpreter"
    )


def device_library() -> str | None:
    """Return the name of the library for real devices; None if it is not installed."""
    return ctypes.util.find_library("edgetpu")


# -- reading -----------------------------------------------------------------------------------


def _part(table: Table) -> Part:
    type = _number(table, 13, numbers.Int16Flags)
    return Part(
        _name(ExecutableKind, type),
        len(_content(table, 6)),
        sum(len(_content(stream, 0)) for stream in _tables(table, 5)),
        _number(table, 4, numbers.Int32Flags),
        _number(table, 14, numbers.Uint64Flags),
        _number(table, 16, numbers.Int64Flags) or _number(table, 11, numbers.Int32Flags),
        tuple(map(_layer, _tables(table, 8))),
        tuple(map(_layer, _tables(table, 9))),
    )


def _layer(table: Table) -> Layer:
    dims = [_number(table, i, numbers.Int32Flags) for i in (2, 3, 4)]
    at = table.Offset(_slot(5))
    numerics = None if at == 0 else Table(table.Bytes, table.Indirect(table.Pos + at))
    scale = 0.0 if numerics is None else _number(numerics, 1, numbers.Float32Flags)
    return Layer(
        _text(table, 0),
        _name(DataType, _number(table, 6, numbers.Int16Flags)),
        (dims[0], dims[1], dims[2]),
        _number(table, 1, numbers.Int32Flags),
        float(scale) if math.isfinite(scale) else 0.0,
        0 if numerics is None else _number(numerics, 0, numbers.Int32Flags),
    )


def _name(kind: type[IntEnum], value: int) -> str:
    return kind(value).name if value in set(kind) else str(value)


def _slot(id: int) -> int:
    """Return the position in a vtable of the entry of the field *id*."""
    return 4 + 2 * id


def _root(content: bytes) -> Table:
    return Table(content, encode.Get(uoffset, content, 0))


def _number(table: Table, id: int, flags: Any) -> Any:
    at = table.Offset(_slot(id))
    return table.Get(flags, table.Pos + at) if at else 0


def _vector(table: Table, id: int) -> tuple[int, int]:
    """Return start and length of the vector in field *id* of *table*; (0, 0) if it is absent."""
    at = table.Offset(_slot(id))
    return (table.Vector(at), table.VectorLen(at)) if at else (0, 0)


def _content(table: Table, id: int) -> bytes:
    start, length = _vector(table, id)
    if start + length > len(table.Bytes):
        raise ValueError(f"{length} bytes from byte {start} on, there are {len(table.Bytes)}")
    return bytes(table.Bytes[start : start + length])


def _text(table: Table, id: int) -> str:
    return _content(table, id).decode("utf-8", "backslashreplace")


def _items(table: Table, id: int) -> Iterator[int]:
    """Yield the positions of the references in the vector that is field *id* of *table*."""
    start, length = _vector(table, id)
    if length > _MOST:
        raise ValueError(f"a list of {length}, expected at most {_MOST}")
    return (start + 4 * i for i in range(length))


def _tables(table: Table, id: int) -> list[Table]:
    return [Table(table.Bytes, table.Indirect(at)) for at in _items(table, id)]


def _texts(table: Table, id: int) -> Iterator[bytes]:
    for at in _items(table, id):
        start = table.Indirect(at)
        length = encode.Get(uoffset, table.Bytes, start)
        yield bytes(table.Bytes[start + 4 : start + 4 + length])
