"""Custom options of a Flex operator: a FlexBuffer vector of an operator's name and a NodeDef.

Source:
    tflite/converter/flatbuffer_export.cc; tflite/delegates/flex/kernel.cc.
"""

from __future__ import annotations

from flatbuffers import flexbuffers

from delegraph_flex.node_def import NodeDef, NodeDefError

# FlexBuffer types; the two low bits of a type byte are the code of a width.
_STRING, _VECTOR = 5, 10

PREFIX = "Flex"
"""Beginning of the custom code of every Flex operator."""


def read_custom_options(data: bytes) -> NodeDef:
    """Return the NodeDef in *data*, the custom options of a Flex operator.

    Raises:
        NodeDefError: the options are not in the form that the converter writes.
    """
    try:
        root = flexbuffers.GetRoot(bytes(data))
        vector = root.AsVector if root.IsVector else ()
        items = [item.AsStringBytes for item in vector if item.IsString]
    except Exception as error:
        raise NodeDefError(f"custom options are no FlexBuffer: {error}") from error
    if len(vector) != 2 or len(items) != 2:
        raise NodeDefError(
            "custom options are no vector of two strings, an operator's name and its NodeDef"
        )
    name, node_def = bytes(items[0]), NodeDef.parse(items[1])
    if name != node_def.op.encode():
        raise NodeDefError(
            f"custom options name the operator {name.decode(errors='replace')!r}, "
            f"their NodeDef {node_def.op!r}"
        )
    return node_def


def write_custom_options(node_def: NodeDef) -> bytes:
    """Return *node_def* as the bytes of a Flex operator's custom options.

    The bytes are written here because the FlexBuffer builder accepts only text, and a NodeDef is
    binary.
    """
    strings = (node_def.op.encode(), node_def.serialise())
    size = sum(map(len, strings))
    width = next(width for width in (1, 2, 4) if size + 16 * width < 1 << (8 * width))
    data = bytearray()
    starts = []
    for string in strings:
        data += bytes(-len(data) % width)
        data += len(string).to_bytes(width, "little")
        starts.append(len(data))
        data += string + b"\0"
    data += bytes(-len(data) % width)
    data += len(strings).to_bytes(width, "little")
    vector = len(data)
    for start in starts:
        data += (len(data) - start).to_bytes(width, "little")
    width_code = {1: 0, 2: 1, 4: 2}[width]
    data += bytes([_STRING << 2 | width_code] * len(strings))
    data += bytes(-len(data) % width)
    data += (len(data) - vector).to_bytes(width, "little")
    return bytes(data) + bytes([_VECTOR << 2 | width_code, width])
