"""Fuses convolutions with a padding before them, and with an addition and activations after them.

A *layer* is a float32 convolution, with the activations after it and the PAD before it, if the
convolution is the PAD's only reader. The windows then reach over the edge of the PAD's input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from delegraph import Tensor
from delegraph.arithmetic import Window, integers
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph_numba_cpu.lowering.convolution.conv import emit_conv
from delegraph_numba_cpu.lowering.convolution.conv_f32 import CLAMPS, Range, clamp_range
from delegraph_numba_cpu.lowering.convolution.conv_windows import has_groups, windows_of
from delegraph_numba_cpu.lowering.convolution.depthwise_conv import emit_depthwise
from delegraph_numba_cpu.lowering.elementwise import elementwise_f32
from delegraph_numba_cpu.lowering.fusion import Fusion, Partition
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder


@dataclass(frozen=True, slots=True)
class Activations:
    """Activations that follow a node and are computed together with it.

    Attributes:
        members: positions of the activation nodes; empty if there is only the node's fused
            activation.
        output: index of the result tensor.
        limits: clamping range.
        slopes: factors of negative results, one for each channel; None if there is no PRELU.
    """

    members: tuple[int, ...]
    output: int
    limits: Range
    slopes: Tensor | None


def activations_of(partition: Partition, call: Call, *, may_slope: bool) -> Activations:
    """Return the fused activation of the node *call*, joined with activation nodes after it.

    An activation node must be the only reader of the result before it. PRELU is included only with
    *may_slope*, and is then the last activation.
    """
    members: tuple[int, ...] = ()
    output, (low, high), slopes = call.node.outputs[0], clamp_range(call), None
    while slopes is None and (position := partition.only_reader(output)) is not None:
        call = partition.calls[position]
        if call.name in elementwise_f32.CLAMPS:
            least, most = elementwise_f32.CLAMPS[call.name]
            low, high = (min(max(limit, least), most) for limit in (low, high))
        elif may_slope and _has_channel_slopes(call, output):
            slopes = call.input(1)
        else:
            break
        members, output = (*members, position), call.node.outputs[0]
    return Activations(members, output, (low, high), slopes)


def _has_channel_slopes(call: Call, index: int) -> bool:
    """Whether the node *call* is PRELU of tensor *index* with a constant slope for each channel."""
    if call.name != "PRELU" or call.input(0).index != index:
        return False
    x, slopes = call.input(0), call.input(1)
    is_vector = slopes.shape[-1:] == x.shape[-1:] and math.prod(slopes.shape) == x.shape[-1]
    return slopes.is_constant and is_vector


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution of the partition, with the PAD before it and the activations after it.

    Attributes:
        call: the convolution's node.
        members: positions of the layer's nodes, in order.
        source: input of the layer, before the padding.
        windows: windows along height and along width.
        activations: activations of the convolution's results.
    """

    call: Call
    members: tuple[int, ...]
    source: Tensor
    windows: tuple[Window, Window]
    activations: Activations

    @property
    def output(self) -> int:
        """Index of the layer's output tensor."""
        return self.activations.output

    @property
    def is_pointwise(self) -> bool:
        """Whether each output pixel depends only on the input pixel at the same position."""
        return all(window.is_pointwise for window in self.windows)


def layer_at(partition: Partition, position: int) -> Layer | None:
    """Return a float32 convolution with the PAD before it and the activations after it.

    The result is None if no such group of nodes begins at the position.

    Args:
        partition: the nodes.
        position: position of the first node, a PAD or the convolution.
    """
    call = partition.calls[position]
    if call.name in ("PAD", "PADV2"):
        pads, following = _zeros_around(call), partition.next(position)
        if pads is None or following is None or not _is_convolution(partition.calls[following]):
            return None
        conv = partition.calls[following]
        return _layer(
            partition,
            conv,
            (position, following),
            call.input(0),
            _padded(conv, call.input(0).shape, pads),
        )
    if not _is_convolution(call):
        return None
    return _layer(partition, call, (position,), call.input(0), windows_of(call))


def _layer(
    partition: Partition,
    call: Call,
    members: tuple[int, ...],
    source: Tensor,
    windows: tuple[Window, Window],
) -> Layer:
    activations = activations_of(partition, call, may_slope=call.name == "CONV_2D")
    return Layer(call, (*members, *activations.members), source, windows, activations)


def _is_convolution(call: Call) -> bool:
    """Whether the node *call* is a float32 convolution without groups."""
    if call.name not in ("CONV_2D", "DEPTHWISE_CONV_2D") or has_groups(call):
        return False
    return all(call.input(position).type.name == "FLOAT32" for position in (0, 1))


def _zeros_around(call: Call) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the numbers of zeros that a PAD adds before and after height and width.

    The result is None if it pads in another way.
    """
    pads = _zeros(call)
    if pads is None or any(pads[0]) or any(pads[3]):
        return None
    return pads[1], pads[2]


def _zeros(call: Call) -> tuple[tuple[int, int], ...] | None:
    """Return the numbers of zeros that a PAD adds before and after each of four dimensions.

    The result is None for another rank, for values other than zero, and for computed numbers.
    """
    x, pads, value = call.input(0), call.input(1), call.optional_input(2)
    if len(x.shape) != 4 or not pads.is_constant:
        return None
    if value is not None and not (value.is_constant and value.data.reshape(-1)[0] == 0):
        return None
    flat = integers(pads)
    if min(flat) < 0:
        return None
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _padded(
    call: Call, shape: tuple[int, ...], pads: tuple[tuple[int, int], tuple[int, int]]
) -> tuple[Window, Window]:
    """Return the windows of the convolution *call*, moved to the input of the PAD before it.

    *shape* is that of this input; *pads* are the zeros before and after its height and its width.
    """
    down, across = (
        replace(window, input=size, before=window.before + before)
        for window, size, (before, _) in zip(windows_of(call), shape[1:3], pads, strict=True)
    )
    return down, across


@dataclass(frozen=True, slots=True)
class Residual:
    """The ADD after a convolution and the activations after it; the ADD may be absent.

    Attributes:
        members: positions of the fused nodes after the convolution's; empty without an ADD.
        other: the tensor that is added to the convolution's result; None if there is no ADD. If it
            has fewer channels, zeros are added to the other channels.
        activations: activations of the sum, or of the convolution if there is no ADD.
    """

    members: tuple[int, ...]
    other: Tensor | None
    activations: Activations

    @property
    def output(self) -> int:
        """Index of the result tensor."""
        return self.activations.output


def residual_after(partition: Partition, layer: Layer) -> Residual:
    """Return the ADD that alone reads the output of *layer*, with the nodes that are fused with it.

    Both operands of the ADD have equal shapes. A PAD of channels before the other operand, and
    activations after the ADD, are fused with it. If there is no fitting ADD, the returned object
    has none.
    """
    nothing = Residual((), None, layer.activations)
    position = partition.only_reader(layer.output)
    if position is None or partition.calls[position].name != "ADD" or layer.activations.slopes:
        return nothing
    call = partition.calls[position]
    a, b = call.input(0), call.input(1)
    other = b if a.index == layer.output else a
    same = a.shape == b.shape and a.index != b.index
    if not same or Act(call.options.fused_activation_function) not in CLAMPS:
        return nothing
    activations = activations_of(partition, call, may_slope=True)
    padding, other = _channels_before_padding(partition, other)
    return Residual((*padding, position, *activations.members), other, activations)


def _channels_before_padding(
    partition: Partition, padded: Tensor
) -> tuple[tuple[int, ...], Tensor]:
    """Return the position and the input of the PAD that only adds channels to make *padded*.

    If there is none, return an empty tuple and *padded* itself.
    """
    position = partition.maker(padded.index)
    if position is None or partition.only_reader(padded.index) is None:
        return (), padded
    call = partition.calls[position]
    pads = _zeros(call) if call.name in ("PAD", "PADV2") else None
    if pads is None or any(map(any, pads[:3])) or pads[3][0]:
        return (), padded
    return (position,), call.input(0)


def output_words(builder: ProgramBuilder, layer: Layer, residual: Residual) -> dict[str, Any]:
    """Return the kernel's operands, by name, for a layer's result, residual, clamp and slopes.

    Args:
        builder: builder of the program.
        layer: the convolution, with the activations after it.
        residual: the ADD after the convolution, if any, with the tensor that it adds.
    """
    limits, others = layer.activations.limits, residual.activations
    sums, slopes, other = others.limits, others.slopes, residual.other
    words = {
        "y": builder.tensor(residual.output),
        "low": limits[0],
        "high": limits[1],
        "residual": 0,
        "sum_low": sums[0],
        "sum_high": sums[1],
        "slopes": 0 if slopes is None else builder.tensor(slopes.index),
    }
    if other is not None:
        channels = other.shape[3]
        words |= {"residual": builder.tensor(other.index), "residual_columns": channels}
        words["residual_pitch"] = 4 * channels
    return words


def fuse_layer(partition: Partition, position: int, builder: ProgramBuilder) -> Fusion | None:
    """Return the fusion of a convolution with the PAD before it, the ADD and activations after it.

    The layer begins at *position* of *partition*; the result is None if there is no layer, or
    nothing to fuse.
    """
    layer = layer_at(partition, position)
    if layer is None:
        return None
    if layer.call.name == "DEPTHWISE_CONV_2D":
        members, lower = layer.members, _depthwise(layer)
    else:
        residual = residual_after(partition, layer)
        members, lower = (*layer.members, *residual.members), _conv(layer, residual)
    return Fusion(members, lower) if len(members) > 1 else None


def _depthwise(layer: Layer) -> Callable[[ProgramBuilder], None]:
    def lower(builder: ProgramBuilder) -> None:
        source = layer.source
        memory, target = builder.tensor(source.index), builder.tensor(layer.output)
        limits = layer.activations.limits
        emit_depthwise(layer.call, builder, memory, source.shape, layer.windows, target, limits)

    return lower


def _conv(layer: Layer, residual: Residual) -> Callable[[ProgramBuilder], None]:
    def lower(builder: ProgramBuilder) -> None:
        emit_conv(
            layer.call,
            builder,
            builder.tensor(layer.source.index),
            layer.source.shape,
            layer.windows,
            **output_words(builder, layer, residual),
        )

    return lower
