"""Cases of pooling, resizing, and of moving data between space, depth and batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph.schema.enums import Padding
from delegraph.schema.options import (
    DepthToSpaceOptions,
    Pool2DOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    SpaceToDepthOptions,
)
from delegraph.testing.one_op import constant, tensor
from delegraph.testing.operator_case import OperatorCase, fed, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import ACTIVATIONS, PLAIN, QUANTIZED, RandomOperands
from delegraph.testing.registered_operators import BUILTIN_VERSIONS


@cases_of("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pools(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: windows smaller and larger than the image, with any stride."""
    types = [*PLAIN, *(random.pick(("FLOAT32", *QUANTIZED)) for _ in range(random.count * 3))]
    for type in types:
        same = random.quantization(type)
        shape = (random.number(1, 2), random.number(1, 12), random.number(1, 12),
                 random.pick([1, 2, 3, 8, 17, 33]))  # fmt: skip
        options = Pool2DOptions(
            padding=random.pick((Padding.SAME, Padding.VALID)),
            stride_w=random.number(1, 4),
            stride_h=random.number(1, 4),
            filter_width=random.number(1, 6),
            filter_height=random.number(1, 6),
            fused_activation_function=random.pick([*ACTIVATIONS, *[ACTIVATIONS[0]] * 6]),
        )
        x = random.fed(type, shape, quantization=same)
        version = random.number(1, BUILTIN_VERSIONS[op][1])
        yield operator_case(op, [x], [tensor((), type, **same)], options, version=version)


@cases_of("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resizing(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: larger and smaller images, with each option for the corners."""
    table = ResizeBilinearOptions if op == "RESIZE_BILINEAR" else ResizeNearestNeighborOptions
    types = [*PLAIN, *(random.pick(("FLOAT32", *QUANTIZED)) for _ in range(random.count * 3))]
    for type in types:
        same = random.quantization(type)
        h, w = random.number(1, 9), random.number(1, 9)
        shape = (random.number(1, 2), h, w, random.pick([1, 2, 3, 8, 17]))
        factor = random.pick([None, 2, 3])
        size = (
            (random.number(1, 12), random.number(1, 12))
            if factor is None
            else (h * factor, w * factor)
        )
        sizes = np.array(size, np.int32)
        options = table(align_corners=random.chance(0.35), half_pixel_centers=random.chance(0.35))
        inputs = [
            random.fed(type, shape, quantization=same),
            fed(sizes) if random.chance(0.2) else constant(sizes),
        ]
        version = random.number(1, BUILTIN_VERSIONS[op][1])
        yield operator_case(op, inputs, [tensor((), type, **same)], options, version=version)


@cases_of("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def blocks(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: blocks that divide the shape, rarely blocks that do not."""
    table = SpaceToDepthOptions if op == "SPACE_TO_DEPTH" else DepthToSpaceOptions
    types = [*PLAIN, *(random.pick(PLAIN) for _ in range(random.count))]
    for type in types:
        same = random.quantization(type)
        size = random.number(1, 4)
        n, h, w, c = (random.number(1, 3) for _ in range(4))
        shape: tuple[int, ...] = (
            (n, h * size, w * size, c) if op == "SPACE_TO_DEPTH" else (n, h, w, c * size * size)
        )
        if random.chance(0.1):
            shape = random.shape(3, 5)
        x = random.fed(type, shape, quantization=same)
        options = table(block_size=random.pick([size] * 12 + [0, -1]))
        version = random.number(1, BUILTIN_VERSIONS[op][1])
        yield operator_case(op, [x], [tensor((), type, **same)], options, version=version)


@cases_of("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def batches(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: one or two spatial axes, constant and computed pads or crops."""
    types = [*PLAIN * 4, *(random.pick(("FLOAT32", "INT8", "UINT8")) for _ in range(random.count))]
    for type in types:
        same = random.quantization(type)
        axes = random.pick([1, 2, 2])
        block = np.array([random.number(1, 3) for _ in range(axes)], np.int32)
        inner = [random.number(1, 4) for _ in range(axes)]
        trims = np.array([[random.number(0, 2) for _ in range(2)] for _ in range(axes)], np.int32)
        n, depth = random.number(1, 3), random.number(1, 3)
        if op == "SPACE_TO_BATCH_ND":
            inner = [
                i * int(b) - int(t) for i, b, t in zip(inner, block, trims.sum(1), strict=True)
            ]
            shape = (n, *(max(i, random.number(0, 1)) for i in inner), depth)
        else:
            shape = (n * int(block.prod()), *inner, depth)
        make = fed if random.chance(0.2) else constant
        inputs = [random.fed(type, shape, quantization=same), make(block), make(trims)]
        version = random.number(1, BUILTIN_VERSIONS[op][1])
        yield operator_case(op, inputs, [tensor((), type, **same)], version=version)
