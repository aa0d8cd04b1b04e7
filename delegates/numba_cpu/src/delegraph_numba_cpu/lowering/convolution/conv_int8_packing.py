"""The order in which kernels for 8-bit integers read weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Tensor
from delegraph.arithmetic import centred_integers, dense_values
from delegraph_numba_cpu.instructions.memory import aligned_bytes

LANES = 16

SPARE = 4
"""Number of blocks after the last one of a matrix, which kernels may read."""

Integers = NDArray[np.int8] | NDArray[np.int16]


def centred(weight: Tensor) -> Integers:
    """Return the values of *weight* minus its zero point, in the shape of *weight*."""
    if weight.type.name == "INT8" and not weight.zero_point:
        values: NDArray[np.int8] = dense_values(weight)
        return values
    return centred_integers(weight).astype(np.int16, copy=False)


def signed_bytes(weight: Integers) -> tuple[NDArray[np.int8], int]:
    """Return *weight* shifted to fit signed bytes, and the shift that was subtracted.

    >>> signed_bytes(np.array([[-3, 200]], np.int16))
    (array([[-128,   75]], dtype=int8), 125)
    """
    if weight.dtype == np.int8:
        return weight.astype(np.int8, copy=False), 0
    low, high = int(weight.min(initial=0)), int(weight.max(initial=0))
    shift = 0 if low >= -128 and high <= 127 else low + 128
    return (weight - shift).astype(np.int8), shift


def matrix_blocks(weight: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return *weight*, ``[O, K]``, as ``[O / 16, K / 4, 16, 4]``, filled up with zeros.

    Spare blocks follow. Outputs have the order of :func:`zipped_channels`.
    """
    outputs, depth = weight.shape
    size, steps = -(-outputs // LANES), -(-depth // 4)
    if (size * LANES, steps * 4) != weight.shape:
        weight = np.pad(weight, ((0, size * LANES - outputs), (0, steps * 4 - depth)))
    order = np.arange(size * LANES)
    order[:outputs] = zipped_channels(outputs)
    words = np.ascontiguousarray(weight).view(np.int32)
    words = words.take(order, axis=0)  # [O, K / 4]: four bytes each
    blocks = aligned_bytes((size + SPARE) * LANES * steps * 4).view(np.int32)
    blocks = blocks.reshape(size + SPARE, steps, LANES)
    blocks[:size] = words.reshape(size, LANES, steps).transpose(0, 2, 1)
    blocks[size:] = 0
    return blocks.view(np.int8).reshape(size + SPARE, steps, LANES, 4)


def without_gaps(matrices: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the packed blocks of several matrices one after another.

    Spare blocks, which kernels may read beyond the end, follow only the last matrix.

    Args:
        matrices: the packed blocks of each matrix, with spare blocks.
    """
    *others, last = matrices
    if not others:
        return last
    return np.concatenate([*(each[:-SPARE] for each in others), last])


def summands_of(weight: Integers) -> int:
    """Return the number of signed bytes that add up to one value of *weight*."""
    low, high = int(weight.min(initial=0)), int(weight.max(initial=0))
    return max(1, -(-high // 127), -(low // 128))


def zipped_channels(channels: int) -> NDArray[np.intp]:
    """Return the order, as indices, in which 8-bit kernels process each 64 channels.

    Args:
        channels: number of channels; those after the last 64 keep their order.
    """
    order = np.arange(channels)
    whole = channels // 64 * 64
    groups = order[:whole].reshape(-1, 4, 4, 4)  # 64 channels as lanes, vectors and elements
    order[:whole] = groups.transpose(0, 2, 1, 3).reshape(-1)
    return order


def tap_blocks(weight: Integers) -> NDArray[np.int8]:
    """Return depthwise weights as 32-bit words of four vertically adjacent taps.

    Weights that do not fit a byte are split into summands that do.

    Args:
        weight: ``[KH, KW, C]``.

    Returns:
        ``[bytes]``: ``[summands, KH / 4, KW, 64, 4]`` for each 64 channels, one after the other,
        then the same for each 16 of the rest.
    """
    summands = []
    for _ in range(summands_of(weight)):
        part = weight.clip(-128, 127)
        weight = weight - part
        summands.append(_by_fours(part))
    return _by_channels(np.stack(summands).astype(np.int8), weight.shape[2])


def tap_pairs(weight: Integers) -> NDArray[np.int16]:
    """Return depthwise weights as pairs of int16, for levels with ``has_int16_pairs``.

    Args:
        weight: ``[KH, KW, C]``.

    Returns:
        ``[pairs, 64, 2]`` for each 64 channels, one after the other, then the same for each 16 of
        the rest. A pair is of one column and two rows: first of rows 0 and 2 of every four rows,
        ``[KH / 4, KW]``, then of rows 1 and 3. Rows beyond KH are zeros.
    """
    words = _by_fours(weight).astype(np.int16)
    odd_groups = (weight.shape[0] + 2) // 4
    pairs = [words[..., 0::2], words[:odd_groups, ..., 1::2]]
    return _by_channels(np.concatenate(pairs), weight.shape[2])


def _by_fours(weight: Integers) -> Integers:
    """Return the taps *weight*, ``[KH, KW, C]``, as ``[KH / 4, KW, C, 4]``, filled up with zeros.

    Channels have the order of :func:`zipped_channels`.
    """
    height, width, channels = weight.shape
    size, groups = -(-channels // LANES), -(-height // 4)
    padded = np.zeros((groups * 4, width, size * LANES), weight.dtype)
    padded[:height, :, :channels] = weight[..., zipped_channels(channels)]
    return padded.reshape(groups, 4, width, -1).transpose(0, 2, 3, 1)


def _by_channels(words: NDArray[Any], channels: int) -> NDArray[Any]:
    """Return *words*, ``[..., C, values]``, as a flat array of groups of channels.

    It has ``[..., 64, values]`` for each 64 channels, then ``[..., 16, values]`` for each 16 of the
    rest. Channels from number *channels* on are padding, which only fills up the last 16.
    """
    whole = channels // 64 * 64
    found = []
    for first, last, lanes in ((0, whole, 64), (whole, None, LANES)):
        part = words[..., first:last, :]
        groups = part.reshape(*part.shape[:-2], -1, lanes, part.shape[-1])
        found.append(np.moveaxis(groups, -3, 0).reshape(-1))
    return np.concatenate(found)
