"""Constants and custom options stored after the flatbuffer, found by offset and size.

Offsets inside a flatbuffer have 32 bits, so files above 2 GB store large parts after it.

Source:
    ``Buffer.offset`` and ``Operator.large_custom_options_offset``,
    tflite/converter/schema/schema.fbs; ``ParseTensors`` and ``ParseNodes``,
    tflite/core/interpreter_builder.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import MalformedModelError
from delegraph.schema.tables import Buffer, Model, Operator, with_operators

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIGNMENT = 16
"""Alignment in bytes of parts after the flatbuffer, as inside."""


def with_parts_inside(model: Model, content: NDArray[np.uint8]) -> Model:
    """Return *model* with the constants and custom options that follow the flatbuffer.

    These parts are views of *content*, the bytes of the whole file.

    Raises:
        MalformedModelError: a part is not inside the file.
    """

    def part(offset: int, size: int, where: str) -> NDArray[np.uint8]:
        if offset + size > len(content):
            raise MalformedModelError(
                f"{where} specified an out of range offset: bytes {offset} to {offset + size} of "
                f"{len(content)}"
            )
        return content[offset : offset + size]

    def buffer(index: int, record: Buffer) -> Buffer:
        if record.offset <= 1 or record.data is not None:
            return record
        return Buffer(data=part(record.offset, record.size, f"Constant buffer {index}"))

    def operator(record: Operator) -> Operator:
        offset, size = record.large_custom_options_offset, record.large_custom_options_size
        if offset <= 1 or record.custom_options is not None:
            return record
        return record.replace(
            custom_options=part(
                offset, size, f"Custom options of opcode_index {record.opcode_index}"
            ),
            large_custom_options_offset=0,
            large_custom_options_size=0,
        )

    if any(record.offset > 1 for record in model.buffers or ()):
        buffers = starmap(buffer, enumerate(model.buffers or ()))
        model = model.replace(buffers=tuple(buffers))
    operators = chain.from_iterable(s.operators or () for s in model.subgraphs or ())
    if any(record.large_custom_options_offset > 1 for record in operators):
        model = with_operators(model, operator)
    return model


def large_parts(model: Model) -> Iterator[NDArray[np.uint8]]:
    """Yield the bytes of all constants and custom options of *model*."""
    for buffer in model.buffers or ():
        if buffer.data is not None:
            yield buffer.data
    for subgraph in model.subgraphs or ():
        for operator in subgraph.operators or ():
            if operator.custom_options is not None:
                yield operator.custom_options


class PartsOutside:
    """A model whose large parts follow the flatbuffer; the first starts at byte *base*.

    Attributes:
        model: the model's records, which refer to the parts by offset and size.
        blobs: the large parts; each starts at a multiple of 16 bytes.
    """

    def __init__(self, model: Model, base: int) -> None:
        self._end = base
        self.blobs: list[NDArray[np.uint8]] = []
        named = {entry.buffer for entry in model.metadata or ()}
        if model.buffers is not None:
            buffers = (
                buffer if index in named else self._buffer(buffer)
                for index, buffer in enumerate(model.buffers)
            )
            model = model.replace(buffers=tuple(buffers))
        self.model = with_operators(model, self._operator)

    def _buffer(self, buffer: Buffer) -> Buffer:
        if buffer.data is None or not len(buffer.data):
            return buffer
        return Buffer(offset=self._append(buffer.data), size=len(buffer.data))

    def _operator(self, operator: Operator) -> Operator:
        options = operator.custom_options
        if options is None or not len(options):
            return operator
        return operator.replace(
            custom_options=None,
            large_custom_options_offset=self._append(options),
            large_custom_options_size=len(options),
        )

    def _append(self, blob: NDArray[np.uint8]) -> int:
        offset = self._end
        self.blobs.append(blob)
        self._end = aligned(offset + len(blob))
        return offset


def aligned(size: int) -> int:
    """Return the first offset from *size* on at which a part may start."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def padded(parts: Sequence[Any]) -> Iterator[Any]:
    """Yield *parts*, each followed by zeros up to the aligned start of the next part."""
    for part in parts:
        yield part
        yield bytes(aligned(len(part)) - len(part))
