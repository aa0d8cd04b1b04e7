"""Options of operators on arrays.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.schema.enums import ActivationFunctionType, MirrorPadMode, TensorType
from delegraph.schema.table import (
    FLOAT32,
    INT32,
    Table,
    array,
    boolean,
    enum,
    int32,
    vector,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ConcatenationOptions(Table):
    """Options of ``CONCATENATION``."""

    axis: int = int32(0, default=0)
    fused_activation_function: ActivationFunctionType = enum(1, default=ActivationFunctionType.NONE)


class AddOptions(Table):
    """Options of ``ADD``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)
    pot_scale_int16: bool = boolean(1, default=True)


class ReshapeOptions(Table):
    """Options of ``RESHAPE``."""

    new_shape: tuple[int, ...] = vector(0, INT32, default=())


class SpaceToDepthOptions(Table):
    """Options of ``SPACE_TO_DEPTH``."""

    block_size: int = int32(0, default=0)


class MulOptions(Table):
    """Options of ``MUL``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)


class GatherOptions(Table):
    """Options of ``GATHER``."""

    axis: int = int32(0, default=0)
    batch_dims: int = int32(1, default=0)


class ReducerOptions(Table):
    """Options of ``MEAN``, ``SUM``, ``REDUCE_*``."""

    keep_dims: bool = boolean(0, default=False)


class SubOptions(Table):
    """Options of ``SUB``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)
    pot_scale_int16: bool = boolean(1, default=True)


class DivOptions(Table):
    """Options of ``DIV``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)


class SqueezeOptions(Table):
    """Options of ``SQUEEZE``."""

    squeeze_dims: tuple[int, ...] = vector(0, INT32, default=())


class StridedSliceOptions(Table):
    """Options of ``STRIDED_SLICE``."""

    begin_mask: int = int32(0, default=0)
    end_mask: int = int32(1, default=0)
    ellipsis_mask: int = int32(2, default=0)
    new_axis_mask: int = int32(3, default=0)
    shrink_axis_mask: int = int32(4, default=0)
    offset: bool = boolean(5, default=False)


class SplitOptions(Table):
    """Options of ``SPLIT``."""

    num_splits: int = int32(0, default=0)


class CastOptions(Table):
    """Options of ``CAST``."""

    in_data_type: TensorType = enum(0, default=TensorType.FLOAT32)
    out_data_type: TensorType = enum(1, default=TensorType.FLOAT32)


class ArgMaxOptions(Table):
    """Options of ``ARG_MAX``."""

    output_type: TensorType = enum(0, default=TensorType.FLOAT32)


class SparseToDenseOptions(Table):
    """Options of ``SPARSE_TO_DENSE``."""

    validate_indices: bool = boolean(0, default=False)


class ShapeOptions(Table):
    """Options of ``SHAPE``."""

    out_type: TensorType = enum(0, default=TensorType.FLOAT32)


class ArgMinOptions(Table):
    """Options of ``ARG_MIN``."""

    output_type: TensorType = enum(0, default=TensorType.FLOAT32)


class PackOptions(Table):
    """Options of ``PACK``."""

    values_count: int = int32(0, default=0)
    axis: int = int32(1, default=0)


class OneHotOptions(Table):
    """Options of ``ONE_HOT``."""

    axis: int = int32(0, default=0)


class UnpackOptions(Table):
    """Options of ``UNPACK``."""

    num: int = int32(0, default=0)
    axis: int = int32(1, default=0)


class MirrorPadOptions(Table):
    """Options of ``MIRROR_PAD``."""

    mode: MirrorPadMode = enum(0, default=MirrorPadMode.REFLECT)


class SplitVOptions(Table):
    """Options of ``SPLIT_V``."""

    num_splits: int = int32(0, default=0)


class UniqueOptions(Table):
    """Options of ``UNIQUE``."""

    idx_out_type: TensorType = enum(0, default=TensorType.INT32)


class ReverseSequenceOptions(Table):
    """Options of ``REVERSE_SEQUENCE``."""

    seq_dim: int = int32(0, default=0)
    batch_dim: int = int32(1, default=0)


class DepthToSpaceOptions(Table):
    """Options of ``DEPTH_TO_SPACE``."""

    block_size: int = int32(0, default=0)


class CumsumOptions(Table):
    """Options of ``CUMSUM``."""

    exclusive: bool = boolean(0, default=False)
    reverse: bool = boolean(1, default=False)


class BucketizeOptions(Table):
    """Options of ``BUCKETIZE``."""

    boundaries: NDArray[np.float32] | None = array(0, FLOAT32, default=None)
