"""Integer operators computed by look-up tables, which Delegraph's own kernels fill."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from delegraph.arithmetic import PairTables, pair_tables
from delegraph.operators import every_value
from delegraph_jax.operators.registry import Call, operator

_UNARY = ("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "GELU")  # operators of 8 and 16 bits
_UNARY_OF_8_BITS = ("RELU_N1_TO_1", "RELU_0_TO_1", "HARD_SWISH")
_UNARY_OF_SIGNED = ("ABS", "EXP", "LOG")
_PAIRS = ("ADD", "SUB", "MUL")
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def look_up(table: NDArray[Any], x: Any) -> Any:
    """Return ``table[x]`` for a table indexed by the bits of *x*."""
    places = bits(x).astype(np.int32)
    return jnp.asarray(table).at[places].get(mode="promise_in_bounds")


def bits(x: Any) -> Any:
    """Return the bits of *x*, 8- or 16-bit integers, as unsigned integers."""
    return lax.bitcast_convert_type(x, np.dtype(f"u{x.dtype.itemsize}"))


@operator(_UNARY, ("INT16",))
@operator((*_UNARY, *_UNARY_OF_8_BITS), ("UINT8",))
@operator((*_UNARY, *_UNARY_OF_8_BITS, "ELU"), ("INT8",))
@operator(_UNARY_OF_SIGNED, ("INT8",))
@operator(_UNARY_OF_SIGNED, ("INT16",))
def unary(call: Call) -> Any:
    """Return the results of a one-operand operator, from a table of all values."""
    x = call.input(0)
    return look_up(call.evaluated(every_value(np.dtype(x.dtype))), x)


@operator(("SQRT", "RSQRT"), ("INT8",))
@operator(("SQRT", "RSQRT"), ("INT16",))
def root(call: Call) -> Any:
    """Return roots or inverse roots from a table; a negative value is an error."""
    x, zero_point = call.input(0), call.tensor(0).zero_point
    call.doubts.append(((x < zero_point).any(), "a value is negative"))
    values = every_value(np.dtype(x.dtype)).clip(zero_point, None)
    return look_up(call.evaluated(values), x)


@operator(_COMPARISONS, ("UINT8",), output="BOOL")
@operator(_COMPARISONS, ("INT8",), output="BOOL")
@operator((*_PAIRS, "PRELU"), ("UINT8",), features=("computed-weights",))
@operator((*_PAIRS, "PRELU", "SQUARED_DIFFERENCE"), ("INT8",), features=("computed-weights",))
def pair(call: Call) -> Any:
    """Return the results of a two-operand operator, from a table of all pairs."""
    tables = pair_tables(
        call.name,
        call.tensor(0),
        call.tensor(1),
        call.numerics,
        lambda inputs, numerics: call.evaluated(*inputs, numerics=numerics),
    )
    a, b = (bits(call.input(i)).astype(np.int32) for i in range(2))
    places = (a << 8) | b
    return _by_position(tables, places.reshape(call.shape))


@operator("DIV", ("INT8",), features=("computed-weights",))
@operator("DIV", ("UINT8",), features=("computed-weights",))
def quotient(call: Call) -> Any:
    """Return quotients from a table; a divisor that represents zero is an error."""
    is_zero = (call.input(1) == call.tensor(1).zero_point).any()
    call.doubts.append((is_zero, "a divisor is zero"))
    return pair(call)


def _by_position(tables: PairTables, places: Any) -> Any:
    vector, rest = (
        jnp.asarray(table).at[places].get(mode="promise_in_bounds")
        for table in (tables.vector, tables.rest)
    )
    if tables.length == tables.vector_end:
        return vector
    position = np.arange(places.size).reshape(places.shape) % tables.length
    return jnp.where(position < tables.vector_end, vector, rest)
