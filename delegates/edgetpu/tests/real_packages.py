"""Executables as the real compiler makes them, as far as they can be read; their code is noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flatbuffers

IDENTIFIER = b"DWN1"
PARAMETER_CACHING, EXECUTION_ONLY = 1, 2


def package(*executables: bytes, compiler: str = "cl/1234", runtime: int = 13) -> bytes:
    """Return a package of executables, a multiple of 4096 bytes."""
    multi = flatbuffers.Builder()
    strings = [multi.CreateString(content) for content in executables]
    vector = _offsets(multi, strings)
    multi.StartObject(1)
    multi.PrependUOffsetTRelativeSlot(0, vector, 0)
    multi.Finish(multi.EndObject())
    builder = flatbuffers.Builder()
    content = builder.CreateByteVector(bytes(multi.Output()))
    version = builder.CreateString(compiler)
    builder.StartObject(8)
    builder.PrependInt32Slot(0, runtime, 0)
    builder.PrependUOffsetTRelativeSlot(1, content, 0)
    builder.PrependUOffsetTRelativeSlot(4, version, 0)
    builder.Finish(builder.EndObject(), file_identifier=IDENTIFIER)
    made = bytes(builder.Output())
    return made + bytes(-len(made) % 4096)


def executable(
    kind: int,
    *,
    parameters: int = 0,
    token: int = 77,
    inputs: Sequence[tuple[str, int]] = (),
    outputs: Sequence[tuple[str, int]] = (),
) -> bytes:
    """Return an executable of a package.

    Args:
        kind: what it is for.
        parameters: bytes of them.
        token: caching token.
        inputs: names and depths.
        outputs: names and depths.
    """
    builder = flatbuffers.Builder()
    code = builder.CreateByteVector(b"\x5a" * 100)
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, code, 0)
    streams = _offsets(builder, [builder.EndObject()])
    weights = builder.CreateByteVector(bytes(parameters))
    layers = [_offsets(builder, [_layer(builder, *e) for e in ends]) for ends in (inputs, outputs)]
    chip = builder.CreateString("beagle")
    builder.StartObject(17)
    builder.PrependInt32Slot(4, 256, 0)
    for slot, offset in ((5, streams), (6, weights), (8, layers[0]), (9, layers[1]), (10, chip)):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.PrependInt16Slot(13, kind, 0)
    builder.PrependUint64Slot(14, token, 0)
    builder.PrependInt64Slot(16, 4321, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def small_package(*, inputs: Sequence[str] = ("x",), outputs: Sequence[str] = ("y",)) -> bytes:
    """Return a package with 3000 bytes of parameters on the chip and 40 that are streamed."""
    return package(
        executable(
            EXECUTION_ONLY,
            parameters=40,
            inputs=[(name, 6) for name in inputs],
            outputs=[(name, 6) for name in outputs],
        ),
        executable(PARAMETER_CACHING, parameters=3000),
    )


def _layer(builder: Any, name: str, depth: int) -> int:
    builder.StartObject(2)
    builder.PrependInt32Slot(0, 3, 0)
    builder.PrependFloat32Slot(1, 0.5, 0.0)
    numerics = builder.EndObject()
    text = builder.CreateString(name)
    builder.StartObject(11)
    builder.PrependUOffsetTRelativeSlot(0, text, 0)
    for slot, number in ((1, depth + 2), (2, 1), (3, 4), (4, depth)):
        builder.PrependInt32Slot(slot, number, 0)
    builder.PrependUOffsetTRelativeSlot(5, numerics, 0)
    builder.PrependInt16Slot(6, 8, 0)
    made: int = builder.EndObject()
    return made


def _offsets(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    made: int = builder.EndVector()
    return made
