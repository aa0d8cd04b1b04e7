"""Kernel of STABLEHLO_CONVOLUTION."""

from __future__ import annotations

import math

import numpy as np

from delegraph.arithmetic.interior_pad import InteriorPadding
from delegraph.arithmetic.padding import Window
from delegraph.arithmetic.patches import Patches
from delegraph.errors import OperatorError
from delegraph.kernels.stablehlo.data_movement import sizes
from delegraph.kernels.stablehlo.dot_general import store, sum_dtype
from delegraph.kernels.stablehlo.types import ANY
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import option, require_rank, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext


@kernel("STABLEHLO_CONVOLUTION", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_CONVOLUTION: a convolution in any number of spatial dimensions.

    The input may be dilated and padded (or cropped), the kernel dilated and reversed; features or
    batches may be divided into groups. The official interpreter only parses this operator; this
    kernel follows the StableHLO specification.

    Source:
        https://openxla.org/stablehlo/spec#convolution
    """
    x, weight, y = tensors_of(context, node, 2)
    for tensor in (x, weight, y):
        require_type(tensor, ANY)
        require_rank(tensor, len(x.shape))
    layouts = _Layouts.of(node, len(x.shape) - 2)
    feature_groups = int(option(node, "feature_group_count", 1))
    batch_groups = int(option(node, "batch_group_count", 1))
    batch, *spatial, channels = (x.shape[axis] for axis in layouts.input)
    *kernel_sizes, depth, outputs = (weight.shape[axis] for axis in layouts.kernel)
    _check_groups(feature_groups, batch_groups, batch, channels, depth, outputs)
    placement, windows = _geometry(node, spatial, kernel_sizes)
    shape = (batch // batch_groups, *(window.output for window in windows), outputs)
    context.resize_tensor(y, [shape[layouts.output.index(axis)] for axis in range(len(shape))])
    flips = _flips(node, len(spatial))
    dtype = sum_dtype(x, weight, y, math.prod(kernel_sizes) * depth)
    groups = feature_groups * batch_groups
    patches = Patches(context, windows, channels, feature_groups, dtype, dtype, outputs)
    padded = context.scratch((*placement.shape, channels), dtype)
    sums = context.scratch(shape, dtype)

    def run() -> None:
        taps = weight.data.transpose(layouts.kernel)[flips].astype(dtype, copy=False)
        matrices = np.split(taps.reshape(patches.depth, outputs), groups, axis=1)
        images = x.data.transpose(layouts.input)
        results = sums.data.reshape(batch // batch_groups, patches.rows, outputs)
        width = outputs // groups
        for i, image in enumerate(images):
            # Batch groups are consecutive, and each has the outputs of its kernels.
            batch_group, target = divmod(i, batch // batch_groups)
            padded.data.fill(0)
            padded.data[placement.target] = image[placement.source]
            for tile, parts in patches.tiles(padded.data):
                for group, part in enumerate(parts, batch_group * feature_groups):
                    columns = slice(group * width, (group + 1) * width)
                    results[target, tile, columns] = part @ matrices[group]
        store(sums.data, y.data.transpose(layouts.output))

    return run


@dataclass(frozen=True, slots=True)
class _Layouts:
    """Axes of the tensors in the order of the computation.

    Attributes:
        input: input's axes: batch, spatial axes, feature.
        kernel: kernel's axes: spatial axes, input feature, output feature.
        output: output's axes: batch, spatial axes, feature.
    """

    input: tuple[int, ...]
    kernel: tuple[int, ...]
    output: tuple[int, ...]

    @classmethod
    def of(cls, node: Node, spatial: int) -> _Layouts:
        """Return the layouts that a node's options give, for *spatial* spatial dimensions.

        Raises:
            OperatorError: an axis is missing, or is listed twice.
        """

        def axis(name: str) -> int:
            return int(option(node, f"{name}_dimension", 0))

        def all_of(first: tuple[int, ...], name: str, last: tuple[int, ...]) -> tuple[int, ...]:
            found = (*first, *sizes(node, f"{name}_spatial_dimensions", spatial), *last)
            if sorted(found) != list(range(spatial + 2)):
                raise OperatorError(f"{name} dimensions are {list(found)}, expected each axis once")
            return found

        return cls(
            all_of((axis("input_batch"),), "input", (axis("input_feature"),)),
            all_of((), "kernel", (axis("kernel_input_feature"), axis("kernel_output_feature"))),
            all_of((axis("output_batch"),), "output", (axis("output_feature"),)),
        )


def _check_groups(
    feature_groups: int, batch_groups: int, batch: int, channels: int, depth: int, outputs: int
) -> None:
    if min(feature_groups, batch_groups) < 1 or max(feature_groups, batch_groups) != (
        feature_groups * batch_groups
    ):
        raise OperatorError(
            f"{feature_groups} feature and {batch_groups} batch groups, expected one of either"
        )
    if batch % batch_groups or outputs % (feature_groups * batch_groups):
        raise OperatorError(
            f"{batch} batches or {outputs} outputs are not divided by "
            f"{feature_groups * batch_groups} groups"
        )
    if channels != depth * feature_groups:
        raise OperatorError(
            f"input has {channels} features, expected {feature_groups} groups of {depth}"
        )


def _geometry(
    node: Node, spatial: list[int], kernel_sizes: list[int]
) -> tuple[InteriorPadding, tuple[Window, ...]]:
    """Return the padding of the input, and the windows over the padded input.

    *spatial* and *kernel_sizes* are the lengths of the input's and the kernel's spatial axes.
    """
    rank = len(spatial)
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    strides, gaps, dilations = (sizes(node, name, rank) for name in names)
    padding = sizes(node, "padding", 2 * rank)
    if min((*strides, *gaps, *dilations), default=1) < 1:
        raise OperatorError(f"strides and dilations {strides}, {gaps}, {dilations}, expected >= 1")
    placement = InteriorPadding.of(spatial, padding[::2], padding[1::2], [gap - 1 for gap in gaps])
    windows = []
    for size, taps, stride, dilation in zip(
        placement.shape, kernel_sizes, strides, dilations, strict=True
    ):
        count = max((size - ((taps - 1) * dilation + 1)) // stride + 1, 0)
        windows.append(Window(size, taps, stride, dilation, count, 0))
    return placement, tuple(windows)


def _flips(node: Node, rank: int) -> tuple[slice, ...]:
    reversal = option(node, "window_reversal", ()) or (False,) * rank
    if len(reversal) != rank:
        raise OperatorError(f"window_reversal is {list(reversal)}, expected {rank} values")
    return tuple(slice(None, None, -1 if is_reversed else 1) for is_reversed in reversal)
