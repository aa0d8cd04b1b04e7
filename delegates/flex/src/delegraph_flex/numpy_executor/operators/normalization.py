"""Normalizations (batch, local response, softmax), cross entropies, and biases.

Source:
    core/kernels/fused_batch_norm_op.cc, lrn_op.cc, softmax_op_functor.h, bias_op.cc, xent_op.cc,
    sparse_xent_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType, widened
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.registry import FLOATS, NUMBERS, operator, step_of

Array = NDArray[Any]


def batch_norm_formats(node: FlexNode) -> tuple[str, ...]:
    """Return the data formats of a batch normalization; version 3 also takes 3D images."""
    return ("NHWC", "NCHW", *(("NDHWC", "NCDHW") if node.op.endswith("V3") else ()))


@operator("FusedBatchNorm", types=(DataType.FLOAT32,))
@operator("FusedBatchNormV2", "FusedBatchNormV3", types=FLOATS - {DataType.FLOAT64})
def batch_norm(node: FlexNode) -> Step:
    """Function of batch normalization: results, means, variances, and reserved outputs.

    The reserved outputs 3 and 4 are mean and variance. Without training, they are computed as in
    version 1. Version 3 has another reserved output.
    """
    data_format = node.choice("data_format", batch_norm_formats(node), "NHWC")
    axis, rank = data_format.index("C"), len(data_format)
    epsilon = np.float32(node.float("epsilon", 1e-4))
    factor = np.float32(node.float("exponential_avg_factor", 1.0))
    is_training = node.bool("is_training", True)
    extra = [np.zeros((), np.float32)] if node.op.endswith("V3") else []

    def run(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> list[Array]:
        if x.ndim != rank:
            raise ValueError(f"input has shape {list(x.shape)}, expected {rank} dimensions")
        channels = x.shape[axis]
        _require_channels(channels, scale, offset, *(() if is_training else (mean, variance)))
        if not x.size:
            nothing = np.full(channels, np.nan, np.float32)
            return [x, nothing, nothing, nothing, nothing, *extra]
        values = np.moveaxis(x, axis, -1).astype(np.float32, copy=False)
        saved, shown = [mean, variance], [mean, variance]
        if is_training:
            saved, shown = _statistics(values, factor, mean, variance)
        slope = scale / np.sqrt(saved[1] + epsilon)
        y = (values - saved[0]) * slope + offset
        y = np.moveaxis(y, -1, axis).astype(x.dtype, copy=False)
        return [np.ascontiguousarray(y), *shown, *saved, *extra]

    return run


def _require_channels(channels: int, *parameters: Array) -> None:
    for parameter in parameters:
        if parameter.shape != (channels,):
            raise ValueError(f"a parameter has {list(parameter.shape)}, expected [{channels}]")


def _statistics(
    values: Array, factor: np.float32, mean: Array, variance: Array
) -> tuple[list[Array], list[Array]]:
    """Return mean and variance of the batch *values*, and the running averages of both.

    The averages, which are outputs, mix *mean* and *variance* with those of the batch by *factor*.
    """
    rows = values.reshape(-1, values.shape[-1])
    batch_mean = rows.mean(axis=0)
    batch_variance = np.square(rows - batch_mean).mean(axis=0)
    unbiased = batch_variance * np.float32(len(rows) / max(len(rows) - 1, 1))
    if factor == 1:
        return [batch_mean, batch_variance], [batch_mean, unbiased]
    _require_channels(rows.shape[1], mean, variance)
    keep = np.float32(1) - factor
    shown = [keep * mean + factor * batch_mean, keep * variance + factor * unbiased]
    return [batch_mean, batch_variance], shown


@operator("LRN", types=(DataType.FLOAT32, DataType.FLOAT16))
def local_response_normalization(node: FlexNode) -> Step:
    """Function that divides values by a power of the sum of squares in neighbouring channels."""
    radius = node.int("depth_radius", 5)
    bias, alpha = (np.float32(node.float(name, 1.0)) for name in ("bias", "alpha"))
    beta = np.float32(node.float("beta", 0.5))

    def run(x: Array) -> Array:
        if x.ndim != 4:
            raise ValueError(f"input has shape {list(x.shape)}, expected 4 dimensions")
        values = x.astype(np.float32, copy=False)
        squares = np.square(values)
        sums = squares.copy()
        for distance in range(1, min(radius, x.shape[3] - 1) + 1):
            sums[..., distance:] += squares[..., :-distance]
            sums[..., :-distance] += squares[..., distance:]
        y: Array = values * np.power(bias + alpha * sums, -beta)
        return y.astype(x.dtype, copy=False)

    return run


@operator("BiasAdd", types=NUMBERS)
def bias_add(node: FlexNode) -> Step:
    """Return a function that adds input 1 to each channel."""
    if node.choice("data_format", ("NHWC", "NCHW"), "NHWC") == "NHWC":
        return add_bias

    def run(x: Array, bias: Array) -> Array:
        if x.ndim < 2 or bias.shape != x.shape[1:2]:
            shapes = f"{list(x.shape)} and {list(bias.shape)}"
            raise ValueError(f"input and bias have shapes {shapes}, expected channels second")
        y: Array = x + bias.reshape(-1, *(1,) * (x.ndim - 2))
        return y

    return run


@step_of("BiasAddV1", types=NUMBERS)
def add_bias(x: Array, bias: Array) -> Array:
    """Return *x* plus a number for each channel, which is the last axis."""
    if x.ndim < 2 or bias.shape != x.shape[-1:]:
        shapes = f"{list(x.shape)} and {list(bias.shape)}"
        raise ValueError(f"input and bias have shapes {shapes}, expected channels last")
    y: Array = x + bias
    return y


@operator("Softmax", "LogSoftmax", types=FLOATS)
def softmax(node: FlexNode) -> Step:
    """Return a function that computes the softmax over the last axis, or its logarithm."""
    is_logarithm = node.op == "LogSoftmax"

    def run(logits: Array) -> Array:
        _require_classes(logits)
        shifted, sums = _exponents(widened(logits))
        y: Array = shifted - np.log(sums) if is_logarithm else np.exp(shifted) / sums
        return y.astype(logits.dtype, copy=False)

    return run


def _require_classes(logits: Array) -> None:
    if not logits.ndim:
        raise ValueError("logits are a scalar, expected at least one dimension")


@step_of("SoftmaxCrossEntropyWithLogits", types=FLOATS, broadcasts=True)
def softmax_cross_entropy(logits: Array, labels: Array) -> list[Array]:
    """Return the softmax cross entropies with label rows, and their gradient."""
    if logits.ndim != 2 or labels.ndim != 2:
        shapes = f"{list(logits.shape)} and {list(labels.shape)}"
        raise ValueError(f"logits and labels have shapes {shapes}, expected two dimensions")
    dtype = logits.dtype
    logits, labels = np.broadcast_arrays(widened(logits), widened(labels))
    if not logits.shape[1]:
        raise ValueError("logits have no classes, expected at least one")
    shifted, sums = _exponents(logits)
    losses = (labels * (np.log(sums) - shifted)).sum(axis=1)
    gradient = np.exp(shifted) / sums - labels
    return [losses.astype(dtype, copy=False), gradient.astype(dtype, copy=False)]


@step_of("SparseSoftmaxCrossEntropyWithLogits", types=FLOATS)
def sparse_softmax_cross_entropy(logits: Array, labels: Array) -> list[Array]:
    """Return the softmax cross entropy with one label per row, and its gradient."""
    if logits.ndim != 2 or labels.shape != logits.shape[:1]:
        shapes = f"{list(logits.shape)} and {list(labels.shape)}"
        raise ValueError(f"logits and labels have shapes {shapes}, expected a label a row")
    if labels.size and not 0 <= labels.min() <= labels.max() < logits.shape[1]:
        wrong = f"{labels.min()} to {labels.max()}"
        raise ValueError(f"labels are {wrong}, expected 0 to {logits.shape[1] - 1}")
    dtype, rows = logits.dtype, np.arange(len(logits))
    shifted, sums = _exponents(widened(logits))
    losses = np.log(sums[:, 0]) - shifted[rows, labels]
    gradient = np.exp(shifted) / sums
    gradient[rows, labels] -= 1
    return [losses.astype(dtype, copy=False), gradient.astype(dtype, copy=False)]


def _exponents(logits: Array) -> tuple[Array, Array]:
    """Return the logits minus the maximum of their row, and the row sums of their exponentials."""
    shifted = logits - logits.max(axis=-1, keepdims=True, initial=-np.inf)
    return shifted, np.exp(shifted).sum(axis=-1, keepdims=True)
