"""Fuses convolutions with a padding before them and an addition after them.

A *layer* is a float32 convolution with the PAD before it, if the convolution is its only reader.
Its windows then reach over the edge of the PAD's input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from delegraph import Tensor
from delegraph.arithmetic import Window, integers
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph_numba_cpu.lowering.convolution.conv import emit_conv
from delegraph_numba_cpu.lowering.convolution.conv_f32 import CLAMPS, UNLIMITED, Range, clamp_range
from delegraph_numba_cpu.lowering.convolution.conv_windows import has_groups, windows_of
from delegraph_numba_cpu.lowering.convolution.depthwise_conv import emit_depthwise
from delegraph_numba_cpu.lowering.fusion import Fusion, Partition
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution of the partition, with the PAD before it if there is one.

    Attributes:
        call: its node.
        members: positions of its nodes: the PAD if there is one, then the convolution.
        source: its input before the padding.
        windows: along height and width.
    """

    call: Call
    members: tuple[int, ...]
    source: Tensor
    windows: tuple[Window, Window]

    @property
    def output(self) -> int:
        """Index of the layer's output tensor."""
        return self.call.node.outputs[0]

    @property
    def is_pointwise(self) -> bool:
        """Whether each output pixel depends only on the input pixel at the same position."""
        return all(window.is_pointwise for window in self.windows)


def layer_at(partition: Partition, position: int) -> Layer | None:
    """Return the layer of *partition* that begins at *position*; None if there is none."""
    call = partition.calls[position]
    if call.name in ("PAD", "PADV2"):
        pads, following = _zeros_around(call), partition.next(position)
        if pads is None or following is None or not _is_convolution(partition.calls[following]):
            return None
        return _padded(partition.calls[following], (position, following), call.input(0), pads)
    if not _is_convolution(call):
        return None
    return Layer(call, (position,), call.input(0), windows_of(call))


def _is_convolution(call: Call) -> bool:
    """Return whether a node is a float32 convolution without groups."""
    if call.name not in ("CONV_2D", "DEPTHWISE_CONV_2D") or has_groups(call):
        return False
    return all(call.input(position).type.name == "FLOAT32" for position in (0, 1))


def _zeros_around(call: Call) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the zeros that a PAD adds to height and width; None if it pads in another way."""
    x, pads, value = call.input(0), call.input(1), call.optional_input(2)
    if len(x.shape) != 4 or not pads.is_constant:
        return None
    if value is not None and not (value.is_constant and value.data.reshape(-1)[0] == 0):
        return None
    flat = integers(pads)
    if any(flat[:2]) or any(flat[6:]) or min(flat) < 0:
        return None
    return (flat[2], flat[3]), (flat[4], flat[5])


def _padded(
    call: Call,
    members: tuple[int, ...],
    source: Tensor,
    pads: tuple[tuple[int, int], tuple[int, int]],
) -> Layer:
    down, across = (
        replace(window, input=size, before=window.before + before)
        for window, size, (before, _) in zip(windows_of(call), source.shape[1:3], pads, strict=True)
    )
    return Layer(call, members, source, (down, across))


@dataclass(frozen=True, slots=True)
class Residual:
    """An ADD after a convolution, or its absence.

    Attributes:
        members: position of the ADD; empty without an ADD.
        other: index of the tensor that is added to the convolution's result; None without an ADD.
        output: index of the result tensor.
        limits: clamping range of the sum.
    """

    members: tuple[int, ...]
    other: int | None
    output: int
    limits: Range


def residual_after(partition: Partition, layer: Layer) -> Residual:
    """Return the ADD after *layer*, if it alone reads the layer's output and shapes are equal.

    Otherwise the result says that there is no ADD.
    """
    nothing = Residual((), None, layer.output, UNLIMITED)
    position = partition.only_reader(layer.output)
    if position is None or partition.calls[position].name != "ADD":
        return nothing
    call = partition.calls[position]
    a, b = call.input(0), call.input(1)
    other = b if a.index == layer.output else a
    same = a.shape == b.shape and a.index != b.index
    if not same or Act(call.options.fused_activation_function) not in CLAMPS:
        return nothing
    return Residual((position,), other.index, call.node.outputs[0], clamp_range(call))


def fuse_layer(partition: Partition, position: int, builder: ProgramBuilder) -> Fusion | None:
    """Return the fusion of a convolution with the PAD before it and the ADD after it.

    The layer begins at *position* of *partition*; None if there is no layer, or nothing to fuse.
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
        memory = builder.tensor(source.index)
        emit_depthwise(layer.call, builder, memory, source.shape, layer.windows)

    return lower


def _conv(layer: Layer, residual: Residual) -> Callable[[ProgramBuilder], None]:
    def lower(builder: ProgramBuilder) -> None:
        emit_conv(
            layer.call,
            builder,
            builder.tensor(layer.source.index),
            layer.source.shape,
            layer.windows,
            clamp_range(layer.call),
            builder.tensor(residual.output),
            None if residual.other is None else builder.tensor(residual.other),
            residual.limits,
        )

    return lower
