"""Options tables of the second union: StableHLO operators and the newest builtin operators.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delegraph.schema.enums import (
    CustomOptionsFormat,
    ReduceWindowFunction,
    RngAlgorithm,
    StablehloComparisonDirection,
    StablehloComparisonType,
    StablehloPrecisionConfig,
)
from delegraph.schema.table import (
    BOOL,
    INT32,
    INT64,
    UINT8,
    UINT32,
    Table,
    array,
    boolean,
    enum,
    int32,
    int64,
    string,
    vector,
)


class StablehloConcatenateOptions(Table):
    """Options of ``STABLEHLO_CONCATENATE``."""

    dimension: int = int64(0, default=0)


class StablehloBroadcastInDimOptions(Table):
    """Options of ``STABLEHLO_BROADCAST_IN_DIM``."""

    broadcast_dimensions: tuple[int, ...] = vector(0, INT64, default=())


class StablehloSliceOptions(Table):
    """Options of ``STABLEHLO_SLICE``."""

    start_indices: tuple[int, ...] = vector(0, INT64, default=())
    limit_indices: tuple[int, ...] = vector(1, INT64, default=())
    strides: tuple[int, ...] = vector(2, INT64, default=())


class StablehloConvolutionOptions(Table):
    """Options of ``STABLEHLO_CONVOLUTION``."""

    window_strides: tuple[int, ...] = vector(0, INT64, default=())
    padding: tuple[int, ...] = vector(1, INT64, default=())
    lhs_dilation: tuple[int, ...] = vector(2, INT64, default=())
    rhs_dilation: tuple[int, ...] = vector(3, INT64, default=())
    window_reversal: tuple[bool, ...] = vector(4, BOOL, default=())
    input_batch_dimension: int = int64(5, default=0)
    input_feature_dimension: int = int64(6, default=0)
    input_spatial_dimensions: tuple[int, ...] = vector(7, INT64, default=())
    kernel_input_feature_dimension: int = int64(8, default=0)
    kernel_output_feature_dimension: int = int64(9, default=0)
    kernel_spatial_dimensions: tuple[int, ...] = vector(10, INT64, default=())
    output_batch_dimension: int = int64(11, default=0)
    output_feature_dimension: int = int64(12, default=0)
    output_spatial_dimensions: tuple[int, ...] = vector(13, INT64, default=())
    feature_group_count: int = int64(14, default=0)
    batch_group_count: int = int64(15, default=0)
    precision_config: tuple[StablehloPrecisionConfig, ...] = vector(
        16, UINT32, default=(), enum=StablehloPrecisionConfig
    )


class StablehloCustomCallOptions(Table):
    """Options of ``STABLEHLO_CUSTOM_CALL``."""

    call_target_name: str | None = string(0, default=None)
    has_side_effect: bool = boolean(1, default=False)
    backend_config: str | None = string(2, default=None)
    api_version: int = int32(3, default=0)
    called_computations: tuple[int, ...] = vector(4, INT32, default=())
    custom_attributes: NDArray[np.uint8] | None = array(5, UINT8, default=None)


class StablehloReduceOptions(Table):
    """Options of ``STABLEHLO_REDUCE``."""

    dimensions: tuple[int, ...] = vector(0, INT64, default=())
    body_subgraph_index: int = int32(1, default=0)


class StablehloScatterOptions(Table):
    """Options of ``STABLEHLO_SCATTER``."""

    indices_are_sorted: bool = boolean(0, default=False)
    update_window_dims: tuple[int, ...] = vector(1, INT64, default=())
    inserted_window_dims: tuple[int, ...] = vector(2, INT64, default=())
    scatter_dims_to_operand_dims: tuple[int, ...] = vector(3, INT64, default=())
    index_vector_dim: int = int64(4, default=0)
    unique_indices: bool = boolean(5, default=False)
    update_computation_subgraph_index: int = int32(6, default=0)


class StablehloCompareOptions(Table):
    """Options of ``STABLEHLO_COMPARE``."""

    comparison_direction: StablehloComparisonDirection = enum(
        0, default=StablehloComparisonDirection.STABLEHLO_COMPARISON_DIRECTION_EQ, dtype=UINT32
    )
    compare_type: StablehloComparisonType = enum(
        1, default=StablehloComparisonType.STABLEHLO_COMPARISON_TYPE_NOTYPE, dtype=UINT32
    )


class StablehloDynamicSliceOptions(Table):
    """Options of ``STABLEHLO_DYNAMIC_SLICE``."""

    slice_sizes: tuple[int, ...] = vector(0, INT64, default=())


class StablehloPadOptions(Table):
    """Options of ``STABLEHLO_PAD``."""

    edge_padding_low: tuple[int, ...] = vector(0, INT64, default=())
    edge_padding_high: tuple[int, ...] = vector(1, INT64, default=())
    interior_padding: tuple[int, ...] = vector(2, INT64, default=())


class StablehloIotaOptions(Table):
    """Options of ``STABLEHLO_IOTA``."""

    iota_dimension: int = int64(0, default=0)


class StablehloDotGeneralOptions(Table):
    """Options of ``STABLEHLO_DOT_GENERAL``."""

    lhs_batching_dimensions: tuple[int, ...] = vector(0, INT64, default=())
    rhs_batching_dimensions: tuple[int, ...] = vector(1, INT64, default=())
    lhs_contracting_dimensions: tuple[int, ...] = vector(2, INT64, default=())
    rhs_contracting_dimensions: tuple[int, ...] = vector(3, INT64, default=())
    precision_config: tuple[StablehloPrecisionConfig, ...] = vector(
        4, UINT32, default=(), enum=StablehloPrecisionConfig
    )


class StablehloReduceWindowOptions(Table):
    """Options of ``STABLEHLO_REDUCE_WINDOW``."""

    window_dimensions: tuple[int, ...] = vector(0, INT64, default=())
    window_strides: tuple[int, ...] = vector(1, INT64, default=())
    base_dilations: tuple[int, ...] = vector(2, INT64, default=())
    window_dilations: tuple[int, ...] = vector(3, INT64, default=())
    padding: tuple[int, ...] = vector(4, INT64, default=())
    body_subgraph_index: int = int32(5, default=0)


class StablehloSortOptions(Table):
    """Options of ``STABLEHLO_SORT``."""

    dimension: int = int64(0, default=0)
    is_stable: bool = boolean(1, default=False)
    comparator_subgraph_index: int = int32(2, default=0)


class StablehloWhileOptions(Table):
    """Options of ``STABLEHLO_WHILE``."""

    cond_subgraph_index: int = int32(0, default=0)
    body_subgraph_index: int = int32(1, default=0)


class StablehloGatherOptions(Table):
    """Options of ``STABLEHLO_GATHER``."""

    offset_dims: tuple[int, ...] = vector(0, INT64, default=())
    collapsed_slice_dims: tuple[int, ...] = vector(1, INT64, default=())
    start_index_map: tuple[int, ...] = vector(2, INT64, default=())
    index_vector_dim: int = int64(3, default=0)
    slice_sizes: tuple[int, ...] = vector(4, INT64, default=())
    indices_are_sorted: bool = boolean(5, default=False)


class StablehloTransposeOptions(Table):
    """Options of ``STABLEHLO_TRANSPOSE``."""

    permutation: tuple[int, ...] = vector(0, INT64, default=())


class StablehloRngBitGeneratorOptions(Table):
    """Options of ``STABLEHLO_RNG_BIT_GENERATOR``."""

    algorithm: RngAlgorithm = enum(0, default=RngAlgorithm.DEFAULT)


class ReduceWindowOptions(Table):
    """Options of ``REDUCE_WINDOW``."""

    reduce_function: ReduceWindowFunction = enum(
        0, default=ReduceWindowFunction.UNSUPPORTED, dtype=INT32
    )


class StableHLOCompositeOptions(Table):
    """Options of ``STABLEHLO_COMPOSITE``."""

    name: str | None = string(0, default=None)
    decomposition_subgraph_index: int = int32(1, default=0)
    composite_attributes: NDArray[np.uint8] | None = array(2, UINT8, default=None)
    composite_attributes_format: CustomOptionsFormat = enum(
        3, default=CustomOptionsFormat.FLEXBUFFERS
    )
    version: int = int32(4, default=0)


class StablehloCaseOptions(Table):
    """Options of ``STABLEHLO_CASE``."""

    branch_subgraph_indices: tuple[int, ...] = vector(0, INT32, default=())
