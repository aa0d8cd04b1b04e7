"""Records of constants for ``kernels/conv_int8.py``, and the division of its work."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph.arithmetic import Window
from delegraph_numba_cpu.instructions import conv_int8 as instructions
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import Product
from delegraph_numba_cpu.lowering.convolution.conv_int8_lines import Lines
from delegraph_numba_cpu.lowering.convolution.conv_int8_packing import (
    LANES,
    Integers,
    matrix_blocks,
    signed_bytes,
    without_gaps,
)
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import (
    Address,
    Memory,
    ProgramBuilder,
    WorkerScratch,
    aligned,
)

CACHED_BYTES = 24 * 1024
"""Approximate number of bytes of matrix rows that are processed together."""

ROWS = 14
"""Number that divides the number of rows processed together; it suits all micro-kernels."""

COLUMNS, LEAST_COLUMNS = 64, 32
"""Numbers of columns of a part of a matrix: for one micro-kernel, and at least, for more
workers."""

PRODUCTS_A_NANOSECOND = 200
"""Approximate number of products, of a byte and a byte, that are computed in a nanosecond."""

RESULT_PRODUCTS = 50
"""Number of products that take as long as scaling and storing one result."""


def tiles_for(builder: ProgramBuilder, products: int, results: int, most: int) -> int:
    """Return the number of tiles, parts that threads compute in parallel, for an operator.

    Args:
        builder: builder of the program, with the number of workers.
        products: number of products of a byte and a byte.
        results: number of bytes of output.
        most: largest number of tiles.
    """
    return builder.tiles((products + RESULT_PRODUCTS * results) / PRODUCTS_A_NANOSECOND, most)


def row_tiles_for(builder: ProgramBuilder, tiles: int, pixels: int) -> int:
    """Return the number of parts into which a matrix's rows are divided for threads.

    Args:
        builder: builder of the program, with the number of workers.
        tiles: number of parts of the whole product.
        pixels: number of rows.
    """
    of_workers = min(builder.workers, 2 * pixels // (3 * ROWS))
    return builder.row_tiles(tiles, max(pixels // (2 * ROWS), of_workers))


def column_tiles_for(builder: ProgramBuilder, tiles: int, row_tiles: int, outputs: int) -> int:
    """Return the number of parts into which *outputs* columns of a matrix are divided.

    It is a multiple of the number of workers if possible, unless *row_tiles* already is.

    Args:
        builder: builder of the program.
        tiles: number of parts of the whole product.
        row_tiles: number of parts into which the rows are divided.
        outputs: number of columns.
    """
    workers, most = builder.workers, tiles // row_tiles
    if row_tiles % workers == 0 or outputs <= LEAST_COLUMNS:
        return min(most, max(-(-outputs // COLUMNS), 1))
    found = min(most, max(-(-outputs // COLUMNS), min(workers, -(-outputs // LEAST_COLUMNS))))
    return found - found % workers if found > workers else found


@dataclass(frozen=True)
class Rows:
    """Division of the rows of a matrix (each a window) into groups that are multiplied together.

    Attributes:
        layout: see ``CONVOLVE``.
        step: number of rows that are multiplied together.
        memory: number of bytes of scratch memory.
    """

    layout: int
    step: int
    memory: int

    @classmethod
    def of(
        cls, product: Product, pixels: int, is_pointwise: bool, lines: Lines | None = None
    ) -> Rows:
        """Return the division of the rows of a product's left matrix.

        Args:
            product: the constants of the product.
            pixels: number of windows, which are the rows.
            is_pointwise: whether a window is a single pixel.
            lines: the padded lines from which windows are read, or None.
        """
        if lines is not None:
            return cls(instructions.LINES, lines.step, lines.memory)
        depth = product.weight.shape[1]
        row_bytes = -(-depth // 4) * 4
        layout = instructions.WINDOWED
        if is_pointwise and depth == row_bytes:
            layout = instructions.FLIPPED if product.flip else instructions.DIRECT
        most = max(CACHED_BYTES // max(row_bytes, 1) // ROWS, 1)
        step = min(most, -(-pixels // ROWS), 64) * ROWS
        kept = instructions.ACC_BYTES + instructions.SPLIT_BYTES * (row_bytes // 4)
        memory = kept + 4 * step + 128 + max(step, 16) * row_bytes + 64
        return cls(layout, step, aligned(memory))


@dataclass(frozen=True)
class Stack:
    """Several products of equal sizes, with the distances between their inputs.

    Attributes:
        images: number of products.
        in_image: bytes from one input to the next.
        matrix_image: bytes from one record of a matrix to the next.
    """

    images: int = 1
    in_image: int = 0
    matrix_image: int = 0


ONE = Stack()


def emit_product(
    builder: ProgramBuilder,
    x: Memory | Address,
    y: Memory | Address,
    windows: Memory,
    matrix: Memory,
    product: Product,
    pixels: int,
    is_pointwise: bool,
    stack: Stack = ONE,
    lines: Lines | None = None,
) -> None:
    """Add to the program a kernel call that multiplies 8-bit windows by one or several matrices.

    Args:
        builder: builder of the program, to which the kernel call is added.
        x: memory of the input.
        y: memory of the output.
        windows: record that describes how windows become rows of a matrix.
        matrix: record that describes the weights, or the first of several records.
        product: weights, bias and scaling.
        pixels: number of windows of one product.
        is_pointwise: whether a window is a single pixel.
        stack: number of products, and the distances between their inputs and between their weights.
        lines: the padded lines from which windows are read, or None.
    """
    outputs, depth = product.weight.shape
    results = stack.images * pixels * outputs
    if not results:
        return
    rows = Rows.of(product, pixels, is_pointwise, lines)
    products = stack.images * pixels * -(-outputs // LANES) * LANES * depth
    tiles = -(-tiles_for(builder, products, results, 1 << 20) // stack.images)
    row_tiles = row_tiles_for(builder, tiles, pixels)
    column_tiles = column_tiles_for(builder, tiles, row_tiles, outputs)
    builder.emit(
        instructions.CONVOLVE,
        row_tiles * column_tiles * stack.images,
        x=x,
        y=y,
        windows=windows,
        matrix=matrix,
        pixels=pixels,
        step=rows.step,
        layout=rows.layout,
        row_tiles=row_tiles,
        column_tiles=column_tiles,
        in_image=stack.in_image,
        matrix_image=stack.matrix_image,
        scratch=WorkerScratch(rows.memory),
    )


def pack_windows(
    builder: ProgramBuilder,
    channels: int,
    windows: tuple[Window, Window],
    product: Product,
    *,
    is_transposed: bool = False,
    is_unsigned: bool = False,
    lines: Lines | None = None,
) -> Memory:
    """Return the record that describes how the windows of a node become rows of a matrix.

    Args:
        builder: builder of the program, which stores the record as a constant.
        channels: number of channels of the input.
        windows: windows along height and along width.
        product: the node's constants.
        is_transposed: whether the node is a transposed convolution.
        is_unsigned: whether the input is uint8 in the program's scratch memory.
        lines: the padded lines from which windows are read, or None.
    """
    flip = 0 if is_unsigned else product.flip
    return pack_windows_record(
        builder, channels, windows, product.zero, flip, is_transposed=is_transposed,
        line_bytes=0 if lines is None else lines.line_bytes,
    )  # fmt: skip


def pack_windows_record(
    builder: ProgramBuilder,
    channels: int,
    windows: tuple[Window, Window],
    zero: int,
    flip: int,
    *,
    is_transposed: bool = False,
    line_bytes: int = 0,
) -> Memory:
    """Return the record that describes how windows become rows of a matrix.

    Args:
        builder: builder of the program, which stores the record as a constant.
        channels: number of channels of the input.
        windows: windows along height and along width.
        zero: value of the padding around the image, as kernels read it.
        flip: 128 if kernels xor each byte of the image with it; 0 if they read bytes unchanged.
        is_transposed: whether the node is a transposed convolution.
        line_bytes: bytes of a padded line, if windows are read from them; else 0.
    """
    down, across = windows
    size = across.kernel * channels
    depth = down.kernel * (-(-size // 4) * 4 if line_bytes else size)
    sizes = [down.input, across.input, down.output, across.output]
    if is_transposed:
        sizes = sizes[2:] + sizes[:2]
    words = {
        "height": sizes[0], "width": sizes[1], "channels": channels, "out_height": sizes[2],
        "out_width": sizes[3], "kernel_h": down.kernel, "kernel_w": across.kernel,
        "stride_h": down.stride, "stride_w": across.stride,
        "dilation_h": down.dilation, "dilation_w": across.dilation,
        "top": down.before, "left": across.before, "zero": zero, "flip": flip,
        "row_bytes": -(-depth // 4) * 4, "is_transposed": int(is_transposed),
        "line_bytes": line_bytes,
    }  # fmt: skip
    return builder.record(instructions.WINDOWS, **words)


def pack_matrix(
    builder: ProgramBuilder, call: Call, product: Product, key: str = "", shift: int = 0
) -> Memory:
    """Return the memory of a record that describes a node's packed weights to the kernel.

    Args:
        builder: builder of the program, which stores the record as a constant.
        call: the node that is turned into kernel calls.
        product: constants of the node.
        key: text that distinguishes several records of one node.
        shift: number that is added to results that stay unsigned in memory of the program; 0 for
            results in the output's type.
    """
    return pack_matrices(builder, call, product, product.weight[None], key, shift)


def pack_matrices(
    builder: ProgramBuilder,
    call: Call,
    product: Product,
    stack: Integers,
    key: str = "",
    shift: int = 0,
) -> Memory:
    """Return the memory of records that describe packed weights: one for each matrix of a stack.

    Args:
        builder: builder of the program, which stores the records as constants.
        call: the node that is turned into kernel calls.
        product: constants of the node, for all outputs.
        stack: weights of the node, ``[G, O / G, K]``.
        key: text that distinguishes several records of one node.
        shift: as for :func:`pack_matrix`.
    """
    count, outputs, depth = stack.shape
    name = (call.node.outputs[0], key, shift, builder.exact, depth)  # gaps between lines add to it
    values, sum_factor = signed_bytes(stack)
    weights = builder.packed(
        ("weights", *name),
        lambda: without_gaps([matrix_blocks(matrix) for matrix in values]),
        is_own=True,
    )
    byte_shift = builder.level.byte_shift
    parts = [slice(i * outputs, (i + 1) * outputs) for i in range(count)]
    headers = builder.packed(
        ("headers", *name),
        lambda: without_gaps(
            [product.headers(builder.exact, shift, part, byte_shift) for part in parts]
        ),
    )
    steps, blocks_of_16 = -(-depth // 4), -(-outputs // LANES)
    record = {
        "depth": depth, "steps": steps, "block_bytes": 64 * steps, "outputs": outputs,
        "low": product.low + shift, "high": product.high + shift,
        "rounding": product.rounding(builder.exact), "out_flip": product.out_flip(shift),
        "sum_factor": sum_factor,
    }  # fmt: skip
    records = [
        {
            "weights": weights + i * blocks_of_16 * 64 * steps,
            "headers": headers + i * blocks_of_16 * instructions.HEADER_BYTES,
            **record,
        }
        for i in range(count)
    ]
    return builder.records(instructions.MATRIX, records)
