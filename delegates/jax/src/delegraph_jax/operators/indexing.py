"""Operators that read or write elements by their positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from delegraph_jax.operators.registry import ANY, EIGHT_BIT, MOVED, PLAIN, QUANTIZED, Call, operator


@operator("GATHER", MOVED, indices=("INT16", "INT32", "INT64"))
def gather(call: Call) -> Any:
    """Return slices of input 0 along an axis, chosen by input 1; leading axes may be batch axes."""
    x, positions, o = call.input(0), call.input(1), call.options
    axis = o.axis % x.ndim
    batch = o.batch_dims + (positions.ndim if o.batch_dims < 0 else 0)
    call.require_positions(positions, x.shape[axis])

    if not x.shape[axis]:  # without elements, any position is out of range
        return jnp.zeros(call.shape, x.dtype)

    def take(x: Any, positions: Any) -> Any:
        return jnp.take(x, positions, axis - batch)

    function: Callable[[Any, Any], Any] = take
    for _ in range(batch):
        function = jax.vmap(function)
    return function(x, positions)


@operator("GATHER_ND", MOVED)
def gather_nd(call: Call) -> Any:
    """Return the slices of input 0 at the positions in the last axis of input 1."""
    x = call.input(0)
    return jnp.asarray(x)[_places(call, call.input(1), x.shape)]  # constants are NumPy arrays


def _places(call: Call, indices: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """Return an array of positions for each leading axis of *shape*, from *indices*.

    The last axis of *indices* has one position per leading axis. The host checks the range of
    positions.
    """
    places = tuple(jnp.moveaxis(indices, -1, 0))
    for positions, size in zip(places, shape, strict=False):
        call.require_positions(positions, size)
    return places


@operator("SCATTER_ND", (*PLAIN, *EIGHT_BIT), constants=(2,), lacks=("dynamic-shapes",))
def scatter_nd(call: Call) -> Any:
    """Return zeros with the updates in input 1 added at the positions in input 0."""
    updates = call.input(1)
    places = _places(call, call.input(0), call.shape)
    return jnp.zeros(call.shape, updates.dtype).at[places].add(updates)


@operator(
    "ONE_HOT",
    (*PLAIN, *EIGHT_BIT, "BOOL"),
    features=("computed-weights",),
    constants=(1,),
    lacks=("dynamic-shapes",),
)
def one_hot(call: Call) -> Any:
    """Return the on value at each index along a new axis, the off value elsewhere."""
    indices, on, off = call.input(0), call.input(2), call.input(3)
    axis = call.options.axis % (indices.ndim + 1)
    classes = np.arange(call.shape[axis], dtype=indices.dtype)
    classes = classes.reshape(-1, *(1,) * (indices.ndim - axis))
    return jnp.where(jnp.expand_dims(indices, axis) == classes, on.reshape(()), off.reshape(()))


@operator("MATRIX_DIAG", (*PLAIN, *QUANTIZED))
def matrix_diag(call: Call) -> Any:
    """Return square matrices whose diagonals are the last axis of the input."""
    x = call.input(0)
    return x[..., None] * np.eye(x.shape[-1], dtype=x.dtype)


@operator("MATRIX_SET_DIAG", (*PLAIN, *QUANTIZED))
def matrix_set_diag(call: Call) -> Any:
    """Return input 0 with the diagonals replaced by the last axis of input 1."""
    x, diagonal = call.input(0), call.input(1)
    i = np.arange(diagonal.shape[-1])
    return jnp.asarray(x).at[..., i, i].set(diagonal)


@operator("DYNAMIC_UPDATE_SLICE", ANY, features=("computed-weights",))
def dynamic_update_slice(call: Call) -> Any:
    """Return input 0 with input 1 written at a start position, clamped so that it fits."""
    x, update, start = call.inputs()
    room = np.subtract(x.shape, update.shape)  # JAX counts negative places from the end
    places = jnp.clip(start, 0, room.astype(start.dtype))
    return jax.lax.dynamic_update_slice(x, update, [places[i] for i in range(x.ndim)])


@operator("CAST", (*MOVED, "FLOAT64", "UINT16", "UINT32"))
def cast(call: Call) -> Any:
    """Return the elements as another type."""
    return call.input(0).astype(call.outputs[0].dtype)


@operator("DEQUANTIZE", ("FLOAT16", "FLOAT32"))
def dequantize(call: Call) -> Any:
    """Return 16-bit floats converted to 32 bits."""
    return call.input(0).astype(np.float32)
