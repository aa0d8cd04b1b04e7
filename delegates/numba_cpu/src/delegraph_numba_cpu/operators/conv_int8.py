"""Convolutions and matrix products of 8-bit integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from delegraph import Rejection, Tensor
from delegraph.errors import OperatorError
from delegraph.kernels.convolution_scale import (
    is_in_scalar_tail,
    per_channel_multipliers,
    per_tensor_multiplier,
    scaling_of,
)
from delegraph.kernels.padding import Window, convolution_windows, window
from delegraph.kernels.requantize import Scaling, fixed_point_scaling
from delegraph.schema.enums import FullyConnectedOptionsWeightsFormat
from delegraph_numba_cpu.blocks import conv_int8 as blocks
from delegraph_numba_cpu.blocks.moves import COPY
from delegraph_numba_cpu.operators.packing_int8 import (
    Product,
    centred,
    matrix_blocks,
    signed_bytes,
    summands_of,
    tap_blocks,
)
from delegraph_numba_cpu.operators.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program import Memory, ProgramBuilder

TYPES = ("INT8", "UINT8")
WEIGHT_TYPES = {"INT8": ("INT8", "INT4", "INT2"), "UINT8": ("UINT8",)}

CACHED_BYTES = 24 * 1024
"""Of matrix rows that are worked on at a time."""

ROWS = 14
"""Matrix rows are worked on in multiples of this, which suits all micro-kernels."""

TILE_PRODUCTS = 2_000_000
"""Products of a tile: some 10 us at least."""

RESULT_PRODUCTS = 50
"""What a result costs beside its products, in products."""


def check_constants(call: Call) -> Rejection | None:
    """Let pass 8-bit integers with constant weights, which kernels compute exactly."""
    x, y = call.input(_input(call)), call.output()
    weight, bias = call.input(1), call.optional_input(_input(call, bias=True))
    if x.type.name not in TYPES or y.type != x.type:
        return Rejection("dtype", actual=x.type.name, expected="INT8 or UINT8", tensor=x.index)
    allowed = WEIGHT_TYPES[x.type.name]
    if weight.type.name not in allowed:
        return Rejection(
            "dtype", actual=weight.type.name, expected=" or ".join(allowed), tensor=weight.index
        )
    for tensor in (weight, bias):
        if tensor is not None and not tensor.is_constant:
            return Rejection("computed-weights", expected="constant weights", tensor=tensor.index)
    if weight.sparsity is not None:
        return Rejection("sparse-weights", expected="dense weights", tensor=weight.index)
    if bias is not None and bias.type.name != "INT32":
        return Rejection("dtype", actual=bias.type.name, expected="INT32", tensor=bias.index)
    try:
        return product_of(call).rejection()
    except OperatorError as error:
        return Rejection("quantization", str(error))


def check_conv(call: Call) -> Rejection | None:
    """Let pass convolutions without groups."""
    x, weight = call.input(0), call.input(1)
    if len(x.shape) != 4 or x.shape[3] != weight.shape[3]:
        return Rejection("groups", actual=f"{x.shape}, {weight.shape}", expected="no groups")
    return check_constants(call)


def check_depthwise(call: Call) -> Rejection | None:
    """Let pass depthwise convolutions."""
    x, weight = call.input(0), call.input(1)
    if len(x.shape) != 4 or not x.shape[3] or weight.shape[3] % x.shape[3]:
        return Rejection("shape", actual=f"{x.shape}, {weight.shape}", expected="[N, H, W, C]")
    return check_constants(call)


def check_fully_connected(call: Call) -> Rejection | None:
    """Let pass weights in the default order."""
    if call.options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Rejection("weights-format", expected="the default order of weights")
    return check_constants(call)


def check_transposed(call: Call) -> Rejection | None:
    """Let pass transposed convolutions whose output shape is known before the data."""
    if not call.input(0).is_constant:
        return Rejection("computed-shape", expected="a constant shape", tensor=call.input(0).index)
    return check_constants(call)


def _input(call: Call, *, bias: bool = False) -> int:
    """Return which input the data is, or the bias."""
    is_transposed = call.name == "TRANSPOSE_CONV"
    return 2 + is_transposed if bias else 2 * is_transposed


def product_of(call: Call) -> Product:
    """Return the constants of a node.

    Raises:
        OperatorError: quantization that the official kernel refuses.
    """
    x, weight, y = call.input(_input(call)), call.input(1), call.output()
    bias = call.optional_input(_input(call, bias=True))
    values = centred(weight)
    if call.name == "DEPTHWISE_CONV_2D":
        values = values.reshape(-1, values.shape[-1]).T
    scaling = _scaling(call, x, weight, bias, y, len(values))
    values = values.reshape(len(values), -1)
    activation = call.options.fused_activation_function
    return Product.of(x, values, bias, y, scaling, activation)


def _scaling(
    call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, channels: int
) -> Scaling:
    """Return how accumulators are scaled; each operator's official kernel rounds in its own way."""
    if call.name == "FULLY_CONNECTED":
        multipliers = per_channel_multipliers(x, weight, y, channels)
        if weight.quantization is not None and len(weight.quantization.scales) == 1:
            multipliers[:] = per_tensor_multiplier(x, weight, bias, y)
        return fixed_point_scaling(multipliers, halves_away=False)
    away: Any = False
    if call.name == "DEPTHWISE_CONV_2D":
        away = is_in_scalar_tail(channels) if x.type.name == "INT8" else True
    elif call.name == "TRANSPOSE_CONV" and x.type.name == "INT8":
        away = is_in_scalar_tail(channels)
    return scaling_of(x, weight, bias, y, channels, "builtin", halves_away=away)


def lower_conv(call: Call, builder: ProgramBuilder) -> None:
    """Emit a convolution."""
    x, weight, y = call.input(0), call.input(1), call.output()
    down, across = convolution_windows(call.options, x.shape, weight.shape[1:3])
    product = product_of(call)
    windows = pack_windows(builder, x.shape[3], (down, across), product)
    matrix = pack_matrix(builder, call, product)
    is_pointwise = down.is_pointwise and across.is_pointwise and not down.after | across.after
    emit_product(
        builder, builder.tensor(x.index), builder.tensor(y.index), windows, matrix, product,
        math.prod(y.shape[:3]), is_pointwise,
    )  # fmt: skip


def lower_fully_connected(call: Call, builder: ProgramBuilder) -> None:
    """Emit a matrix product."""
    x, y = call.input(0), call.output()
    product = product_of(call)
    one = Window(1, 1, 1, 1, 1, 0)
    outputs, depth = product.weight.shape
    windows = pack_windows(builder, depth, (one, one), product)
    matrix = pack_matrix(builder, call, product)
    rows = math.prod(y.shape) // outputs
    emit_product(
        builder, builder.tensor(x.index), builder.tensor(y.index), windows, matrix, product,
        rows, True,
    )  # fmt: skip


def lower_transposed(call: Call, builder: ProgramBuilder) -> None:
    """Emit a transposed convolution, as one over an input with holes."""
    weight, x, y = call.input(1), call.input(2), call.output()
    options, product = call.options, product_of(call)
    down, across = (
        window(options.padding, y.shape[1 + i], weight.shape[1 + i], stride)
        for i, stride in enumerate((options.stride_h, options.stride_w))
    )
    windows = pack_windows(builder, x.shape[3], (down, across), product, is_transposed=True)
    source, target = builder.tensor(x.index), builder.tensor(y.index)
    pixels = math.prod(y.shape[:3])

    def emit(target: Memory, product: Product, key: str) -> None:
        matrix = pack_matrix(builder, call, product, key)
        emit_product(builder, source, target, windows, matrix, product, pixels, False)

    emit(target, product, "")
    tail = math.prod(y.shape) % 16
    if x.type.name == "UINT8" and tail and builder.exact:
        # The official kernel requantises 16 values at once; the rest rounds differently.
        away = scaling_of(
            x, weight, call.optional_input(3), y, len(product.bias), "builtin", halves_away=True
        )
        values = product.weight
        rest = Product.of(
            x, values, call.optional_input(3), y, away, options.fused_activation_function
        )
        whole = builder.scratch(target.size)
        emit(whole, rest, "tail")
        copy_bytes(builder, whole, target, target.size - tail, tail)


def copy_bytes(
    builder: ProgramBuilder, source: Memory, target: Memory, offset: int, size: int
) -> None:
    """Emit a copy of bytes at the same offset of both."""
    builder.emit(COPY, source=source + offset, target=target + offset, bytes=size)


def lower_depthwise(call: Call, builder: ProgramBuilder) -> None:
    """Emit a depthwise convolution."""
    x, weight, y = call.input(0), call.input(1), call.output()
    source, product = builder.tensor(x.index), product_of(call)
    channels = y.shape[3]
    down, across = convolution_windows(call.options, x.shape, weight.shape[1:3])
    times = channels // max(x.shape[3], 1)
    if times > 1:
        repeated, pixels = builder.scratch(source.size * times), math.prod(x.shape[:3])
        builder.emit(
            blocks.REPEAT, max(1, min(builder.workers, pixels // 1000)), x=source, y=repeated,
            pixels=pixels, channels=x.shape[3], times=times,
        )  # fmt: skip
        source = repeated
    windows = pack_windows(builder, channels, (down, across), product)
    taps = pack_taps(builder, call, product, down, across)
    rows = y.shape[0] * down.output
    if not math.prod(y.shape):
        return
    size = depthwise_bytes(channels, down, across)
    results = math.prod(y.shape)
    builder.emit(
        blocks.DEPTHWISE,
        tiles_for(builder, results * down.kernel * across.kernel * 4, results * 2, rows),
        x=source,
        y=builder.tensor(y.index),
        windows=windows,
        taps=taps,
        rows=rows,
        scratch=builder.scratch(size * builder.workers),
        scratch_bytes=size,
    )


def depthwise_bytes(channels: int, down: Window, across: Window) -> int:
    """Return how much memory a row of a depthwise convolution takes."""
    lanes = 64 if channels >= 64 else 16
    return 64 + 4 * lanes * (across.output + line_columns(across) * -(-down.kernel // 4))


def line_columns(across: Window) -> int:
    """Return how many columns a packed line has."""
    return (across.output - 1) * across.stride + across.span


def tiles_for(builder: ProgramBuilder, products: int, results: int, most: int) -> int:
    """Return into how many tiles an operator is split, a multiple of the workers if it can be.

    Args:
        builder: knows the workers.
        products: of two bytes each.
        results: bytes of output, each of which costs as much as some products.
        most: tiles.
    """
    workers = builder.workers
    if workers == 1:
        return 1
    tiles = (products + RESULT_PRODUCTS * results) // TILE_PRODUCTS
    rounds = min(tiles // workers, 4)
    return max(1, min(rounds * workers if rounds else tiles, most))


@dataclass(frozen=True)
class Rows:
    """How windows become rows of a matrix.

    Attributes:
        layout: see ``CONVOLVE``.
        step: how many at a time.
        memory: bytes of scratch memory that takes.
    """

    layout: int
    step: int
    memory: int

    @classmethod
    def of(cls, product: Product, pixels: int, is_pointwise: bool) -> Rows:
        """Return a plan for *pixels* windows, which are pixels themselves if pointwise."""
        depth = product.weight.shape[1]
        row_bytes = -(-depth // 4) * 4
        layout = blocks.WINDOWED
        if is_pointwise and depth == row_bytes:
            layout = blocks.FLIPPED if product.flip else blocks.DIRECT
        most = max(CACHED_BYTES // max(row_bytes, 1) // ROWS, 1)
        step = min(most, -(-pixels // ROWS), 64) * ROWS
        memory = blocks.ACC_BYTES + 4 * step + 128 + max(step, 16) * row_bytes + 64
        return cls(layout, step, -(-memory // 64) * 64)


def emit_product(
    builder: ProgramBuilder,
    x: Memory,
    y: Memory,
    windows: Memory,
    matrix: Memory,
    product: Product,
    pixels: int,
    is_pointwise: bool,
) -> None:
    """Emit the product of windows and weights."""
    if not y.size:
        return
    outputs, depth = product.weight.shape
    rows = Rows.of(product, pixels, is_pointwise)
    tiles = tiles_for(builder, pixels * depth * outputs, pixels * outputs, 1 << 20)
    row_tiles = min(tiles, max(pixels // (2 * ROWS), 1))
    column_tiles = min(-(-tiles // row_tiles), max(-(-outputs // 64), 1))
    builder.emit(
        blocks.CONVOLVE,
        row_tiles * column_tiles,
        x=x,
        y=y,
        windows=windows,
        matrix=matrix,
        pixels=pixels,
        step=rows.step,
        layout=rows.layout,
        row_tiles=row_tiles,
        column_tiles=column_tiles,
        scratch=builder.scratch(rows.memory * builder.workers),
        scratch_bytes=rows.memory,
    )


def pack_windows(
    builder: ProgramBuilder,
    channels: int,
    windows: tuple[Window, Window],
    product: Product,
    *,
    is_transposed: bool = False,
    is_unsigned: bool = False,
) -> Memory:
    """Return the record of how windows become rows.

    Args:
        builder: keeps it.
        channels: of the input.
        windows: along height and width.
        product: the node's constants.
        is_transposed: whether windows are those of the convolution from output to input.
        is_unsigned: whether the input is unsigned already, in memory of the program's own.
    """
    down, across = windows
    depth = down.kernel * across.kernel * channels
    sizes = [down.input, across.input, down.output, across.output]
    if is_transposed:
        sizes = sizes[2:] + sizes[:2]
    words = {
        "height": sizes[0], "width": sizes[1], "channels": channels, "out_height": sizes[2],
        "out_width": sizes[3], "kernel_h": down.kernel, "kernel_w": across.kernel, "stride_h": down.stride,
        "stride_w": across.stride, "dilation_h": down.dilation, "dilation_w": across.dilation,
        "top": down.before, "left": across.before, "zero": product.zero, "flip": 0 if is_unsigned else product.flip,
        "row_bytes": -(-depth // 4) * 4, "is_transposed": int(is_transposed),
    }  # fmt: skip
    return builder.packed(("windows", *words.values()), lambda: blocks.WINDOWS.pack(**words))


def pack_matrix(
    builder: ProgramBuilder, call: Call, product: Product, key: str = "", shift: int = 0
) -> Memory:
    """Return the record of a node's weights.

    Args:
        builder: keeps it.
        call: the node.
        product: its constants.
        key: tells several forms for one node apart.
        shift: added to results, for those that stay unsigned.
    """
    name = (call.node.outputs[0], key, shift, builder.exact)
    outputs, depth = product.weight.shape
    values, sum_factor = signed_bytes(product.weight)
    weights = builder.packed(("weights", *name), lambda: matrix_blocks(values))
    headers = builder.packed(("headers", *name), lambda: product.headers(builder.exact, shift))
    steps = -(-depth // 4)
    record = {
        "weights": weights.address, "headers": headers.address, "depth": depth, "steps": steps,
        "block_bytes": 64 * steps, "outputs": outputs, "low": product.low + shift, "high": product.high + shift,
        "rounding": product.rounding(builder.exact), "out_flip": product.out_flip(shift),
        "sum_factor": sum_factor,
    }  # fmt: skip
    return builder.packed(("matrix", *name), lambda: blocks.MATRIX.pack(**record))


def pack_taps(
    builder: ProgramBuilder,
    call: Call,
    product: Product,
    down: Window,
    across: Window,
    shift: int = 0,
) -> Memory:
    """Return the record of a depthwise node's weights; arguments as of :func:`pack_matrix`."""
    name = (call.node.outputs[0], shift, builder.exact, down, across)
    channels = len(product.bias)
    values = product.weight.T.reshape(down.kernel, across.kernel, channels)
    weights = builder.packed(("weights", *name), lambda: tap_blocks(values))
    headers = builder.packed(("headers", *name), lambda: product.headers(builder.exact, shift))
    summands, groups = summands_of(values), -(-down.kernel // 4)
    columns = line_columns(across)
    offsets = [
        group * columns + tap * across.dilation
        for _ in range(summands)
        for group in range(groups)
        for tap in range(across.kernel)
    ]
    places = builder.packed(("offsets", *name), lambda: np.array(offsets, np.int64))
    record = {
        "weights": weights.address, "headers": headers.address, "offsets": places.address,
        "count": len(offsets), "low": product.low + shift, "high": product.high + shift,
        "rounding": product.rounding(builder.exact), "channels": channels,
        "block_bytes": 64 * len(offsets), "out_flip": product.out_flip(shift),
    }  # fmt: skip
    return builder.packed(("taps", *name), lambda: blocks.TAPS.pack(**record))


_FEATURES = ("activation", "empty", "extreme-values", "per-channel")
for _type in TYPES:
    _types = (*WEIGHT_TYPES[_type], "INT32")
    register_variants(
        _type,
        {
            "CONV_2D": Operator(check_conv, lower_conv, _types, _FEATURES),
            "FULLY_CONNECTED": Operator(
                check_fully_connected, lower_fully_connected, _types, (*_FEATURES, "many-dims")
            ),
            "DEPTHWISE_CONV_2D": Operator(check_depthwise, lower_depthwise, _types, _FEATURES),
        },
    )
    register_variants(
        _type,
        {"TRANSPOSE_CONV": Operator(check_transposed, lower_transposed, _types, _FEATURES)},
        position=2,
    )
