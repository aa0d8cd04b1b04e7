"""Claims and lowering of AVERAGE_POOL_2D and MAX_POOL_2D."""

from __future__ import annotations

from delegraph import Rejection
from delegraph.arithmetic import finite_activation_range, pool_windows, quantized_activation_range
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions import pooling as instructions
from delegraph_numba_cpu.lowering.checks import check_same_type, check_types, first_rejection
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder

TYPES = ("FLOAT32", "INT8", "UINT8", "INT16")

VALUES_A_NANOSECOND = 8
"""Approximate number of window elements that are pooled in a nanosecond."""

AVERAGE = {
    "FLOAT32": instructions.MEAN_F32, "INT8": instructions.MEAN_S8, "UINT8": instructions.MEAN_U8,
    "INT16": instructions.MEAN_S16,
}  # fmt: skip
LARGEST = {
    "FLOAT32": instructions.MAX_F32, "INT8": instructions.MAX_S8, "UINT8": instructions.MAX_U8,
    "INT16": instructions.MAX_S16,
}  # fmt: skip


def check_pool(call: Call) -> Rejection | None:
    """Return a rejection unless the window is small enough for exact means."""
    options = call.options
    if len(call.node.inputs) != 1:
        return Rejection("operands", expected="one input")
    count = options.filter_height * options.filter_width
    if not 0 < count <= instructions.LARGEST_COUNT:
        expected = f"1 to {instructions.LARGEST_COUNT} elements"
        return Rejection("window", actual=f"{count} elements", expected=expected)
    return first_rejection(check_types(call, *TYPES), check_same_type(call.input(0), call.output()))


def lower_average(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that computes the mean of each window (AVERAGE_POOL_2D)."""
    _pool(call, builder, AVERAGE[call.input(0).type.name])


def lower_max(call: Call, builder: ProgramBuilder) -> None:
    """Add a kernel call that finds the largest element of each window (MAX_POOL_2D)."""
    _pool(call, builder, LARGEST[call.input(0).type.name])


def _pool(call: Call, builder: ProgramBuilder, instruction: Instruction) -> None:
    x, y, options = call.input(0), call.output(), call.options
    if 0 in y.shape:
        return
    size = (options.filter_height, options.filter_width)
    down, across = pool_windows(options, x.shape, size)
    low, high = _range(call)
    n, out_height, out_width, channels = y.shape
    rows = n * out_height
    work = rows * out_width * channels * size[0] * size[1]
    builder.emit(
        instruction,
        builder.tiles(work / VALUES_A_NANOSECOND, rows),
        source=builder.tensor(x.index),
        target=builder.tensor(y.index),
        height=x.shape[1],
        width=x.shape[2],
        channels=channels,
        out_height=out_height,
        out_width=out_width,
        window_height=down.kernel,
        window_width=across.kernel,
        stride_height=down.stride,
        stride_width=across.stride,
        before_height=down.before,
        before_width=across.before,
        rows=rows,
        low=low,
        high=high,
    )


def _range(call: Call) -> tuple[float, float]:
    """Return the lowest and the highest stored value that the node's fused activation allows."""
    activation = call.options.fused_activation_function
    if call.output().type.name == "FLOAT32":
        return finite_activation_range(activation)
    return quantized_activation_range(activation, call.output())


FEATURES = ("activation", "empty")

register(
    {
        "AVERAGE_POOL_2D": Operator(check_pool, lower_average, TYPES, FEATURES),
        "MAX_POOL_2D": Operator(check_pool, lower_max, TYPES, FEATURES),
    }
)
