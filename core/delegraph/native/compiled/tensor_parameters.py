"""Quantization and sparsity of tensors as the structs that ``TfLiteTensor`` refers to."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import Structure, addressof, c_float, c_int, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.graph.model import Quantization
from delegraph.native.abi import AFFINE_QUANTIZATION, TfLiteAffineQuantization, int_array

if TYPE_CHECKING:
    from delegraph.graph.sparsity import DimensionMetadata, Sparsity


class _TfLiteDimensionMetadata(Structure):
    _fields_ = [
        ("format", c_int),
        ("dense_size", c_int),
        ("array_segments", c_void_p),
        ("array_indices", c_void_p),
    ]


class _TfLiteSparsity(Structure):
    _fields_ = [
        ("traversal_order", c_void_p),
        ("block_map", c_void_p),
        ("dim_metadata", c_void_p),
        ("dim_metadata_size", c_int),
    ]


def write_quantization(struct: Any, quantization: Quantization) -> list[Any]:
    """Write a tensor's quantization to its struct; return the memory that the struct refers to.

    TFLite stores blockwise scales in separate tensors, which Delegraph does not have. So a tensor
    with blockwise quantization gets no scales.
    """
    if quantization.block_size:
        return []
    scales = np.asarray(quantization.scales, np.float32).tolist()
    if len(scales) == 1:
        struct.params.scale = scales[0]
        struct.params.zero_point = quantization.zero_point
    by_channel = _float_array(scales)
    zero_points = int_array(quantization.zero_points.tolist())
    affine = TfLiteAffineQuantization(
        addressof(by_channel), addressof(zero_points), quantization.quantized_dimension
    )
    struct.quantization.type = AFFINE_QUANTIZATION
    struct.quantization.params = addressof(affine)
    return [by_channel, zero_points, affine]


def write_sparsity(struct: Any, sparsity: Sparsity) -> list[Any]:
    """Write a constant's sparsity to its struct; return the memory that the struct refers to."""
    order, blocks = int_array(sparsity.traversal_order), int_array(sparsity.block_map or ())
    dimensions = (_TfLiteDimensionMetadata * len(sparsity.dim_metadata))()
    kept: list[Any] = [order, blocks, dimensions]
    for target, dimension in zip(dimensions, sparsity.dim_metadata, strict=True):
        kept += _write_dimension(target, dimension)
    described = _TfLiteSparsity(
        addressof(order),
        None if sparsity.block_map is None else addressof(blocks),
        addressof(dimensions),
        len(dimensions),
    )
    struct.sparsity = addressof(described)
    return [*kept, described]


def _write_dimension(target: Any, dimension: DimensionMetadata) -> list[Any]:
    target.dense_size = dimension.dense_size
    if dimension.array_segments is None or dimension.array_indices is None:
        return []
    segments = int_array(dimension.array_segments.tolist())
    indices = int_array(dimension.array_indices.tolist())
    target.format = 1  # kTfLiteDimSparseCSR
    target.array_segments, target.array_indices = addressof(segments), addressof(indices)
    return [segments, indices]


def _float_array(values: Sequence[float]) -> Any:
    """Return a ``TfLiteFloatArray`` that Python owns."""
    memory = ctypes.create_string_buffer(4 * (len(values) + 1))
    start = addressof(memory)
    c_int.from_address(start).value = len(values)
    (c_float * len(values)).from_address(start + 4)[:] = [*values]
    return memory
