"""Arithmetic of RESIZE_BILINEAR for float32, uint8, int8 and int16.

Source:
    tflite/kernels/internal/optimized/resize_bilinear.h and reference/resize_bilinear.h.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph.operators.numerics import Numerics
from delegraph.operators.registration import Eval
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Pixels = tuple[Floats, Floats]
"""Pixels to the left and to the right of the output columns, each ``[N, rows, W * C]``."""
HALF = np.float32(0.5)
BLOCK = 1 << 12
"""Number of elements in a block: large, to save calls, but small enough for the cache."""


class Taps(NamedTuple):
    """For each output position, the two input positions that are mixed, and the second's share.

    *low* and *high* are the positions. *share* is the share of *high*, from 0 to 1, or in units of
    2**-10.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    share: NDArray[Any]


def resizer(
    x: Tensor,
    y: Tensor,
    size: tuple[int, int],
    align_corners: bool,
    half_pixel_centers: bool,
    numerics: Numerics,
) -> Eval:
    """Return the evaluation that resizes *x* to *y*, both ``[N, H, W, C]`` of the same dtype.

    *size* is the new height and width; *align_corners* and *half_pixel_centers* are the node's
    options. *numerics* is the choice between builtin and reference rounding.
    """
    pairs = list(zip(x.shape[1:3], size, strict=True))
    if y.type is TensorType.FLOAT32 or y.type is TensorType.UINT8:
        rows, columns = (float_taps(*p, align_corners, half_pixel_centers) for p in pairs)
        if y.type is TensorType.FLOAT32 and numerics == "builtin":
            return _float_eval(x, y, rows, columns)
        return _summing_eval(x, y, rows, columns, numerics)
    rows, columns = (fixed_taps(*p, align_corners, half_pixel_centers) for p in pairs)
    return _fixed_eval(x, y, rows, columns)


def float_taps(old: int, new: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Return the input positions for each output position of one axis, with float32 shares.

    *old* and *new* are the lengths of the axis; *align_corners* and *half_pixel_centers* are the
    node's options.

    >>> float_taps(2, 4, False, False).share.tolist()
    [0.0, 0.5, 0.0, 0.5]
    """
    old_span, new_span = (old - 1, new - 1) if align_corners and new > 1 else (old, new)
    scale = np.float32(old_span) / np.float32(new_span)
    place = np.arange(new, dtype=np.float32)
    if half_pixel_centers:
        place = (place + np.float32(0.5)) * scale - np.float32(0.5)
    else:
        place = place * scale
    low = np.maximum(np.floor(place).astype(np.int64), 0)
    high = np.minimum(np.ceil(place).astype(np.int64), old - 1)
    return Taps(np.minimum(low, old - 1), high, place - low.astype(np.float32))


def fixed_taps(old: int, new: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Return the input positions for each output position of one axis, with shares in 2**-10.

    *old* and *new* are the lengths of the axis; *align_corners* and *half_pixel_centers* are the
    node's options.
    """
    old_span, new_span = (old - 1, new - 1) if align_corners and new > 1 else (old, new)
    scale = ((old_span << 10) + new_span // 2) // new_span
    place = np.arange(new, dtype=np.int64) * scale
    if half_pixel_centers:
        place += scale // 2 - (1 << 9)
    low = np.maximum(truncated(place, 1 << 10), 0)
    high = np.minimum(truncated(place + (1 << 10) - 1, 1 << 10), old - 1)
    return Taps(np.minimum(low, old - 1), np.maximum(high, 0), place - (low << 10))


def truncated(values: Ints, divisor: int) -> Ints:
    """Return ``values / divisor`` rounded towards zero, as C divides."""
    result: Ints = np.sign(values) * (np.abs(values) // divisor)
    return result


class Rows(NamedTuple):
    """Output rows that are computed together.

    For a single row the fields are numbers, and arrays of rows have one axis less.

    Attributes:
        place: position of the output row, or slice of the output rows.
        low: the first input row that is mixed, for each output row.
        high: the second input row that is mixed.
        share: share of *high*, from 0 to 1, or in units of 2**-10.
    """

    place: Any
    low: Any
    high: Any
    share: Any


def row_blocks(rows: Taps, size: int) -> list[Rows]:
    """Split the output rows into blocks of equal length; the last two blocks may overlap.

    Rows of at most half of :data:`BLOCK` elements are grouped up to that number. A tall, narrow
    picture would otherwise need a Python loop over its pixels. A longer row is a block by itself.

    Args:
        rows: the taps of all output rows.
        size: number of elements in a row.
    """
    total, count = len(rows.low), max(BLOCK // max(size, 1), 1)
    if count == 1:
        lists = rows.low.tolist(), rows.high.tolist(), rows.share
        return [Rows(i, *row) for i, row in enumerate(zip(*lists, strict=True))]
    starts = (max(min(start, total - count), 0) for start in range(0, total, count))
    places = [slice(start, start + count) for start in starts]
    return [Rows(p, rows.low[p], rows.high[p], rows.share[p, None]) for p in places]


def _float_eval(x: Tensor, y: Tensor, rows: Taps, columns: Taps) -> Eval:
    """Return the evaluation that mixes columns of *x*, then rows, into *y*.

    The official kernel adds four products for each element. Mixing columns first needs fewer
    products.
    """
    n, h, _, c = x.shape
    share_x = np.repeat(columns.share, c)  # [W * C]
    keep_x = 1 - share_x
    blocks = row_blocks(rows, n * len(share_x))

    def resize() -> None:
        mixed = x.data.take(columns.low, 2).reshape(n, h, len(share_x))
        mixed *= keep_x
        right = x.data.take(columns.high, 2).reshape(n, h, len(share_x))
        right *= share_x
        mixed += right
        target = y.data.reshape(n, len(rows.low), len(share_x))
        below = np.empty(target[:, blocks[0].place].shape, np.float32)
        for place, low, high, share in blocks:
            block = target[:, place]
            np.multiply(mixed[:, low], 1 - share, out=block)
            np.multiply(mixed[:, high], share, out=below)
            block += below

    return resize


def _summing_eval(x: Tensor, y: Tensor, rows: Taps, columns: Taps, numerics: Numerics) -> Eval:
    """Return the evaluation that sums four float32 products for each element of *y*.

    *rows* and *columns* are the positions of *x* to mix. Rounding is in the order of the official
    kernels that *numerics* names. The evaluation is used for uint8, and for the reference kernel on
    float32.

    The builtin kernel multiplies each pixel by the product of its shares, row by row. The reference
    kernel multiplies by one share after the other, column by column.
    """
    n, h, _, c = x.shape
    share_x = np.repeat(columns.share, c)  # [W * C]
    keep_x = 1 - share_x
    blocks = row_blocks(rows, n * len(share_x))

    @lru_cache(maxsize=16)  # for whole-number scales, the shares of the rows repeat soon
    def weights(shares: bytes) -> tuple[Floats, Floats, Floats, Floats]:
        share = np.frombuffer(shares, np.float32)[:, None]
        keep = 1 - share
        return keep * keep_x, keep * share_x, share * keep_x, share * share_x

    def by_rows(top: Pixels, bottom: Pixels, share: Floats, total: Floats) -> None:
        top_left, top_right, bottom_left, bottom_right = weights(share.tobytes())
        np.multiply(top[0], top_left, out=total)
        total += top[1] * top_right
        total += bottom[0] * bottom_left
        total += bottom[1] * bottom_right

    def by_columns(top: Pixels, bottom: Pixels, share: Floats, total: Floats) -> None:
        keep = 1 - share
        np.multiply(top[0] * keep, keep_x, out=total)
        total += bottom[0] * share * keep_x
        total += top[1] * keep * share_x
        total += bottom[1] * share * share_x

    mix = by_rows if numerics == "builtin" else by_columns
    rounding = HALF if y.type is TensorType.UINT8 else np.float32(0)

    def resize() -> None:
        source = x.data.astype(np.float32)
        left = source.take(columns.low, 2).reshape(n, h, len(share_x))
        right = source.take(columns.high, 2).reshape(n, h, len(share_x))
        target = y.data.reshape(n, len(rows.low), len(share_x))
        total = np.empty(target[:, blocks[0].place].shape, np.float32)
        for place, low, high, share in blocks:
            mix((left[:, low], right[:, low]), (left[:, high], right[:, high]), share, total)
            total += rounding
            target[:, place] = total  # uint8: truncates

    return resize


def _fixed_eval(x: Tensor, y: Tensor, rows: Taps, columns: Taps) -> Eval:
    """Return the evaluation that mixes integers of *x* with shares in 2**-10 into *y*.

    *rows* and *columns* are the positions to mix. Halves are rounded away from zero.
    """
    n, h, _, c = x.shape
    wide = np.int32 if x.dtype.itemsize == 1 else np.int64
    share_x = np.repeat(columns.share, c).astype(wide)  # [W * C]
    keep_x = (1 << 10) - share_x
    blocks = row_blocks(rows._replace(share=rows.share.astype(wide)), n * len(share_x))

    def resize() -> None:
        source = x.data.astype(wide)
        mixed = source.take(columns.low, 2).reshape(n, h, len(share_x)) * keep_x
        mixed += source.take(columns.high, 2).reshape(n, h, len(share_x)) * share_x
        target = y.data.reshape(n, len(rows.low), len(share_x))
        for place, low, high, share in blocks:
            total = mixed[:, low] * ((1 << 10) - share)
            total += mixed[:, high] * share
            total += (1 << 19) - (total < 0)  # makes the floor of the shift round half away from 0
            total >>= 20
            target[:, place] = total

    return resize
