"""Converts typed options to the ``builtin_data`` structs that compiled delegates read.

A struct is described by the names of the schema's fields, in the order of the C members. The C
types follow from the schema's types. Members that later versions added come last, as in C, so code
that was compiled for an older version can read the struct.

Source:
    builtin_op_data.h, tflite/core/c; ParseOpDataTfLite, tflite/core/api/flatbuffer_conversions.cc.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import Structure, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any

import numpy as np

from delegraph.native.tensor_types import C_TYPES
from delegraph.schema.enums import MirrorPadMode, Padding, RngAlgorithm, TensorType
from delegraph.schema.options import OPTIONS_OF_OPERATOR
from delegraph.schema.table import ArrayVector, Field, Scalar, ScalarVector, String, Table

_SEQUENCE_LSTM = "fused_activation_function cell_clip proj_clip"

_MEMBERS = {
    "AddOptions": "fused_activation_function pot_scale_int16",
    "ArgMaxOptions": "output_type",
    "ArgMinOptions": "output_type",
    "BatchMatMulOptions": "adj_x adj_y asymmetric_quantize_inputs",
    "BidirectionalSequenceLSTMOptions": f"{_SEQUENCE_LSTM} merge_outputs time_major "
    "asymmetric_quantize_inputs",
    "BidirectionalSequenceRNNOptions": "time_major fused_activation_function merge_outputs "
    "asymmetric_quantize_inputs",
    "BucketizeOptions": "boundaries",
    "CallOnceOptions": "init_subgraph_index",
    "CastOptions": "in_data_type out_data_type",
    "ConcatenationOptions": "axis fused_activation_function",
    "Conv2DOptions": "padding stride_w stride_h fused_activation_function dilation_w_factor "
    "dilation_h_factor quantized_bias_type",
    "Conv3DOptions": "padding stride_w stride_h stride_d dilation_w_factor dilation_h_factor "
    "dilation_d_factor fused_activation_function",
    "CumsumOptions": "exclusive reverse",
    "DepthToSpaceOptions": "block_size",
    "DepthwiseConv2DOptions": "padding stride_w stride_h depth_multiplier "
    "fused_activation_function dilation_w_factor dilation_h_factor",
    "DivOptions": "fused_activation_function",
    "EmbeddingLookupSparseOptions": "combiner",
    "FakeQuantOptions": "min max num_bits narrow_range",
    "FullyConnectedOptions": "fused_activation_function weights_format keep_num_dims "
    "asymmetric_quantize_inputs quantized_bias_type",
    "GatherOptions": "axis batch_dims",
    "GeluOptions": "approximate",
    "HashtableOptions": "table_id key_dtype value_dtype",
    "IfOptions": "then_subgraph_index else_subgraph_index",
    "L2NormOptions": "fused_activation_function",
    "LSHProjectionOptions": "type",
    "LSTMOptions": f"{_SEQUENCE_LSTM} kernel_type asymmetric_quantize_inputs",
    "LeakyReluOptions": "alpha",
    "LocalResponseNormalizationOptions": "radius bias alpha beta",
    "MirrorPadOptions": "mode",
    "MulOptions": "fused_activation_function",
    "OneHotOptions": "axis",
    "PackOptions": "values_count axis",
    "Pool2DOptions": "padding stride_w stride_h filter_width filter_height "
    "fused_activation_function",
    "RNNOptions": "fused_activation_function asymmetric_quantize_inputs",
    "RandomOptions": "seed seed2",
    "ReduceWindowOptions": "reduce_function",
    "ReducerOptions": "keep_dims",
    "ReshapeOptions": "new_shape",
    "ResizeBilinearOptions": "align_corners half_pixel_centers",
    "ResizeNearestNeighborOptions": "align_corners half_pixel_centers",
    "ReverseSequenceOptions": "seq_dim batch_dim",
    "SVDFOptions": "rank fused_activation_function asymmetric_quantize_inputs",
    "SequenceRNNOptions": "time_major fused_activation_function asymmetric_quantize_inputs",
    "ShapeOptions": "out_type",
    "SkipGramOptions": "ngram_size max_skip_size include_all_ngrams",
    "SoftmaxOptions": "beta",
    "SpaceToDepthOptions": "block_size",
    "SparseToDenseOptions": "validate_indices",
    "SplitOptions": "num_splits",
    "SplitVOptions": "num_splits",
    "SqueezeOptions": "squeeze_dims",
    "StableHLOCompositeOptions": "name decomposition_subgraph_index version composite_attributes",
    "StablehloCaseOptions": "branch_subgraph_indices",
    "StablehloConcatenateOptions": "dimension",
    "StablehloGatherOptions": "offset_dims collapsed_slice_dims start_index_map index_vector_dim "
    "slice_sizes indices_are_sorted",
    "StablehloPadOptions": "edge_padding_low edge_padding_high interior_padding",
    "StablehloReduceWindowOptions": "window_dimensions window_strides base_dilations "
    "window_dilations padding body_subgraph_index",
    "StablehloRngBitGeneratorOptions": "algorithm",
    "StablehloScatterOptions": "indices_are_sorted update_window_dims inserted_window_dims "
    "scatter_dims_to_operand_dims index_vector_dim unique_indices "
    "update_computation_subgraph_index",
    "StridedSliceOptions": "begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask "
    "offset",
    "SubOptions": "fused_activation_function pot_scale_int16",
    "TransposeConvOptions": "padding stride_w stride_h fused_activation_function "
    "quantized_bias_type",
    "UnidirectionalSequenceLSTMOptions": f"{_SEQUENCE_LSTM} time_major asymmetric_quantize_inputs "
    "diagonal_recurrent_tensors",
    "UniqueOptions": "idx_out_type",
    "UnpackOptions": "num axis",
    "VarHandleOptions": "container shared_name",
    "WhileOptions": "cond_subgraph_index body_subgraph_index",
}
"""Mapping from an options table to the members of its C struct.

Operators with other options tables have a null pointer, as in TFLite.
"""

_ROOM = {
    "StablehloCaseOptions.branch_subgraph_indices": 20,
    "StablehloReduceWindowOptions.padding": 16,
}
_ELEMENTS = 8  # length of all other lists, which C stores in fixed arrays
_UNCOUNTED = {"StablehloPadOptions", "StablehloReduceWindowOptions"}  # as long as the rank
_TRAILING = {"Pool2DOptions": 4}  # further ints after the members, which a kernel of TFLite sets

_NUMBERED_FROM_1: dict[type | None, Callable[[Any], int]] = {
    Padding: lambda value: value + 1,
    MirrorPadMode: lambda value: value + 1,
    RngAlgorithm: lambda value: value + 1,
    TensorType: lambda value: C_TYPES.get(value, 0),
}
"""Enumerations whose members have other numbers in C than in the model file."""

_TYPES_OF_INDICES = {"idx_out_type": {TensorType.INT64: C_TYPES[TensorType.INT64]}}
"""For fields of type TensorType: the types that C code tells apart; all others mean INT32."""

_SCALARS: dict[str, Any] = {"b1": c_bool, "f4": c_float}


def builtin_data(code: int, options: Table | None) -> Structure | None:
    """Return the options of a builtin operator's node as a C struct; None means a null pointer.

    Memory to which the struct points lives as long as the struct. *options* is None if the
    file has none; all members are then zero.
    """
    table = OPTIONS_OF_OPERATOR.get(code) if options is None else type(options)  # type: ignore[call-overload]  # members are ints
    if table is None or table.__name__ not in _MEMBERS:
        return None
    struct: Any = _struct_of(table)()
    if options is not None:
        for field in _members(table):
            _fill(struct, field, getattr(options, field.name))
    return struct  # type: ignore[no-any-return]  # made above


@cache
def _struct_of(table: type[Table]) -> type[Structure]:
    """Return the C struct of an options table."""
    fields: list[tuple[str, Any]] = []
    for field in _members(table):
        fields += _c_members(table, field)
    trailing = _TRAILING.get(table.__name__, 0)
    if trailing:
        fields.append(("computed", c_int * trailing))
    return type(table.__name__.replace("Options", "Params"), (Structure,), {"_fields_": fields})


def _members(table: type[Table]) -> Sequence[Field]:
    by_name = {field.name: field for field in table.FIELDS}
    return [by_name[name] for name in _MEMBERS[table.__name__].split()]


def _c_members(table: type[Table], field: Field) -> list[tuple[str, Any]]:
    kind, name = field.kind, field.name
    if isinstance(kind, String):
        return [(name, c_char_p)]
    if isinstance(kind, ArrayVector):
        if kind.dtype == np.float32:  # BUCKETIZE: its count comes first
            return [(f"num_{name}", c_int), (name, c_void_p)]
        return [(name, c_void_p), (f"num_{name}", c_size_t)]
    if isinstance(kind, ScalarVector):
        element: Any = c_int64 if kind.dtype.itemsize == 8 else c_int32
        room = _ROOM.get(f"{table.__name__}.{name}", _ELEMENTS)
        count = [] if table.__name__ in _UNCOUNTED else [(f"num_{name}", c_int)]
        return [(name, element * room), *count]
    assert isinstance(kind, Scalar)
    is_long = kind.dtype.itemsize == 8 and table.__name__ != "RandomOptions"
    return [(name, c_int64 if is_long else _SCALARS.get(kind.dtype.str[1:], c_int))]


def _fill(struct: Any, field: Field, value: Any) -> None:
    kind, name = field.kind, field.name
    if isinstance(kind, String):
        setattr(struct, name, None if value is None else value.encode())
    elif isinstance(kind, ArrayVector):
        if value is not None:
            struct.kept = value  # the pointer refers to it
            setattr(struct, name, value.ctypes.data)
            setattr(struct, f"num_{name}", len(value))
    elif isinstance(kind, ScalarVector):
        target = getattr(struct, name)
        count = min(len(value), len(target))
        target[:count] = value[:count]
        if hasattr(struct, f"num_{name}"):
            setattr(struct, f"num_{name}", count)
    else:
        assert isinstance(kind, Scalar)
        setattr(struct, name, _in_c(name, kind, value))


def _in_c(name: str, kind: Scalar, value: Any) -> Any:
    if name in _TYPES_OF_INDICES:
        return _TYPES_OF_INDICES[name].get(value, C_TYPES[TensorType.INT32])
    convert = _NUMBERED_FROM_1.get(kind.enum)
    return value if convert is None else convert(value)


def address_of(struct: Structure | None) -> int | None:
    """Return the address of a struct; None for a null pointer."""
    return None if struct is None else ctypes.addressof(struct)
