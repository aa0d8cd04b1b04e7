"""Weights, biases and scales of 8-bit products, in the form that ``kernels/conv_int8.py`` wants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic.accumulator_scaling import Scaling
from delegraph.arithmetic.activation import quantized_activation_range
from delegraph.arithmetic.weights import bias_or_zeros, centred_integers, dense_values
from delegraph_numba_cpu.blocks import conv_int8 as blocks

LANES = 16
_WORD = 1 << 31
_EXACT_BITS = 53

Integers = NDArray[np.int8] | NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Product:
    """The constants of one node's products.

    Attributes:
        weight: zero point removed, ``[O, K]``.
        bias: with what the input's zero point adds, ``[O]``, int64.
        scaling: of the accumulators.
        zero_point: of the output, as stored.
        low: smallest stored result.
        high: largest stored result.
        flip: 128 when the input is int8, which kernels see as uint8; else 0.
        zero: the input's zero point as kernels see it.
    """

    weight: Integers
    bias: NDArray[np.int64]
    scaling: Scaling
    zero_point: int
    low: int
    high: int
    flip: int
    zero: int

    @classmethod
    def of(
        cls,
        x: Tensor,
        weight: Integers,
        bias: Tensor | None,
        y: Tensor,
        scaling: Scaling,
        activation: int,
    ) -> Product:
        """Return the constants.

        Args:
            x: input.
            weight: zero point removed, ``[O, K]``.
            bias: of the accumulators, or None.
            y: output.
            scaling: of the accumulators.
            activation: fused activation.
        """
        low, high = quantized_activation_range(activation, y)
        flip = 128 if x.type.name == "INT8" else 0
        zero = x.zero_point + flip
        whole = bias_or_zeros(bias, len(weight), np.int64)
        whole = whole - zero * weight.sum(axis=1, dtype=np.int64)
        return cls(weight, whole, scaling, y.zero_point, low, high, flip, zero)

    @cached_property
    def _largest(self) -> NDArray[np.float64]:
        """What no accumulator without bias exceeds in magnitude, ``[O]``."""
        total = np.abs(self.weight, dtype=np.int16).sum(axis=1, dtype=np.int64)
        return np.asarray(total * 255.0)

    @cached_property
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Factor, what is added before the floor, and bias; constant channels have a factor of 0.

        Pruned channels keep weights of zero, a tiny scale and a bias of 30 bits: too many for
        float64, but there is only one result they can have.
        """
        scaling, bias, fits = self.scaling, self.bias, self._rounds_exactly
        if fits.all():
            return scaling.factor, scaling.half, bias
        reach = np.minimum(self._largest, _WORD).astype(np.int64)
        fixed = ~fits & (self._results(bias - reach) == self._results(bias + reach))
        return (
            np.where(fixed, 0.0, scaling.factor),
            np.where(fixed, self._results(bias) - self.zero_point, scaling.half),
            np.where(fixed, 0, bias),
        )

    def _results(self, acc: NDArray[np.int64]) -> NDArray[np.int64]:
        scaled = self.scaling.exact(acc).astype(np.int64)
        return np.clip(scaled + self.zero_point, self.low, self.high)

    @cached_property
    def _rounds_exactly(self) -> NDArray[np.bool_]:
        """For which channels one product in float64 is exact, ``[O]``."""
        rough = self._is_exact(self.weight.shape[1] * 255.0 * 255.0)
        return rough if rough.all() else self._is_exact(self._largest)

    def _is_exact(self, largest: NDArray[np.float64] | float) -> NDArray[np.bool_]:
        """Return for which channels arithmetic is exact with accumulators up to *largest*.

        A product and its half have as many bits as fit, or are so large that results saturate.
        """
        reach = self._reach(largest)
        limit = np.ldexp(self.scaling.unit, _EXACT_BITS)
        return np.asarray((reach < _WORD) & ((limit >= 256) | (reach < limit)))

    def _reach(self, largest: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return what no accumulator up to *largest* exceeds, nor its product, ``[O]``."""
        bounds = largest + np.abs(self.bias)
        return np.asarray(np.maximum(bounds, bounds * np.abs(self.scaling.factor) + 1))

    @cached_property
    def _needs_care(self) -> bool:
        """Whether a product in float64 may be lifted to the next integer."""
        factor, _, _bias = self.factors
        return not bool((self._rounds_exactly | (factor == 0)).all())

    def rejection(self) -> Rejection | None:
        """Return why kernels would not compute this exactly; None when they do."""
        if not self._needs_care:
            return None
        factor, _, _bias = self.factors
        is_fraction_exact = np.ldexp(self.scaling.unit, _EXACT_BITS) >= 1
        fits = (self._reach(self._largest) < _WORD) & is_fraction_exact | (factor == 0)
        if fits.all():
            return None
        channel = int(np.flatnonzero(~fits)[0])
        return Rejection(
            "multiplier",
            actual=f"{self.scaling.factor[channel]:g} in channel {channel}",
            expected="a scale with which float64 arithmetic is exact",
        )

    def rounding(self, exact: bool) -> int:
        """Return how results round."""
        if not exact:
            return blocks.NEAREST
        if self._needs_care:
            return blocks.EXACT_CLOSE
        # Negative values differ only below the zero point, and that may be clamped away.
        is_away = bool(self.scaling.away.any()) and self.low < self.zero_point
        return blocks.EXACT_AWAY if is_away else blocks.EXACT

    def out_flip(self, shift: int) -> int:
        """Return what makes unsigned results stored ones; *shift* as of :meth:`headers`."""
        return 128 if self.low < 0 and not shift else 0

    def headers(self, exact: bool, shift: int = 0) -> NDArray[np.uint8]:
        """Return the headers of blocks of 16 outputs: ``[blocks, HEADER_BYTES], uint8``.

        Args:
            exact: whether float32 is to be told apart from exact results; see ``NEAR``.
            shift: added to results, for those that stay unsigned.
        """
        factor, half, bias = self.factors
        count = len(bias)
        zero = np.full(count, self.zero_point + shift)
        zero[: count // 64 * 64] += self.out_flip(shift)
        offset = half + blocks.NEAR if exact else np.zeros(count)
        offset = np.where(factor == 0, half + 0.25, offset)  # constants, far from other integers
        values: dict[str, NDArray[Any]] = {
            "bias": bias.astype(np.int32),
            "scale": factor.astype(np.float32),
            "offset": (zero + offset).astype(np.float32),
            "factor": factor,
            "exact_offset": half,
            "away": self.scaling.away,
            "zero": zero.astype(np.int32),
        }
        order = zipped_channels(count)
        size = -(-count // LANES)
        headers = np.zeros((size + 4, blocks.HEADER_BYTES), np.uint8)  # kernels read some behind
        for name, row in values.items():
            padded = np.zeros(size * LANES, row.dtype)
            padded[:count] = row[order]
            place = blocks.HEADER[name]
            width = LANES * row.dtype.itemsize
            headers[:size, place : place + width] = padded.view(np.uint8).reshape(size, width)
        return headers


def centred(weight: Tensor) -> Integers:
    """Return weights without their zero point, in their shape."""
    if weight.type.name == "INT8" and not weight.zero_point:
        values: NDArray[np.int8] = dense_values(weight)
        return values
    return centred_integers(weight).astype(np.int16, copy=False)


def signed_bytes(weight: Integers) -> tuple[NDArray[np.int8], int]:
    """Return weights as signed bytes, and what was taken from each to make them fit.

    >>> signed_bytes(np.array([[-3, 200]], np.int16))
    (array([[-128,   75]], dtype=int8), 125)
    """
    if weight.dtype == np.int8:
        return weight.astype(np.int8, copy=False), 0
    low, high = int(weight.min(initial=0)), int(weight.max(initial=0))
    shift = 0 if low >= -128 and high <= 127 else low + 128
    return (weight - shift).astype(np.int8), shift


def matrix_blocks(weight: NDArray[np.int8], *, is_zipped: bool = True) -> NDArray[np.int8]:
    """Return ``[O, K]`` as ``[O / 16, K / 4, 16, 4]``, with zeros behind, and some blocks more.

    Args:
        weight: outputs in their own order.
        is_zipped: whether they get the order of :func:`zipped_channels`.
    """
    outputs, depth = weight.shape
    size, steps = -(-outputs // LANES), -(-depth // 4)
    padded = np.zeros(((size + 4) * LANES, steps * 4), np.int8)
    padded[:outputs, :depth] = weight[zipped_channels(outputs)] if is_zipped else weight
    return padded.reshape(size + 4, LANES, steps, 4).transpose(0, 2, 1, 3)


def summands_of(weight: Integers) -> int:
    """Return of how many signed bytes the weights are sums."""
    low, high = int(weight.min(initial=0)), int(weight.max(initial=0))
    return max(1, -(-high // 127), -(low // 128))


def zipped_channels(channels: int) -> NDArray[np.intp]:
    """Return the order of channels in which kernels compute them, 64 at a time; see ``dot_ir``."""
    order = np.arange(channels)
    whole = channels // 64 * 64
    groups = order[:whole].reshape(-1, 4, 4, 4)  # 64 channels as lane, vector, element
    order[:whole] = groups.transpose(0, 2, 1, 3).reshape(-1)
    return order


def tap_blocks(weight: Integers) -> NDArray[np.int8]:
    """Return depthwise weights as dwords of four taps below each other.

    Weights that do not fit a byte are split into summands that do.

    Args:
        weight: ``[KH, KW, C]``.

    Returns:
        ``[summands, KH / 4, KW, 64, 4]`` for each 64 channels, then the same with 16, one after
        the other, ``[bytes]``.
    """
    height, width, channels = weight.shape
    size, groups = -(-channels // LANES), -(-height // 4)
    weight = weight[..., zipped_channels(channels)]
    summands = []
    for _ in range(summands_of(weight)):
        part = weight.clip(-128, 127)
        weight = weight - part
        padded = np.zeros((groups * 4, width, size * LANES), np.int8)
        padded[:height, :, :channels] = part
        summands.append(padded.reshape(groups, 4, width, -1).transpose(0, 2, 3, 1))
    dwords = np.stack(summands)  # [summands, groups, KW, C, 4]
    whole = channels // 64 * 64
    parts = [
        dwords[..., first:last, :].reshape(*dwords.shape[:3], -1, lanes, 4)
        for first, last, lanes in ((0, whole, 64), (whole, None, 16))
    ]
    return np.concatenate([part.transpose(3, 0, 1, 2, 4, 5).reshape(-1) for part in parts])
