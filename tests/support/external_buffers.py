"""Models whose constants are in another file."""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model

FIRST_ID = 0x80000000


def with_external_buffers(
    content: bytes, name: str = "weights.bin", **changes: Any
) -> tuple[bytes, bytes]:
    """Return a model without its large constants, and the file that contains them.

    Args:
        content: a model.
        name: name of the file.
        changes: fields of the first external buffer.
    """
    record = read_model(np.frombuffer(content, np.uint8))
    (subgraph,) = record.subgraphs or ()
    buffers, tensors = list(record.buffers or ()), list(subgraph.tensors or ())
    external: list[tables.ExternalBuffer] = []
    weights = bytearray(64)
    for index, tensor in enumerate(tensors):
        data = buffers[tensor.buffer].data if tensor.buffer else None
        if data is None or len(data) < 256:
            continue
        number = FIRST_ID + len(external)
        external.append(
            tables.ExternalBuffer(
                id=number, group=0, offset=len(weights), length=len(data), packing="unpacked"
            )
        )
        weights += data.tobytes() + bytes(-len(data) % 64)
        buffers[tensor.buffer] = tables.Buffer()
        tensors[index] = tensor.replace(buffer=0, external_buffer=number)
    external[0] = external[0].replace(**changes)
    changed = record.replace(
        buffers=tuple(buffers),
        subgraphs=(subgraph.replace(tensors=tuple(tensors)),),
        external_buffer_groups=(tables.ExternalBufferGroup(name=name),),
        external_buffers=tuple(external),
    )
    return write_model(changed), bytes(weights)
