"""Operators that change the shape or the order of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph.arithmetic import Masks, resolved
from delegraph_jax.operators.registry import ANY, EIGHT_BIT, MOVED, PLAIN, Call, operator


@operator("RESHAPE", ("COMPLEX64",), shape="INT32", constants=(1,))
@operator("RESHAPE", ANY, constants=(1,))
@operator("EXPAND_DIMS", ANY, constants=(1,))
@operator("SQUEEZE", ANY)
def reshape(call: Call) -> Any:
    """Return the elements in the output's shape."""
    return call.input(0).reshape(call.shape)


@operator("DENSIFY", ("FLOAT16", "FLOAT32", "INT8"), features=("sparse",), constants=(0,))
def densify(call: Call) -> Any:
    """Return a sparse constant in dense form; the model reader has already filled in the zeros."""
    return call.input(0)


@operator("BROADCAST_TO", ANY, constants=(1,))
def broadcast_to(call: Call) -> Any:
    """Return the elements repeated to fill the output's shape."""
    return jnp.broadcast_to(call.input(0), call.shape)


@operator("TRANSPOSE", ANY, constants=(1,))
def transpose(call: Call) -> Any:
    """Return the elements with the axes permuted."""
    x = call.input(0)
    return jnp.transpose(x, [axis % x.ndim for axis in call.integers(1)])


@operator("PAD", MOVED, constants=(1,))
def pad(call: Call) -> Any:
    """Return the elements padded with zeros, or with the zero point."""
    return _padded(call, call.constant(1).tolist())


def _padded(call: Call, margins: list[Sequence[int]]) -> Any:
    x, filler = call.input(0), call.outputs[0].zero_point
    return jnp.pad(x, margins, constant_values=np.asarray(filler, x.dtype))


@operator("PADV2", MOVED, features=("computed-weights",), constants=(1,), lacks=("dynamic-shapes",))
def pad_v2(call: Call) -> Any:
    """Return the elements padded with input 2."""
    fill = 0 if call.optional_tensor(2) is None else call.input(2).reshape(())
    return jnp.pad(call.input(0), call.constant(1), constant_values=fill)


@operator("MIRROR_PAD", ANY, constants=(1,))
def mirror_pad(call: Call) -> Any:
    """Return the elements padded by mirroring, with the edge repeated or not."""
    mode = "reflect" if call.options.mode == 0 else "symmetric"
    return jnp.pad(call.input(0), call.constant(1), mode=mode)


@operator("SLICE", ANY, constants=(1, 2))
def slice_(call: Call) -> Any:
    """Return a block of the elements."""
    parts = zip(call.integers(1), call.shape, strict=True)
    return call.input(0)[tuple(slice(start, start + size) for start, size in parts)]


@operator("STRIDED_SLICE", ANY, constants=(1, 2, 3))
def strided_slice(call: Call) -> Any:
    """Return the elements of a strided slice."""
    x = call.input(0)
    limits = [call.integers(i) for i in (1, 2, 3)]
    index, _ = resolved(x.shape, limits[0], limits[1], limits[2], Masks.of(call.options))
    return x[index]


@operator("TILE", ANY, constants=(1,))
def tile(call: Call) -> Any:
    """Return the elements repeated along each axis."""
    return jnp.tile(call.input(0), call.integers(1))


@operator("REVERSE_V2", MOVED, constants=(1,))
def reverse(call: Call) -> Any:
    """Return the elements backwards along some axes."""
    return jnp.flip(call.input(0), call.integers(1))


@operator("SPACE_TO_DEPTH", (*PLAIN, *EIGHT_BIT))
def space_to_depth(call: Call) -> Any:
    """Return blocks of pixels moved to the channels."""
    x, size = call.input(0), call.options.block_size
    n, h, w, c = x.shape
    blocks = x.reshape(n, h // size, size, w // size, size, c)
    return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(call.shape)


@operator("DEPTH_TO_SPACE", (*PLAIN, *EIGHT_BIT))
def depth_to_space(call: Call) -> Any:
    """Return channels moved to blocks of pixels."""
    x, size = call.input(0), call.options.block_size
    n, h, w, c = x.shape
    blocks = x.reshape(n, h, w, size, size, c // (size * size))
    return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(call.shape)


@operator("SPACE_TO_BATCH_ND", ANY, constants=(1, 2))
def space_to_batch(call: Call) -> Any:
    """Return the positions within each block moved to the batch axis."""
    sizes = call.integers(1)
    margins = [(0, 0), *call.constant(2).tolist()]
    x = _padded(call, [*margins, *[(0, 0)] * (call.input(0).ndim - len(margins))])
    split: list[int] = [x.shape[0]]
    for length, size in zip(x.shape[1:], sizes, strict=False):
        split += [length // size, size]
    count = len(sizes)
    rest = x.shape[1 + count :]
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2)]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    return x.reshape(*split, *rest).transpose(order).reshape(call.shape)


@operator("BATCH_TO_SPACE_ND", ANY, constants=(1, 2))
def batch_to_space(call: Call) -> Any:
    """Return images whose blocks are filled from the batch axis: the inverse of SPACE_TO_BATCH."""
    x, sizes = call.input(0), call.integers(1)
    count, batch = len(sizes), x.shape[0] // int(np.prod(sizes))
    rest = x.shape[1 + count :]
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    blocks = x.reshape(*sizes, batch, *x.shape[1:]).transpose(order)
    lengths = [length * size for length, size in zip(x.shape[1:], sizes, strict=False)]
    y = blocks.reshape(batch, *lengths, *rest)
    crops = zip(call.constant(2).tolist(), lengths, strict=True)
    return y[(slice(None), *(slice(low, length - high) for (low, high), length in crops))]


@operator("SHAPE", ANY)
def shape(call: Call) -> Any:
    """Return the shape of the input."""
    return jnp.asarray(call.input(0).shape, call.outputs[0].dtype)


@operator("RANK", ANY)
def rank(call: Call) -> Any:
    """Return the input's number of axes."""
    return jnp.asarray(call.input(0).ndim, np.int32)


@operator("FILL", ANY, constants=(0,))
def fill(call: Call) -> Any:
    """Return an array of the output's shape, filled with the scalar in input 1."""
    return jnp.broadcast_to(call.input(1).reshape(()), call.shape)
