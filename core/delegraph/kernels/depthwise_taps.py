"""Sums over window taps, channel by channel: the arithmetic of depthwise convolutions.

Each tap is one multiply-add of a shifted view of the image. The image is first copied with its
border, its columns dealt out by stride: column ``i`` goes to phase ``i % stride``, place
``i // stride``. The columns that a tap reads then lie side by side for any stride, and the inner
loops run over whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delegraph.kernels.channelwise import TILE
from delegraph.kernels.padding import Window
from delegraph.kernels.registration import OpContext

_LONG_ROW = 512
"""Values per inner loop beyond which NumPy's loop overhead no longer shows."""


class DepthwiseTaps:
    """Computes depthwise sums of one image, some output rows at a time.

    Args:
        context: for working memory.
        windows: how windows slide along height and width.
        channels: channels of the image.
        multiplier: outputs per channel; output ``c * multiplier + i`` reads channel ``c``.
        dtype: of weights and sums.
    """

    def __init__(
        self,
        context: OpContext,
        windows: tuple[Window, Window],
        channels: int,
        multiplier: int,
        dtype: DTypeLike,
    ) -> None:
        self._windows = windows
        self._channels, self._multiplier = channels, multiplier
        outputs = channels * multiplier
        down, across = windows
        self._phases = across.stride
        self._places = -(-across.padded // across.stride)
        self._padded = context.scratch((down.padded, self._phases, self._places, outputs), dtype)
        self._group = _columns_per_loop(across.output, outputs)
        row = across.output * outputs
        self._rows = max(min(TILE // max(row, 1), down.output), 1)
        self._shape = (across.output // max(self._group, 1), self._group * outputs)
        self._product = context.scratch((self._rows, *self._shape), dtype)
        self._sums = context.scratch((self._rows, *self._shape), dtype)

    def arrange(self, weight: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the weights of each tap repeated along a row.

        Args:
            weight: ``[KH, KW, O]``, of the sums' dtype.
        """
        taps = weight.reshape(-1, weight.shape[-1])
        return [np.tile(tap, self._group) for tap in taps]

    def tiles(
        self, image: NDArray[Any], taps: list[NDArray[Any]], pad_value: float = 0
    ) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield output rows and their sums ``[rows, OW * O]``, valid until the next tile.

        Args:
            image: ``[H, W, C]``.
            taps: what :meth:`arrange` returned.
            pad_value: what surrounds the image.
        """
        down = self._windows[0]
        padded = self._surround(image, pad_value)
        for start in range(0, down.output, self._rows):
            stop = min(start + self._rows, down.output)
            sums, product = (m.data[: stop - start] for m in (self._sums, self._product))
            views = self._views(padded, start, stop)
            np.multiply(next(views), taps[0], out=sums)
            for view, tap in zip(views, taps[1:], strict=True):
                np.multiply(view, tap, out=product)
                sums += product
            yield slice(start, stop), sums.reshape(stop - start, -1)

    def _surround(self, image: NDArray[Any], pad_value: float) -> NDArray[Any]:
        """Copy *image* and its border into phases: ``[H, phases, places, O]``."""
        down, across = self._windows
        padded: NDArray[Any] = self._padded.data
        if self._is_partly_border():
            padded.fill(pad_value)
        rows = padded[down.before : down.before + down.input]
        for phase in range(self._phases):
            first = (phase - across.before) % self._phases
            columns = image[:, first :: self._phases]
            place = (first + across.before) // self._phases
            target = rows[:, phase, place : place + columns.shape[1]]
            by_channel = (*columns.shape[:2], self._channels, self._multiplier)
            np.copyto(target.reshape(by_channel), columns[..., np.newaxis])
        return padded

    def _is_partly_border(self) -> bool:
        down, across = self._windows
        return down.padded > down.input or self._phases * self._places > across.input

    def _views(self, padded: NDArray[Any], start: int, stop: int) -> Iterator[NDArray[Any]]:
        """Yield what each tap reads for output rows *start* to *stop*: ``[rows, *shape]``."""
        down, across = self._windows
        rows = stop - start
        for i in range(down.kernel):
            top = i * down.dilation + start * down.stride
            lines = padded[top : top + (rows - 1) * down.stride + 1 : down.stride]
            for j in range(across.kernel):
                place, phase = divmod(j * across.dilation, self._phases)
                view = lines[:, phase, place : place + across.output]
                yield view.reshape(rows, *self._shape)


def _columns_per_loop(columns: int, channels: int) -> int:
    """Return the fewest columns that divide *columns* and make a long inner loop."""
    for count in range(1, columns):
        if columns % count == 0 and count * channels >= _LONG_ROW:
            return count
    return columns
