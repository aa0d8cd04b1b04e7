from __future__ import annotations

import re
import struct
import subprocess
import sys
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as generated
from flatbuffers import number_types

from delegraph.errors import MalformedModelError
from delegraph.schema import read_model, tables, write_model
from delegraph.schema.enums import TensorType
from delegraph.schema.options import Conv2DOptions, PackOptions
from delegraph.schema.table import Scalar, ScalarVector, String, Table, Union
from delegraph.testing import constant, one_op_model, tensor
from support.corpus import CORPUS, corpus_rows, needs_corpus


def read(content: bytes | bytearray) -> tables.Model:
    return read_model(np.frombuffer(content, np.uint8))


def small_model() -> bytes:
    x, y = tensor((1, 4, 4, 3), name="input"), tensor((1, 4, 4, 2), name="output")
    weight = constant(np.zeros((2, 1, 1, 3), np.float32), scale=[0.5, 0.25], axis=0)
    return one_op_model("CONV_2D", [x, weight, None], [y], Conv2DOptions(stride_w=1, stride_h=1))


def test_a_written_operator_is_read() -> None:
    graph = (read(small_model()).subgraphs or ())[0]
    assert graph.operators is not None
    assert graph.operators[0].inputs == (0, 1, -1)
    assert graph.operators[0].builtin_options == Conv2DOptions(stride_w=1, stride_h=1)
    assert [t.name for t in graph.tensors or ()] == ["input", "t1", "output"]


@pytest.mark.parametrize("shift", range(1, 17))
def test_alignment_does_not_matter(shift: int) -> None:
    memory = bytearray(shift) + small_model()
    assert read_model(np.frombuffer(memory, np.uint8)[shift:]) == read(small_model())


def test_misaligned_offsets_inside_the_file_are_read() -> None:
    """Put the root table 1 byte further than the builder may."""
    builder = flatbuffers.Builder()
    builder.StartObject(1)
    builder.PrependUint32Slot(0, 3, 0)
    builder.Finish(builder.EndObject(), b"TFL3")
    content = bytearray(builder.Output())
    root = struct.unpack_from("<I", content)[0]
    moved = content[:8] + b"\0" + content[8:]
    struct.pack_into("<I", moved, 0, root + 1)
    assert read(moved).version == 3


def test_arrays_are_views_of_the_file_that_cannot_be_written() -> None:
    data = np.arange(64, dtype=np.uint8)
    content = np.frombuffer(write_model(tables.Model(buffers=(tables.Buffer(data=data),))), "u1")
    view = (read_model(content).buffers or ())[0].data
    assert view is not None
    assert np.shares_memory(view, content)
    assert not view.flags.writeable


def built(table: str, slots: dict[int, tuple[Any, int]]) -> Any:
    """Return a function that builds a table with scalar *slots*, known to the schema or not."""

    def build(builder: Any) -> int:
        builder.StartObject(max(slots) + 1)
        for field_id, (flags, value) in slots.items():
            builder.PrependSlot(flags, field_id, value, None)
        return int(builder.EndObject())

    assert hasattr(generated, table)
    return build


def test_fields_of_a_newer_schema_are_skipped() -> None:
    builder = flatbuffers.Builder()
    model = built("Model", {0: (number_types.Uint32Flags, 3), 30: (number_types.Uint64Flags, 7)})
    builder.Finish(model(builder), b"TFL3")
    assert read(builder.Output()) == tables.Model(version=3)


def test_unknown_enumeration_values_stay_numbers() -> None:
    new: Any = 101
    graph = tables.SubGraph(tensors=(tables.Tensor(type=new), tables.Tensor()))
    graph = (read(write_model(tables.Model(subgraphs=(graph,)))).subgraphs or ())[0]
    assert [t.type for t in graph.tensors or ()] == [101, TensorType.FLOAT32]


def test_a_union_member_of_a_newer_schema_is_none() -> None:
    operator = tables.Operator(builtin_options=PackOptions(axis=1))
    content = bytearray(
        write_model(tables.Model(subgraphs=(tables.SubGraph(operators=(operator,)),)))
    )
    tag = generated.BuiltinOptions.PackOptions
    assert content.count(bytes([tag])) == 1
    content[content.index(bytes([tag]))] = 250
    operators = (read(content).subgraphs or ())[0].operators or ()
    assert operators[0].builtin_options is None


def test_text_that_is_not_utf8_is_shown_escaped() -> None:
    content = write_model(tables.Model(description="Beschreibung"))
    content = content.replace(b"Beschreibung", b"Beschr\xffibung")
    assert read(content).description == "Beschr\\xffibung"


def test_custom_options_and_constants_behind_the_flatbuffer_are_read_as_views() -> None:
    content = one_op_model("my_op", [constant(np.arange(9, dtype=np.int8))], [tensor((9,))],
                           custom_options=b"some options")  # fmt: skip
    model = read(content)
    behind = np.frombuffer(write_model(model, inline_limit=0), np.uint8)
    again = read_model(behind)
    assert again == model
    data = (again.buffers or ())[1].data
    assert data is not None
    assert np.shares_memory(data, behind)


# Damage.


def refused(content: bytes | bytearray, message: str) -> None:
    with pytest.raises(MalformedModelError, match=re.escape(message)):
        read(content)


@pytest.mark.parametrize("size", range(8))
def test_a_file_too_short_for_an_identifier_is_refused(size: int) -> None:
    refused(b"\x1c\0\0\0TFL3"[:size], f"not a valid Flatbuffer buffer: {size} bytes are too few")


def test_another_identifier_is_refused_and_shown() -> None:
    content = small_model().replace(b"TFL3", b"TFL2")
    refused(content, "Model provided has model identifier 'TFL2', should be 'TFL3'")
    refused(b"<!DOCTYPE html>", "The model is not a valid Flatbuffer buffer")


def test_a_root_outside_of_the_file_is_refused() -> None:
    refused(b"\xf0\0\0\0TFL3", "Model at byte 0 points past the end of the file (8 bytes)")


def test_a_vtable_outside_of_the_file_is_refused() -> None:
    content = bytearray(small_model())
    root = struct.unpack_from("<I", content)[0]
    struct.pack_into("<i", content, root, root + 100)
    refused(content, "vtable of Model at byte -100 lies outside of the file")
    struct.pack_into("<i", content, root, -len(content))
    refused(content, "lies outside of the file")


@pytest.mark.parametrize("size", [0, 2, 5, 65534])
def test_a_vtable_of_impossible_size_is_refused(size: int) -> None:
    content = bytearray(small_model())
    root = struct.unpack_from("<I", content)[0]
    vtable = root - struct.unpack_from("<i", content, root)[0]
    struct.pack_into("<H", content, vtable, size)
    refused(content, f"vtable of Model at byte {vtable} is damaged")


def test_a_field_outside_of_the_file_is_refused() -> None:
    content = bytearray(small_model())
    root = struct.unpack_from("<I", content)[0]
    vtable = root - struct.unpack_from("<i", content, root)[0]
    struct.pack_into("<H", content, vtable + 4, 65535)
    refused(content, f"Model.version at byte {root + 65535} lies outside of the file")


def test_a_list_longer_than_the_file_is_refused() -> None:
    content = bytearray(small_model())
    count = content.index(struct.pack("<4i", 1, 4, 4, 3)) - 4
    struct.pack_into("<I", content, count, 1 << 31)
    refused(content, f"Tensor.shape at byte {count} has more items than the file can hold")


def test_the_size_of_items_counts_when_a_list_is_too_long() -> None:
    content = bytearray(small_model())
    scales = content.index(struct.pack("<2f", 0.5, 0.25))
    struct.pack_into("<I", content, scales - 4, (len(content) - scales) // 4 + 1)
    where = f"QuantizationParameters.scale at byte {scales - 4}"
    refused(content, f"{where} has more items than the file can hold")


def test_a_text_without_terminator_is_refused() -> None:
    content = bytearray(small_model())
    content[content.index(b"input") + 5] = ord("s")
    refused(content, "Tensor.name at byte")
    refused(content, "is not terminated")


def test_a_constant_behind_the_file_is_refused() -> None:
    model = tables.Model(buffers=(tables.Buffer(offset=2, size=1 << 62),))
    refused(write_model(model), "Constant buffer 0 specified an out of range offset")
    operator = tables.Operator(large_custom_options_offset=1 << 62)
    model = tables.Model(subgraphs=(tables.SubGraph(operators=(operator,)),))
    refused(write_model(model), "Custom options of opcode_index 0 specified an out of range")


def test_a_constant_may_end_with_the_file() -> None:
    model = tables.Model(buffers=(tables.Buffer(data=np.arange(1, 6, dtype=np.uint8)),))
    content = write_model(model, inline_limit=0)
    whole = content[: content.index(b"\1\2\3\4\5") + 5]
    assert read(whole) == model
    refused(whole[:-1], "Constant buffer 0 specified an out of range offset")


def test_an_offset_of_1_is_a_placeholder() -> None:
    operator = tables.Operator(large_custom_options_offset=1, large_custom_options_size=1 << 40)
    graph = tables.SubGraph(operators=(operator, tables.Operator(large_custom_options_offset=8)))
    model = tables.Model(subgraphs=(graph,), buffers=(tables.Buffer(offset=1, size=1 << 40),))
    again = read(write_model(model))
    assert again.buffers == model.buffers
    assert (again.subgraphs or ())[0].operators[0] == operator  # type: ignore[index]  # it has two


def test_tables_that_are_referred_to_too_often_are_refused() -> None:
    """Many subgraphs at one place, each of them many tensors: 10^6 tables in 8 kilobytes."""
    builder = flatbuffers.Builder()

    def repeated(table: int, times: int) -> int:
        builder.StartVector(4, times, 4)
        for _ in range(times):
            builder.PrependUOffsetTRelative(table)
        return int(builder.EndVector())

    def parent(field_id: int, vector: int) -> int:
        builder.StartObject(field_id + 1)
        builder.PrependUOffsetTRelativeSlot(field_id, vector, 0)
        return int(builder.EndObject())

    builder.StartObject(0)
    tensors = repeated(builder.EndObject(), 1000)
    subgraphs = repeated(parent(0, tensors), 1000)
    builder.Finish(parent(2, subgraphs), b"TFL3")
    refused(builder.Output(), "SubGraph.tensors: more tables than a file of")


@pytest.mark.parametrize(
    ("field_id", "value", "message"),
    [
        (0, np.ones(10_000, np.int32), "Tensor.shape: lists hold more than a file of"),
        (3, "n" * 40_000, "Tensor.name: texts hold more than a file of"),
    ],
)
def test_lists_that_are_referred_to_too_often_are_refused(
    field_id: int, value: Any, message: str
) -> None:
    """Ten thousand tensors that share one shape of ten thousand dimensions, or a long name."""
    builder = flatbuffers.Builder()
    is_text = isinstance(value, str)
    shared = builder.CreateString(value) if is_text else builder.CreateNumpyVector(value)
    tensors = []
    for _ in range(10_000):
        builder.StartObject(field_id + 1)
        builder.PrependUOffsetTRelativeSlot(field_id, shared, 0)
        tensors.append(builder.EndObject())
    builder.Finish(graph_with(builder, 0, tensors), b"TFL3")
    refused(builder.Output(), message)


def graph_with(builder: Any, field_id: int, records: list[int]) -> int:
    """Write a model of one subgraph that has a list of tables."""

    def parent(field_id: int, offsets: list[int]) -> int:
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        vector = builder.EndVector()
        builder.StartObject(field_id + 1)
        builder.PrependUOffsetTRelativeSlot(field_id, vector, 0)
        return int(builder.EndObject())

    return parent(2, [parent(field_id, records)])


def test_a_union_needs_its_type_and_its_table() -> None:
    builder = flatbuffers.Builder()
    operators = []
    for has_type, has_table in ((True, True), (True, False), (False, True), (False, False)):
        builder.StartObject(2)
        builder.PrependInt32Slot(1, 7, 0)
        options = builder.EndObject()
        builder.StartObject(5)
        if has_table:
            builder.PrependUOffsetTRelativeSlot(4, options, 0)
        if has_type:
            builder.PrependUint8Slot(3, generated.BuiltinOptions.PackOptions, 0)
        operators.append(builder.EndObject())
    builder.Finish(graph_with(builder, 3, operators), b"TFL3")
    found = (read(builder.Output()).subgraphs or ())[0].operators or ()
    assert [o.builtin_options for o in found] == [PackOptions(axis=7), None, None, None]


# Real models.


def official_value(table: Any, name: str, field: Any) -> Any:
    """Return a field of an official ``*T`` object as our records have it."""
    words = name.split("_")
    camel = words[0] + "".join(word.title() for word in words[1:])
    value = getattr(table, camel)
    match field.kind:
        case Scalar(_, enum):
            return value if enum is None else enum(value)
        case String():
            return None if value is None else value.decode("utf-8", "backslashreplace")
        case ScalarVector():
            return field.default if value is None else tuple(np.asarray(value).tolist())
    return value


def check_equal(ours: Table, official: Any) -> None:
    for field, value in zip(ours.FIELDS, ours, strict=True):
        name = {"builtin_options_2": "builtin_options2"}.get(field.name, field.name)
        expected = official_value(official, name, field)
        if isinstance(value, Table) or isinstance(field.kind, Union):
            assert (value is None) == (expected is None), field.name
            if value is not None:
                assert type(value).__name__ + "T" == type(expected).__name__
                check_equal(value, expected)
        elif isinstance(value, tuple) and value and isinstance(value[0], Table):
            for one, other in zip(value, expected, strict=True):
                check_equal(one, other)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, expected)
        else:
            assert value == expected or (value == () and not expected), field.name


SMALL = [row for row in corpus_rows() if row["size"] < 60_000 and row["expect"] != "load-error"]


@needs_corpus
@pytest.mark.parametrize("row", SMALL[::4], ids=lambda row: row["name"])
def test_real_models_are_read_as_by_the_official_object_api(row: dict[str, Any]) -> None:
    content = (CORPUS / row["file"]).read_bytes()
    check_equal(read(content), generated.ModelT.InitFromPackedBuf(content, 0))


MEASURE = """
import resource, sys, tracemalloc
from delegraph.graph import load_model
load_model(sys.argv[1])
tracemalloc.start()
model = load_model(sys.argv[1])
print(tracemalloc.get_traced_memory()[1])
"""


@needs_corpus
def test_loading_4_megabytes_takes_less_than_one_beside_the_map() -> None:
    row = max(corpus_rows(), key=lambda row: row["size"])
    assert row["size"] > 4_000_000
    command = [sys.executable, "-c", MEASURE, str(CORPUS / row["file"])]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert peak < 1_000_000
