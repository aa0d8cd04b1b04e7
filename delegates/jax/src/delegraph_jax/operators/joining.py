"""Operators that join arrays, or split one array into several."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph.arithmetic import requantisation_table
from delegraph_jax.operators.fused import check_clamp, clamp
from delegraph_jax.operators.registry import MOVED, PLAIN, QUANTIZED, Call, operator
from delegraph_jax.operators.tabulated import look_up


@operator("CONCATENATION", (*PLAIN, "BFLOAT16", "FLOAT16", "BOOL", "UINT32"), check=check_clamp)
def concatenation(call: Call) -> Any:
    """Return the inputs concatenated along an axis."""
    return clamp(call.options, jnp.concatenate(call.inputs(), call.options.axis))


@operator("CONCATENATION", ("INT8",))
@operator("CONCATENATION", ("INT16",))
@operator("CONCATENATION", ("UINT8",))
def quantized_concatenation(call: Call) -> Any:
    """Return the inputs concatenated along an axis, converted to the output's quantization."""
    parts = call.inputs()
    if call.outputs[0].type.name == "UINT8":
        tables = [requantisation_table(call.tensor(i), call.outputs[0]) for i in range(len(call))]
        parts = [
            part if table is None else look_up(table, part)
            for part, table in zip(parts, tables, strict=True)
        ]
    return jnp.concatenate(parts, call.options.axis)


@operator("PACK", (*PLAIN, *QUANTIZED, "UINT32"))
def pack(call: Call) -> Any:
    """Return the inputs stacked along a new axis."""
    return jnp.stack(call.inputs(), call.options.axis)


@operator("UNPACK", tuple(name for name in MOVED if name != "INT64"))
def unpack(call: Call) -> Any:
    """Return the slices along an axis, without the axis."""
    x, axis = call.input(0), call.options.axis
    return [jnp.take(x, i, axis) for i in range(len(call.outputs))]


@operator("SPLIT", (*PLAIN, *QUANTIZED), constants=(0,))
def split(call: Call) -> Any:
    """Return equal parts along an axis."""
    return jnp.split(call.input(1), len(call.outputs), call.integers(0)[0])


@operator("SPLIT_V", (*PLAIN, *QUANTIZED), constants=(1, 2))
def split_v(call: Call) -> Any:
    """Return parts along an axis, with the lengths in input 1."""
    axis = call.integers(2)[0]
    lengths = [output.shape[axis] for output in call.outputs]
    return jnp.split(call.input(0), np.cumsum(lengths[:-1]).tolist(), axis)
