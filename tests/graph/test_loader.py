from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError, MalformedModelError
from delegraph.graph import load_model, parse_model
from delegraph.graph.model import Model
from delegraph.graph.model_files import is_unchanged
from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator, DimensionType, TensorType
from delegraph.schema.options import AddOptions, PadOptions
from delegraph.schema.writer import write_model
from delegraph.testing import TensorDef, constant, one_op_model, tensor
from delegraph.testing.one_op import one_op_records, quantized
from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees
from support.corpus import CORPUS, corpus_rows, needs_corpus


def add(*inputs: TensorDef) -> tables.Model:
    return one_op_records("ADD", inputs or (tensor((2,)),) * 2, [tensor((2,))], AddOptions())


def parsed(records: tables.Model) -> Model:
    return parse_model(write_model(records))


def refused(records: tables.Model, message: str) -> None:
    with pytest.raises(MalformedModelError, match=re.escape(message)):
        parsed(records)


def change_graph(records: tables.Model, **changes: Any) -> tables.Model:
    assert records.subgraphs is not None
    return records.replace(subgraphs=(records.subgraphs[0].replace(**changes),))


def change_tensor(records: tables.Model, index: int, **changes: Any) -> tables.Model:
    assert records.subgraphs is not None
    tensors = list(records.subgraphs[0].tensors or ())
    tensors[index] = tensors[index].replace(**changes)
    return change_graph(records, tensors=tuple(tensors))


def change_operator(records: tables.Model, **changes: Any) -> tables.Model:
    return tables.with_operators(records, lambda operator: operator.replace(**changes))


# Files and bytes.


def test_a_file_is_mapped_and_constants_are_views_of_it(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(one_op_model("ADD", [tensor((4,)), constant(np.ones(4, np.float32))],
                                  [tensor((4,))]))  # fmt: skip
    model = load_model(path)
    data = model.subgraphs[0].tensors[1].data
    assert data is not None
    assert np.shares_memory(data, model.content)
    assert data.view(np.float32).tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 1


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, "u1")])
def test_every_kind_of_buffer_is_read(kind: Callable[[bytes], Any]) -> None:
    model = parse_model(kind(write_model(add())))
    assert not model.content.flags.writeable
    assert model.subgraphs[0].operators[0].name == "ADD"


def test_a_missing_file_is_an_argument_error(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"Could not open '.*none\.tflite': No such file"):
        load_model(tmp_path / "none.tflite")
    with pytest.raises(ArgumentError, match="Could not open"):
        load_model(str(tmp_path))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.tflite"
    path.touch()
    with pytest.raises(MalformedModelError, match="is empty"):
        load_model(path)


# The model.


def test_another_schema_version_is_refused() -> None:
    refused(add().replace(version=2), "schema version 2 not equal to supported version 3.")


def test_a_model_without_subgraphs_or_buffers_is_refused() -> None:
    refused(add().replace(subgraphs=()), "No subgraph in the model.")
    refused(add().replace(subgraphs=None), "No subgraph in the model.")
    refused(add().replace(buffers=None), "No buffers in the model.")
    refused(change_graph(add(), tensors=None), "Did not get tensors in subgraph 0.")


def test_unknown_builtin_operators_are_refused() -> None:
    new: Any = 210
    code = tables.OperatorCode(builtin_code=new)
    refused(add().replace(operator_codes=(code,)), "builtin code 210 is out of range (0 to 209)")


def test_the_larger_of_both_builtin_codes_counts() -> None:
    old = tables.OperatorCode(deprecated_builtin_code=BuiltinOperator.MUL)
    operator = parsed(add().replace(operator_codes=(old,))).subgraphs[0].operators[0]
    assert operator.builtin_code is BuiltinOperator.MUL
    assert operator.options is None  # AddOptions are of another operator


def test_a_custom_operator_has_its_name_and_bytes() -> None:
    records = one_op_records("my_op", [], [tensor((1,))], custom_options=b"abc", version=3)
    operator = parsed(records).subgraphs[0].operators[0]
    assert (operator.name, operator.version, operator.is_custom) == ("my_op", 3, True)
    assert operator.custom_options is not None
    assert operator.custom_options.tobytes() == b"abc"
    nameless = tables.operator_code(BuiltinOperator.CUSTOM)
    refused(records.replace(operator_codes=(nameless,)), "CUSTOM builtin_code has no custom_code")


def test_options_without_fields_are_kept() -> None:
    x = tensor((2,))
    records = one_op_records("PAD", [x, constant([[0, 0]], "INT32")], [tensor((2,))], PadOptions())
    assert parsed(records).subgraphs[0].operators[0].options == PadOptions()


@pytest.mark.parametrize("index", [-2, 2, 1 << 30])
def test_tensor_indices_out_of_range_are_refused(index: int) -> None:
    one = (index,)
    message = f"tensor index {index} is out of range, expected -1 to 1"
    refused(change_operator(add(), inputs=(0, index)), f"subgraph 0 operator 0: {message}")
    refused(change_operator(add(), outputs=one), message)
    refused(change_operator(add(), intermediates=one), message)
    refused(change_graph(add(), inputs=one), f"subgraph 0 inputs: {message}")
    refused(change_graph(add(), outputs=one), f"subgraph 0 outputs: {message}")


def test_an_operator_code_out_of_range_is_refused() -> None:
    refused(change_operator(add(), opcode_index=1), "Missing registration for opcode_index 1")


def test_a_tensor_that_is_input_and_output_is_left_to_allocation() -> None:
    assert parsed(change_operator(add(), outputs=(0,))).subgraphs[0].operators[0].outputs == (0,)


# Signatures and metadata.


def with_signature(**changes: Any) -> tables.Model:
    signature = tables.SignatureDef(
        inputs=(tables.TensorMap(name="y"), tables.TensorMap(name="x", tensor_index=1)),
        outputs=(tables.TensorMap(name="sum", tensor_index=1),),
        signature_key="serving_default",
    )
    return add().replace(signature_defs=(signature.replace(**changes),))


def test_signatures_name_tensors_in_alphabetical_order() -> None:
    (signature,) = parsed(with_signature()).signatures
    assert (signature.key, signature.subgraph_index) == ("serving_default", 0)
    assert list(signature.inputs.items()) == [("x", 1), ("y", 0)]
    assert dict(signature.outputs) == {"sum": 1}


def test_damaged_signatures_are_refused() -> None:
    refused(with_signature(signature_key=None), "Missing exported method name for SignatureDef")
    refused(with_signature(subgraph_index=1), "subgraph 1 is out of range, the model has 1")
    bad = (tables.TensorMap(name="x", tensor_index=2),)
    refused(with_signature(inputs=bad), "signature 0 inputs: tensor index 2 is out of range")


def test_the_last_metadata_of_a_name_that_has_bytes_counts() -> None:
    data = [np.frombuffer(text, np.uint8) for text in (b"one", b"two", b"")]
    entries = [("a", 0), ("a", 1), ("a", 2), ("b", 0), (None, 0), ("c", 9)]
    records = add().replace(
        buffers=(*(tables.Buffer(data=d) for d in data), tables.Buffer()),
        metadata=tuple(tables.Metadata(name=n, buffer=b) for n, b in entries),
    )
    records = change_tensor(change_tensor(records, 0, buffer=0), 1, buffer=0)
    found = parsed(records).metadata
    assert {name: value.tobytes() for name, value in found.items()} == {"a": b"two", "b": b"one"}


# Tensors.


def test_a_tensor_keeps_what_the_file_says() -> None:
    x = tensor((1, 8), "INT8", scale=0.5, zero_point=-3, shape_signature=(-1, 8), name="x")
    spec = parsed(add(x, x)).subgraphs[0].tensors[0]
    assert (spec.index, spec.name, spec.type) == (0, "x", TensorType.INT8)
    assert (spec.shape, spec.shape_signature, spec.has_rank) == ((1, 8), (-1, 8), True)
    assert spec.quantization is not None
    assert (spec.quantization.scale, spec.quantization.zero_point) == (0.5, -3)
    assert spec.quantization.zero_points.dtype == np.int32
    assert (spec.data, spec.sparsity, spec.is_variable) == (None, None, False)


def test_without_a_signature_the_shape_is_the_signature() -> None:
    assert parsed(add()).subgraphs[0].tensors[0].shape_signature == (2,)


def test_a_buffer_out_of_range_is_refused() -> None:
    message = "subgraph 0 tensor 1 ('t1'): specifies out of range buffer 7 (only 3 buffers)"
    refused(change_tensor(add(), 1, buffer=7), message)


def test_a_constant_may_be_longer_than_its_shape_but_not_shorter() -> None:
    records = add(tensor((3,)), constant(np.zeros(3, np.float32)))
    assert parsed(change_tensor(records, 1, shape=(2,)))
    refused(change_tensor(records, 1, shape=(4,)), "has 12 bytes, shape (4,) of FLOAT32 takes 16")
    assert parsed(change_tensor(records, 1, shape=(4,), type=TensorType.STRING))
    records = add(tensor((3,)), constant(np.zeros(12, np.int8)))
    refused(change_tensor(records, 1, shape=(13,)), "has 12 bytes, shape (13,) of INT8 takes 13")


def test_shapes_whose_size_overflows_are_refused() -> None:
    negative = "BytesRequired number of elements overflowed"
    refused(change_tensor(add(), 0, shape=(-1,)), negative)
    refused(change_tensor(add(), 0, shape=(-1,), type=TensorType.STRING), negative)
    huge = (1 << 31 - 1,) * 3
    refused(change_tensor(add(), 0, shape=huge), "BytesRequired number of bytes overflowed")
    refused(change_tensor(add(), 0, shape=(0, *huge)), "BytesRequired number of bytes overflowed")
    refused(change_tensor(add(), 0, shape=(1,) * 33), "33 dimensions, expected at most 32")


def test_unknown_tensor_types_are_refused() -> None:
    refused(change_tensor(add(), 0, type=99), "Unsupported data type 99 in tensor")


def test_a_variable_cannot_be_a_constant() -> None:
    records = add(tensor((2,)), constant(np.zeros(2, np.float32)))
    message = "is a variable tensor with buffer or external buffer"
    refused(change_tensor(records, 1, is_variable=True), message)
    refused(change_tensor(records, 1, external_buffer=3), message)
    text = tensor((1,), "STRING", is_variable=True)
    refused(add(text, text), "String variable tensor isn't supported.")


# Quantization.


def with_quantization(shape: tuple[int, ...], **changes: Any) -> tables.Model:
    parameters = quantized([0.5, 0.25, 0.125])
    assert parameters is not None
    records = add(tensor(shape, "INT8"), tensor((2,)))
    return change_tensor(records, 0, quantization=parameters.replace(**changes))


def test_scales_of_channels_have_an_axis() -> None:
    records = with_quantization((1, 3), quantized_dimension=1)
    quantization = parsed(records).subgraphs[0].tensors[0].quantization
    assert quantization is not None
    assert quantization.scales.tolist() == [0.5, 0.25, 0.125]
    assert quantization.quantized_dimension == 1


def test_damaged_quantization_is_refused() -> None:
    refused(with_quantization((3,), zero_point=None), "non-null scale but null zero_point")
    two = np.zeros(2, np.int64)
    refused(with_quantization((3,), zero_point=two), "has 2 zero_point values and 3 scale values")
    message = "quantized_dimension must be in range [0, 2). Was 2."
    refused(with_quantization((1, 3), quantized_dimension=2), message)
    refused(with_quantization((3,), quantized_dimension=-1), "in range [0, 1). Was -1.")
    message = "num_scales must be 1 for per-layer quantization, or 1 for per-axis quantization"
    refused(with_quantization((1, 3), quantized_dimension=0), message)


def test_a_list_has_no_axis_but_the_first() -> None:
    records = with_quantization((3,), quantized_dimension=3)
    quantization = parsed(records).subgraphs[0].tensors[0].quantization
    assert quantization is not None
    assert quantization.quantized_dimension == 0


def test_no_scales_are_no_quantization() -> None:
    records = with_quantization((3,), scale=None, quantized_dimension=9)
    assert parsed(records).subgraphs[0].tensors[0].quantization is None


def with_blocks(scale_tensor: TensorDef, **details: Any) -> tables.Model:
    parameters = tables.QuantizationParameters(
        details=tables.BlockwiseQuantization(**{"scales": 1, "block_size": 32, **details})
    )
    return change_tensor(add(tensor((64,), "INT8"), scale_tensor), 0, quantization=parameters)


def test_scales_of_blocks_are_a_view_of_their_tensor() -> None:
    model = parsed(with_blocks(constant(np.array([0.5, 2], np.float16))))
    quantization = model.subgraphs[0].tensors[0].quantization
    assert quantization is not None
    assert quantization.block_size == 32
    assert quantization.scales.tolist() == [0.5, 2]
    assert quantization.scales.dtype == np.float16
    assert np.shares_memory(quantization.scales, model.content)


def test_damaged_blocks_are_refused() -> None:
    scales = constant(np.array([0.5, 2], np.float16))
    refused(with_blocks(scales, scales=3), "blockwise scales tensor 3 is out of range")
    refused(with_blocks(scales, scales=0), "scales tensor 0 is no float constant")
    refused(with_blocks(scales, block_size=0), "block size 0 is not positive")


# Sparsity.


def with_sparsity(**changes: Any) -> tables.Model:
    rows = tables.DimensionMetadata(dense_size=2)
    columns = tables.DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=tables.Uint8Vector(values=np.array([0, 1, 3], np.uint8)),
        array_indices=tables.Uint16Vector(values=np.array([1, 0, 1], np.uint16)),
    )
    parameters = tables.SparsityParameters(
        traversal_order=(0, 1), dim_metadata=(rows, columns.replace(**changes))
    )
    records = add(tensor((2,)), constant(np.zeros((2, 2), np.float32)))
    return change_tensor(records, 1, sparsity=parameters, shape=(200, 200))


def test_a_sparse_constant_may_be_shorter_than_its_shape() -> None:
    sparsity = parsed(with_sparsity()).subgraphs[0].tensors[1].sparsity
    assert sparsity is not None
    rows, columns = sparsity.dim_metadata
    assert (rows.dense_size, rows.array_segments) == (2, None)
    assert columns.array_segments is not None
    assert columns.array_indices is not None
    assert columns.array_segments.tolist() == [0, 1, 3]
    assert columns.array_indices.dtype == np.int32
    assert (sparsity.traversal_order, sparsity.block_map) == ((0, 1), None)


def test_damaged_sparsity_is_refused() -> None:
    invalid = "The 1th sparse dimension has invalid parameters."
    new: Any = 2
    refused(with_sparsity(array_segments=None), invalid)
    refused(with_sparsity(array_indices=tables.Int32Vector()), invalid)
    refused(with_sparsity(format=new), invalid)
    for values in ([0, 2, 1], [1, 1, 1], [0, 1, 4], []):
        segments = tables.Int32Vector(values=np.array(values, np.int32))
        refused(with_sparsity(array_segments=segments), "segments that do not fit its indices")
    empty = change_tensor(with_sparsity(), 1, sparsity=tables.SparsityParameters())
    refused(empty, "Invalid sparsity parameter.")


# Real models.


@needs_corpus
@pytest.mark.parametrize("row", corpus_rows(), ids=lambda row: row["name"])
def test_exactly_the_models_the_official_runtime_cannot_load_are_refused(
    row: dict[str, Any],
) -> None:
    if row["expect"] == "load-error":
        with pytest.raises(MalformedModelError):
            load_model(CORPUS / row["file"])
    else:
        assert load_model(CORPUS / row["file"]).subgraphs


def test_damaged_file_is_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "not_a_model.tflite"
    path.write_bytes(b"plain text, longer than a header")
    with pytest.raises(MalformedModelError, match=r"not_a_model\.tflite: .*TFL3"):
        load_model(path)


@pytest.mark.parametrize("number", [-1, 6, 127])
def test_a_number_of_no_activation_is_none(number: int) -> None:
    x, y = (fed(np.array([-3, 7], np.float32)) for _ in range(2))
    assert_agrees("ADD", [x, y], ["FLOAT32"], AddOptions(fused_activation_function=number))


def test_a_mapped_file_that_is_written_in_place_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(one_op_model("ABS", [tensor((4,))], [tensor((4,))]))
    first, second = load_model(path), load_model(path)
    assert is_unchanged(first.content)
    path.with_suffix(".new").write_bytes(path.read_bytes())
    path.with_suffix(".new").replace(path)
    assert is_unchanged(first.content), "the mapped file is another one"
    third = load_model(path)
    with path.open("r+b") as file:
        file.write(path.read_bytes())
    os.utime(path, (1, 1))
    assert not is_unchanged(third.content)
    path.unlink()
    assert is_unchanged(second.content)
