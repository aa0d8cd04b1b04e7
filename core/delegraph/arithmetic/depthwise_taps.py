"""Sums over window taps (weights of a window), channel by channel, for depthwise convolutions.

``numpy.einsum`` multiplies and adds a tap in one pass over memory. This is fast if its inner loops
are long: several columns with all their channels. For that, neighbouring outputs must read
neighbouring columns. So for strides above 1, the image's columns are first regrouped: column ``i``
becomes number ``i // stride`` of phase ``i % stride``, and each phase is summed separately. Images
with many channels have long loops in any case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.channelwise import TILE
from delegraph.arithmetic.padding import Window
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import OpContext

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_MANY_CHANNELS = 64
_LONG_LOOP = 768
"""Number of values per inner loop above which the overhead of the loop is negligible."""


@dataclass(frozen=True, slots=True)
class _Phase:
    """Taps (weights) of a window row that read columns of the same phase.

    Attributes:
        taps: positions of the taps in the window row.
        index: number of the phase.
        place: number, in the phase, of the column that the first tap reads for the first output.
        step: number of columns of the phase between neighbouring taps.
    """

    taps: range
    index: int
    place: int
    step: int


class DepthwiseTaps:
    """Computes the depthwise sums of one image, a few output rows at a time.

    Args:
        context: context that provides working memory.
        windows: windows along height and width.
        channels: channels of the image.
        multiplier: number of outputs per channel; output ``c * multiplier + i`` reads channel
            ``c``.
        dtype: dtype of weights and sums.
    """

    def __init__(
        self,
        context: OpContext,
        windows: tuple[Window, Window],
        channels: int,
        multiplier: int,
        dtype: DTypeLike,
    ) -> None:
        self._windows = down, across = windows
        self._channels, self._multiplier = channels, multiplier
        self._outputs = channels * multiplier
        is_dealt_out = self._outputs < _MANY_CHANNELS
        self._phases = across.stride if is_dealt_out else 1
        self._stride = across.stride // self._phases
        self._columns = _columns_per_loop(across, self._outputs) if self._stride == 1 else 1
        self._taps = _taps_by_phase(across, self._phases)
        places = -(-across.padded // self._phases)
        self._padded = context.scratch((down.padded, self._phases, places, self._outputs), dtype)
        row = max(across.output * self._outputs, 1)
        self._rows = max(min(TILE // row, down.output), 1)
        self._shape = across.output // max(self._columns, 1), self._columns * self._outputs
        self._sums, self._part = (
            context.scratch((self._rows, *self._shape), dtype) for _ in range(2)
        )

    def arrange(self, weight: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the weights of each phase's taps, ``[KH, taps, columns * O]``.

        They are repeated for the columns that one inner loop computes.

        Args:
            weight: weights, ``[KH, KW, O]``, of the sums' dtype.
        """
        return [np.tile(weight[:, phase.taps], (1, 1, self._columns)) for phase in self._taps]

    def tiles(
        self, image: NDArray[Any], weights: list[NDArray[Any]], pad_value: float = 0
    ) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield slices of output rows and their depthwise sums, ``[rows, OW * O]``.

        An array is valid until the next tile.

        Args:
            image: ``[H, W, C]``.
            weights: result of :meth:`arrange`.
            pad_value: value around the image.
        """
        if 0 in self._shape:
            return
        output = self._windows[0].output
        padded = self._surround(image, pad_value)
        for start in range(0, output, self._rows):
            stop = min(start + self._rows, output)
            sums, part = (memory.data[: stop - start] for memory in (self._sums, self._part))
            for i, (phase, weight) in enumerate(zip(self._taps, weights, strict=True)):
                view = self._view(padded, phase, start, stop)
                np.einsum("ijrgl,ijl->rgl", view, weight, out=part if i else sums)
                if i:
                    sums += part
            yield slice(start, stop), sums.reshape(stop - start, -1)

    def _surround(self, image: NDArray[Any], pad_value: float) -> NDArray[Any]:
        """Copy *image* with a border of *pad_value* into an array ordered by phase of the column.

        The array is ``[H, phases, places, O]``. A phase is the set of columns with one remainder
        modulo the number of phases.
        """
        down, across = self._windows
        padded: NDArray[Any] = self._padded.data
        if down.padded > down.input or math.prod(padded.shape[1:3]) > across.input:
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

    def _view(self, padded: NDArray[Any], phase: _Phase, start: int, stop: int) -> NDArray[Any]:
        """Return a view of the input that *phase*'s taps read for output rows *start* to *stop*.

        *padded* is the array that :meth:`_surround` fills.

        Returns:
            ``[KH, taps, rows, loops, columns * O]``, where an output row takes *loops* inner loops;
                its parts overlap in memory.
        """
        down = self._windows[0]
        row, part, place, value = padded.strides
        return np.ndarray(  # as_strided takes five times as long
            (down.kernel, len(phase.taps), stop - start, *self._shape),
            padded.dtype,
            padded,
            start * down.stride * row + phase.index * part + phase.place * place,
            (
                row * down.dilation,
                place * phase.step,
                row * down.stride,
                place * self._stride * self._columns,
                value,
            ),
        )


def _taps_by_phase(across: Window, phases: int) -> list[_Phase]:
    """Return the taps (weights) of one row of a window, grouped by the phase of their columns.

    Args:
        across: windows along the width.
        phases: number of phases; columns of one phase have the same remainder modulo this number.
    """
    period = phases // math.gcd(across.dilation, phases)  # taps until a phase repeats
    found = []
    for first in range(min(period, across.kernel)):
        place, index = divmod(first * across.dilation, phases)
        step = period * across.dilation // phases
        found.append(_Phase(range(first, across.kernel, period), index, place, step))
    return found


def _columns_per_loop(across: Window, outputs: int) -> int:
    """Return how many output columns one inner loop computes, so that it has enough values.

    It is the smallest divisor of the number of output columns with which a loop has at least
    :data:`_LONG_LOOP` values. If there is none, the loop computes all columns.

    Args:
        across: windows along the width, one for each output column.
        outputs: number of values of an output column.
    """
    for count in range(1, across.output):
        if across.output % count == 0 and count * outputs >= _LONG_LOOP:
            return count
    return across.output
