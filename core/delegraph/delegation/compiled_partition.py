"""Format of partitions that a delegate compiled ahead of time, inside a model file.

Each compiled partition is one custom operator, ``delegraph-compiled``. Its inputs are the
partition's inputs and, last, the blob: a UINT8 constant with the output of the delegate's compiler.
Its custom options are a :class:`CompiledPartition` as JSON, in UTF-8.

Model files are untrusted, so everything is checked here before it is used or shown.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import DelegraphError, MalformedModelError
from delegraph.graph.model import Model, OperatorSpec
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.tensor import Tensor

CUSTOM_OP = "delegraph-compiled"
"""Custom code of the operator, whose version is 1."""

FORMAT = 1
"""Version of the custom options."""

MAX_OPTIONS = 64 << 10
"""Largest number of bytes of the custom options."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_VERSION = re.compile(r"[\x20-\x7e]{0,200}")
_TEXT = re.compile(r"[^\x00-\x1f\x7f]{0,4000}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MAX_NUMBER = (1 << 31) - 1
"""Largest dimension in a file, and so the largest number of bytes of a blob."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompiledPartition:
    """Description, in a model file, of a partition that was compiled ahead of time.

    Attributes:
        delegate: name of the delegate.
        distribution: the distribution that provides the delegate.
        distribution_version: version of the distribution that compiled the partition; may be empty.
        version: version of the blob's format; only a compiler of the same version loads it.
        options: the delegate's options, ``key=value,key=value``.
        operators: mapping from the name of each compiled operator to the number of its nodes.
        inputs: shapes of the node's inputs, without the blob.
        outputs: shapes of the node's outputs; None for a shape that is known only while invoking.
        partition_digest: ``PartitionModel.digest`` of the partition.
        blob_digest: SHA-256 of the blob, as hexadecimal digits.
        blob_bytes: length of the blob.
    """

    delegate: str
    distribution: str
    distribution_version: str
    version: str
    options: str
    operators: Mapping[str, int]
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape | None, ...]
    partition_digest: str
    blob_digest: str
    blob_bytes: int

    @property
    def provider(self) -> str:
        """The distribution that compiled the partition, with its version, for messages."""
        return f"{self.distribution} {self.distribution_version}".strip()

    @property
    def address(self) -> str:
        """The delegate's name and options in the syntax of the command line."""
        return f"{self.delegate}:{self.options}" if self.options else self.delegate

    @property
    def nodes(self) -> int:
        """Number of the model's nodes that were compiled."""
        return sum(self.operators.values())

    @property
    def listed_operators(self) -> str:
        """Names of the compiled operators with their numbers, the most frequent first."""
        counts = sorted(self.operators.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(op if n == 1 else f"{op} x{n}" for op, n in counts)

    def custom_options(self) -> bytes:
        """Return the custom options of the operator.

        Raises:
            DelegraphError: an attribute has a value that the reader rejects, or the options have
                too many bytes.
        """
        content = json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")).encode()
        try:
            read_custom_options(content)
        except MalformedModelError as error:
            raise DelegraphError(f"delegate {self.delegate!r}: {error}") from error
        return content

    def facts(self) -> dict[str, str]:
        """Facts about the partition, as a mapping from a title to a text, for commands to print."""
        return {
            "compiled for": f"delegate {self.address}, by {self.provider}",
            "version": self.version,
            "nodes": f"{self.nodes}: {self.listed_operators}",
            "blob": f"{self.blob_bytes:,} bytes, SHA-256 {self.blob_digest[:16]}...",
            "partition": f"SHA-256 {self.partition_digest[:16]}...",
        }

    def blob(self, tensor: Tensor) -> bytes:
        """Return the blob that the node's last input holds.

        Raises:
            MalformedModelError: the blob is damaged.
        """
        data = tensor.data
        if data is None or not tensor.is_constant or data.dtype != np.uint8:
            raise MalformedModelError("its last input is no constant of UINT8")
        if data.nbytes != self.blob_bytes:
            raise MalformedModelError(
                f"its blob has {data.nbytes} bytes, expected {self.blob_bytes}"
            )
        content: bytes = data.tobytes()
        found = hashlib.sha256(content).hexdigest()
        if found != self.blob_digest:
            raise MalformedModelError(
                f"its blob has the SHA-256 {found[:16]}..., expected {self.blob_digest[:16]}..."
            )
        return content


def compiled_partitions(model: Model) -> dict[tuple[int, int], CompiledPartition]:
    """Return the compiled partitions of a model by index of subgraph and operator.

    Raises:
        MalformedModelError: a compiled partition is damaged; the error names its operator.
    """
    found = {}
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            if operator.is_custom and operator.name == CUSTOM_OP:
                try:
                    found[subgraph.index, operator.index] = compiled_partition(operator)
                except MalformedModelError as error:
                    where = f"operator {operator.index} of subgraph {subgraph.index} ({CUSTOM_OP})"
                    raise MalformedModelError(f"{where}: {error}") from error
    return found


def compiled_partition(operator: OperatorSpec) -> CompiledPartition:
    """Return the compiled partition that an operator of the file holds.

    Raises:
        MalformedModelError: the compiled partition is damaged.
    """
    found = read_custom_options(_bytes(operator.custom_options))
    if min((*operator.inputs, *operator.outputs), default=-1) < 0:
        raise MalformedModelError("it lacks an input or output")
    numbers = (len(operator.inputs) - 1, len(operator.outputs))
    if numbers != (len(found.inputs), len(found.outputs)):
        raise MalformedModelError(
            f"it has {numbers[0]} inputs and {numbers[1]} outputs, compiled were "
            f"{len(found.inputs)} and {len(found.outputs)}"
        )
    return found


def _bytes(content: NDArray[np.uint8] | None) -> bytes:
    return b"" if content is None else content[: MAX_OPTIONS + 1].tobytes()


def read_custom_options(content: bytes) -> CompiledPartition:
    """Return the compiled partition that an operator's custom options describe.

    Raises:
        MalformedModelError: the options are damaged.
    """
    if len(content) > MAX_OPTIONS:
        raise MalformedModelError(f"its options have over {MAX_OPTIONS} bytes")
    try:
        found: object = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise MalformedModelError(f"its options are no JSON: {type(error).__name__}") from error
    if not isinstance(found, dict):
        raise MalformedModelError("its options are no JSON object")
    if found.pop("format", None) != FORMAT:
        raise MalformedModelError(
            f"its options are of another format than {FORMAT}; another version of delegraph "
            "compiled it"
        )
    if found.keys() != _READERS.keys():
        raise MalformedModelError(f"its options have the keys {sorted(found)[:20]}")
    return CompiledPartition(**{key: _read(key, value) for key, value in found.items()})


def _read(key: str, value: object) -> Any:
    try:
        return _READERS[key](value)
    except (TypeError, ValueError) as error:
        raise MalformedModelError(f"{key!r} of its options has a wrong type or value") from error


def _text(pattern: re.Pattern[str]) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError
        return value

    return read


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_NUMBER:
        raise ValueError
    return value


def _blob_bytes(value: object) -> int:
    if _number(value) == 0:  # a buffer without bytes is no constant
        raise ValueError
    return _number(value)


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _shape(value: object) -> Shape:
    return tuple(map(_number, _list(value)))


def _inputs(value: object) -> tuple[Shape, ...]:
    return tuple(map(_shape, _list(value)))


def _outputs(value: object) -> tuple[Shape | None, ...]:
    return tuple(None if shape is None else _shape(shape) for shape in _list(value))


def _operators(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        raise TypeError
    return {_text(_TEXT)(name): _number(count) for name, count in value.items()}


_READERS: dict[str, Callable[[object], Any]] = {
    "delegate": _text(_NAME),
    "distribution": _text(_NAME),
    "distribution_version": _text(_VERSION),
    "version": _text(_VERSION),
    "options": _text(_TEXT),
    "operators": _operators,
    "inputs": _inputs,
    "outputs": _outputs,
    "partition_digest": _text(_DIGEST),
    "blob_digest": _text(_DIGEST),
    "blob_bytes": _blob_bytes,
}
"""Function that reads each field; it raises ``ValueError`` or ``TypeError`` for a wrong value."""
