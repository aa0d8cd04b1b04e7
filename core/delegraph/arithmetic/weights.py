"""Weights as plain arrays; sparse weights are expanded and packed weights unpacked."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from delegraph.graph.dtypes import unpack
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.arithmetic.activation import BiasClamp

T = TypeVar("T")


def dense_values(weight: Tensor) -> NDArray[Any]:
    """Return stored values as a dense array in the weight's shape.

    2- and 4-bit integers are returned as int8.
    """
    if weight.is_packed:
        return unpack(weight.data, weight.type, weight.shape)
    data: NDArray[Any] = weight.data
    if weight.sparsity is None:
        return data
    from delegraph.graph.sparsity import expand  # lazy import: few weights are sparse

    dense = np.empty(weight.shape, data.dtype)
    expand(data, weight.sparsity, dense)
    return dense


def channel_rows(weight: NDArray[Any]) -> NDArray[Any]:
    """Return weights ``[O, ...]`` as a matrix ``[O, K]``; O may be 0."""
    return weight.reshape(len(weight), math.prod(weight.shape[1:]))


def centred_integers(weight: Tensor) -> NDArray[Any]:
    """Return stored integers minus the zero point, in the weight's shape, as int16 or int32."""
    integers = dense_values(weight)
    wide = np.int32 if weight.type == TensorType.INT16 else np.int16
    centred: NDArray[Any] = np.subtract(integers, weight.zero_point, dtype=wide)
    return centred


def once_if_constant(compute: Callable[[], T], *sources: Tensor | None) -> Callable[[], T]:
    """Return a function that returns ``compute()``, computed only once if all sources are known.

    Args:
        compute: function that reads the data of *sources*.
        sources: tensors; None means an absent tensor.
    """
    if all(source is None or source.is_constant_or_persistent for source in sources):
        value = compute()
        return lambda: value
    return compute


def at_first_use(compute: Callable[[], T], *sources: Tensor | None) -> Callable[[], T]:
    """Return a function that calls *compute* when first called, and keeps a constant result.

    So a node that is prepared here but run by a delegate needs no memory for its weights. Sparse
    sources are read immediately, since their values may not fit their indices.

    Args:
        compute: function that reads the data of *sources*.
        sources: tensors; None means an absent tensor.
    """
    present = [source for source in sources if source is not None]
    if any(source.sparsity is not None for source in present):
        return once_if_constant(compute, *sources)
    if all(source.is_constant_or_persistent for source in present):
        return cache(compute)
    return compute


def bias_or_zeros(bias: Tensor | None, channels: int, dtype: type[Any]) -> NDArray[Any]:
    """Return the bias as ``[channels]`` of *dtype*; zeros if *bias* is None."""
    if bias is None:
        return np.zeros(channels, dtype)
    values: NDArray[Any] = bias.data
    return values.reshape(-1).astype(dtype, copy=False)


def bias_clamp(bias: Tensor | None, channels: int, activation: int) -> Callable[[], BiasClamp]:
    """Return a function that returns what finishes float sums of *channels*: bias and *activation*.

    Without a bias, nothing is added. A constant bias is read only once.
    """
    from delegraph.arithmetic.activation import BiasClamp, float_activation_range

    clamp_range = float_activation_range(activation)
    return once_if_constant(
        lambda: BiasClamp(bias_or_zeros(bias, channels, np.float32), *clamp_range), bias
    )


def dequantized_weights(weights: Tensor) -> NDArray[np.float32]:
    """Return float or symmetric 8-bit weights as float32, in their shape."""
    if not is_quantized(weights):
        return np.asarray(weights.data)
    return np.asarray(weights.data.view(np.int8) * np.float32(weights.scale))


def is_quantized(weights: Tensor) -> bool:
    """Whether *weights* have 8-bit values.

    Old files mark signed weights as UINT8.
    """
    return weights.type in (TensorType.INT8, TensorType.UINT8)
