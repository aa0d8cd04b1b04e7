"""Checks of nodes that several operators share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from delegraph import Rejection, Tensor
from delegraph.errors import OperatorError
from delegraph.schema.enums import ActivationFunctionType
from delegraph_numba_cpu.instructions.elementwise import LARGEST_RANK
from delegraph_numba_cpu.lowering.registry import Call

ROUNDED_TYPES = ("INT8", "UINT8", "INT16")
"""Types for which builtin and reference kernels round differently in some operators."""

_RANGES = {
    "INT4": (-8, 7),
    "INT8": (-128, 127),
    "UINT8": (0, 255),
    "INT16": (-(1 << 15), (1 << 15) - 1),
    "UINT16": (0, (1 << 16) - 1),
}


def check_types(call: Call, *allowed: str) -> Rejection | None:
    """Return a rejection unless all tensors of *call* have one of the types *allowed*."""
    given = (i for i in (*call.node.inputs, *call.node.outputs) if i >= 0)
    return first_rejection(*(check_type(call.context.tensors[i], *allowed) for i in given))


def first_rejection(*found: Rejection | None) -> Rejection | None:
    """Return the first rejection among *found*; None if there is none."""
    return next((rejection for rejection in found if rejection is not None), None)


def check_quantization(call: Call) -> Rejection | None:
    """Return a rejection unless scales are finite and zero points within their types."""
    for index in (*call.node.inputs, *call.node.outputs):
        tensor = call.context.tensors[index] if index >= 0 else None
        limits = None if tensor is None else _RANGES.get(tensor.type.name)
        if tensor is None or limits is None or tensor.quantization is None:
            continue
        scales = tensor.quantization.scales.tolist()
        points = tensor.quantization.zero_points.tolist()
        if not all(map(math.isfinite, scales)):
            return Rejection("scale", actual=scales, expected="numbers", tensor=index)
        if points and not limits[0] <= min(points) <= max(points) <= limits[1]:
            actual, expected = [min(points), max(points)], list(limits)
            return Rejection("zero-point", actual=actual, expected=expected, tensor=index)
    return None


def check_same_type(*tensors: Tensor) -> Rejection | None:
    """Return a rejection unless all *tensors* have the type of the first tensor."""
    first, *others = tensors
    for tensor in others:
        if tensor.type is not first.type:
            return Rejection(
                "dtype", actual=tensor.type.name, expected=first.type.name, tensor=tensor.index
            )
    return None


def check_type(tensor: Tensor, *allowed: str) -> Rejection | None:
    """Return a rejection unless *tensor* has one of the types *allowed*."""
    if tensor.type.name in allowed:
        return None
    expected = " or ".join(allowed)
    return Rejection("dtype", actual=tensor.type.name, expected=expected, tensor=tensor.index)


def check_shapes(call: Call, inputs: int) -> Rejection | None:
    """Return a rejection unless there are *inputs* inputs and at most 8 axes."""
    if len(call.node.inputs) != inputs:
        return Rejection("inputs", actual=len(call.node.inputs), expected=inputs)
    for index in (*call.node.inputs, *call.node.outputs):
        rank = len(call.context.tensors[index].shape)
        if rank > LARGEST_RANK:
            expected = f"at most {LARGEST_RANK}"
            return Rejection("rank", actual=rank, expected=expected, tensor=index)
    return None


def check_constant_parameter(call: Call, expected: str = "a constant") -> Rejection | None:
    """Return a rejection unless the node has two inputs, of which the second is a constant.

    *expected* says in words what the second is.
    """
    if len(call.node.inputs) != 2 or min(call.node.inputs) < 0:
        return Rejection("operands", expected="two inputs")
    parameter = call.input(1)
    if parameter.is_constant:
        return None
    return Rejection("computed-parameter", expected=expected, tensor=parameter.index)


def check_bias(call: Call, position: int = 2) -> Rejection | None:
    """Return a rejection unless the bias has one value per output.

    The bias is input *position*, and may be absent.
    """
    weight, bias = call.input(1), call.optional_input(position)
    if bias is None or not weight.shape:
        return None
    outputs = weight.shape[-1 if call.name == "DEPTHWISE_CONV_2D" else 0]
    size = math.prod(bias.shape)
    if size == outputs:
        return None
    return Rejection("bias", actual=size, expected=outputs, tensor=bias.index)


def check_one_scale(tensor: Tensor) -> Rejection | None:
    """Return a rejection unless the tensor has exactly one scale."""
    quantization = tensor.quantization
    scales = 0 if quantization is None else len(quantization.scales)
    if scales == 1 and quantization is not None and not quantization.block_size:
        return None
    return Rejection("scales", actual=scales, expected=1, tensor=tensor.index)


def check_positive_scales(tensor: Tensor) -> Rejection | None:
    """Return a rejection unless all scales of *tensor* are positive and finite."""
    scales = [] if tensor.quantization is None else tensor.quantization.scales.tolist()
    if all(0 < scale < np.inf for scale in scales):
        return None
    return Rejection("scale", actual=scales, expected="above 0", tensor=tensor.index)


def check_multiplier(real: float) -> Rejection | None:
    """Return a rejection if the factor *real* is finite, and not below the kernels' limit 2**31."""
    if not 2.0**31 <= real < np.inf:
        return None
    return Rejection("multiplier", actual=f"{real:g}", expected="less than 2**31")


def check_scales(tensor: Tensor, shape: Sequence[int]) -> Rejection | None:
    """Return a rejection unless *tensor* has one scale, or one per channel.

    Channels are the positions along the axis of *shape* that the tensor's quantization names.
    """
    quantization = tensor.quantization
    if quantization is None or quantization.block_size or len(quantization.scales) == 1:
        return check_one_scale(tensor)
    scales, axis = len(quantization.scales), quantization.quantized_dimension
    channels = shape[axis] if 0 <= axis < len(shape) else 1
    if scales == channels:
        return None
    return Rejection("scales", actual=scales, expected=channels, tensor=tensor.index)


def check_one_zero_point(tensor: Tensor) -> Rejection | None:
    """Return a rejection unless all channels of *tensor* have the same zero point."""
    points = [] if tensor.quantization is None else tensor.quantization.zero_points.tolist()
    if len(set(points)) < 2:
        return None
    return Rejection("zero-point", actual=points, expected="one", tensor=tensor.index)


def require_asked(what: str, asked: Iterable[int], found: Iterable[int]) -> None:
    """Check that outputs have the sizes *asked*, which the node's parameters request.

    Raises:
        OperatorError: the sizes *found* differ from *asked*; the message names them by *what*.
    """
    asked, found = list(asked), list(found)
    if asked != found:
        raise OperatorError(f"{what}: the node asks for {asked}, its outputs have {found}")


def activation_of(call: Call) -> ActivationFunctionType:
    """Return the fused activation of the node *call*; NONE if its options have none."""
    none = ActivationFunctionType.NONE
    return getattr(call.options, "fused_activation_function", none)
