"""Constants of 8-bit products, and the check whether kernels compute them exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic import (
    Scaling,
    bias_or_zeros,
    fixed_point_scaling,
    is_in_scalar_tail,
    per_channel_multipliers,
    per_tensor_multiplier,
    quantized_activation_range,
    scaling_of,
)
from delegraph.errors import OperatorError
from delegraph_numba_cpu.instructions import conv_int8 as instructions
from delegraph_numba_cpu.lowering.checks import (
    check_bias,
    check_same_type,
    check_type,
    first_rejection,
)
from delegraph_numba_cpu.lowering.convolution.conv_int8_packing import (
    LANES,
    SPARE,
    Integers,
    centred,
    zipped_channels,
)
from delegraph_numba_cpu.lowering.convolution.conv_windows import has_groups
from delegraph_numba_cpu.lowering.registry import Call

TYPES = ("INT8", "UINT8")
CLAIMED_ROLES = {
    "INT8": (("weights", ("INT8", "INT4")), ("bias", ("INT32",))),
    "UINT8": (("bias", ("INT32",)),),
}
"""Claimed types of weights and bias, by the input's type.

INT2 is computed but not claimed, since the conformance kit has no models of it.
"""

WEIGHT_TYPES = {"INT8": ("INT8", "INT4", "INT2"), "UINT8": ("UINT8",)}

_WORD = 1 << 31

_EXACT_BITS = 53

ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Product:
    """Constants of a node's products: weights, bias, scaling, zero points and limits.

    Attributes:
        weight: weights without their zero point, ``[O, K]``.
        bias: sum of the bias and the input zero point's part of the products, ``[O]``, int64.
        scaling: scaling from accumulators to results.
        zero_point: zero point of the output, as stored.
        low: smallest stored result.
        high: largest stored result.
        flip: 128 for an int8 input, which kernels read as uint8; else 0.
        zero: the input's zero point as kernels read it.
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
        """Return the constants of a node's products; the input's zero point is added to the bias.

        Args:
            x: input tensor.
            weight: zero point removed, ``[O, K]``.
            bias: tensor that is added to the accumulators, or None.
            y: output tensor.
            scaling: scaling from accumulators to results.
            activation: fused activation.
        """
        low, high = quantized_activation_range(activation, y)
        flip = 128 if x.type.name == "INT8" else 0
        zero = x.zero_point + flip
        whole = bias_or_zeros(bias, len(weight), np.int64)
        narrow = np.int32 if weight.shape[1] < _WORD >> 8 else np.int64  # twice as fast
        whole = whole - zero * weight.sum(axis=1, dtype=narrow).astype(np.int64)
        return cls(weight, whole, scaling, y.zero_point, low, high, flip, zero)

    @cached_property
    def _largest(self) -> NDArray[np.float64]:
        """Upper bound of the magnitude of accumulators without bias, ``[O]``."""
        total = np.abs(self.weight, dtype=np.int16).sum(axis=1, dtype=np.int64)
        return np.asarray(total * 255.0)

    @cached_property
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Factor, rounding term and bias of each channel, ``[O]`` each.

        A *constant channel* has the same result at both ends of its accumulators' range. It gets
        the factor 0, or keeps a factor below 1. With a factor from 1 on, the core's integers may
        wrap around between the ends. Pruned channels are constant: their weights are zero, the
        scale is tiny, and the bias has 30 bits, for which float64 has too few bits.
        """
        scaling, bias, fits = self.scaling, self.bias, self._rounds_exactly
        if fits.all():
            return scaling.factor, scaling.half, bias
        reach = np.minimum(self._largest, _WORD).astype(np.int64)
        fixed = ~fits & (np.abs(scaling.factor) < 1)
        fixed &= self._results(bias - reach) == self._results(bias + reach)
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
        """Whether one multiplication in float64 gives exact results, per channel, ``[O]``."""
        rough = self._is_exact(self.weight.shape[1] * 255.0 * 255.0)
        return rough if rough.all() else self._is_exact(self._largest)

    def _is_exact(self, largest: NDArray[np.float64] | float) -> NDArray[np.bool_]:
        """Return for each channel whether results are exact for all accumulators up to *largest*.

        *largest* bounds their magnitude without the bias, ``[O]`` or one for all. The sum of two
        numbers decides: the accumulator times its multiplier, and the half that rounding adds.
        Results are exact if the sum fits into the 53 bits of a float64's fraction. They are also
        exact if it is so large that the result is clamped.
        """
        return _is_exact(self.scaling, largest + np.abs(self.bias))

    @cached_property
    def _needs_care(self) -> bool:
        """Whether rounding to float64 may raise a product to the next integer."""
        factor, _, _bias = self.factors
        return not bool((self._rounds_exactly | (factor == 0)).all())

    def rejection(self) -> Rejection | None:
        """Reason why float64 arithmetic could round an output wrongly; None if it cannot."""
        if not self._needs_care:
            return None
        factor, _, _bias = self.factors
        is_fraction_exact = np.ldexp(self.scaling.unit, _EXACT_BITS) >= 1
        reach = _reach(self.scaling, self._largest + np.abs(self.bias))
        fits = (reach < _WORD) & is_fraction_exact | (factor == 0)
        if fits.all():
            return None
        channel = int(np.flatnonzero(~fits)[0])
        return Rejection(
            "multiplier",
            actual=f"{self.scaling.factor[channel]:g} in channel {channel}",
            expected="a scale with which float64 arithmetic is exact",
        )

    def rounding(self, exact: bool) -> int:
        """Return the kernel's rounding, a constant of the module ``instructions`` like ``EXACT``.

        Args:
            exact: whether results must equal those of LiteRT's kernels bit by bit.
        """
        if not exact:
            return instructions.NEAREST
        if self._needs_care:
            return instructions.EXACT_CLOSE
        # Negative results differ only below the zero point, and the clamp may exclude those.
        is_away = bool(self.scaling.away.any()) and self.low < self.zero_point
        return instructions.EXACT_AWAY if is_away else instructions.EXACT

    def out_flip(self, shift: int) -> int:
        """Number, 128 or 0, that the kernel xors with unsigned results to get the stored results.

        Args:
            shift: number added to results that stay unsigned; 0 if they are stored as the tensor's
                type.
        """
        return 128 if self.low < 0 and not shift else 0

    def headers(
        self,
        exact: bool,
        shift: int = 0,
        outputs: slice | NDArray[np.intp] = ALL,
        byte_shift: int = 0,
    ) -> NDArray[np.uint8]:
        """Return the headers of blocks of 16 outputs: factors, offsets and biases for their sums.

        The array is ``[blocks, HEADER_BYTES], uint8``.

        Args:
            exact: whether kernels must recognize results for which float32 is not exact; see
                ``NEAR``.
            shift: as for :meth:`out_flip`.
            outputs: indices of the outputs; by default all.
            byte_shift: number that kernels subtract from unsigned activations, 128 or 0.
        """
        factor, half, bias = (row[outputs] for row in self.factors)
        if byte_shift:
            bias = bias + byte_shift * self.weight[outputs].sum(axis=1, dtype=np.int64)
        count = len(bias)
        zero = np.full(count, self.zero_point + shift)
        zero[: count // 64 * 64] += self.out_flip(shift)
        nearest = half - 0.5 if exact else np.zeros(count)
        # Factor 0: the constant result is an integer.
        nearest = zero + np.where(factor == 0, np.floor(half), nearest)
        near = np.where(factor == 0, 0.0, instructions.NEAR if exact else 0.0)
        has_fraction = self.rounding(exact) == instructions.EXACT
        unit, raised = (instructions.FRACTION, 0.5) if has_fraction else (1, 0.0)
        values: dict[str, NDArray[Any]] = {
            "bias": bias.astype(np.int32),
            "scale": (factor * unit).astype(np.float32),
            "offset": ((nearest + near + raised) * unit).astype(np.float32),
            "below": (nearest - near).astype(np.float32),
            "factor": factor,
            "exact_offset": half,
            "away": np.where(
                factor == 0, 0.0, self.scaling.away[outputs]
            ),  # constant results have no halves
            "zero": zero.astype(np.int32),
        }
        order = zipped_channels(count)
        size = -(-count // LANES)
        headers = np.zeros((size + SPARE, instructions.HEADER_BYTES), np.uint8)
        for name, row in values.items():
            # Outputs that are only padding are certain, too.
            filled = raised * unit if name == "offset" else 0
            padded = np.full(size * LANES, filled, row.dtype)
            padded[:count] = row[order]
            place = instructions.HEADER[name]
            width = LANES * row.dtype.itemsize
            headers[:size, place : place + width] = padded.view(np.uint8).reshape(size, width)
        return headers


def _is_exact(scaling: Scaling, sums: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether one multiplication in float64 scales accumulators exactly, per channel, ``[O]``.

    *sums* are upper bounds of the accumulators' magnitude, ``[O]``.
    """
    reach = _reach(scaling, sums)
    limit = np.ldexp(scaling.unit, _EXACT_BITS)
    return np.asarray((reach < _WORD) & ((limit >= 256) | (reach < limit)))


def _reach(scaling: Scaling, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return upper bounds of the magnitude of accumulators, before and after scaling, ``[O]``.

    *sums*, ``[O]``, are the bounds before scaling; *scaling* has the factors.
    """
    return np.asarray(np.maximum(sums, sums * np.abs(scaling.factor) + 1))


def check_constants(call: Call) -> Rejection | None:
    """Return a rejection unless types are 8-bit, weights constant, and results exact."""
    x, y = call.input(_input(call)), call.output()
    weight, bias = call.input(1), call.optional_input(_input(call, bias=True))
    found = first_rejection(check_type(x, *TYPES), check_same_type(x, y))
    if found is None:
        found = check_type(weight, *WEIGHT_TYPES[x.type.name])
    if found is not None:
        return found
    for tensor in (weight, bias):
        if tensor is not None and not tensor.is_constant:
            return Rejection("computed-weights", expected="constant weights", tensor=tensor.index)
    if weight.sparsity is not None:
        return Rejection("sparse-weights", expected="dense weights", tensor=weight.index)
    if not weight.shape or 0 in weight.shape:
        return Rejection("weights-shape", actual=list(weight.shape), expected="weights")
    found = None if bias is None else check_type(bias, "INT32")
    if found is None:
        found = check_bias(call, _input(call, bias=True))
    if found is not None:
        return found
    try:
        return None if _is_surely_exact(call) else product_of(call).rejection()
    except OperatorError as error:
        return Rejection("quantization", str(error))


def _is_surely_exact(call: Call) -> bool:
    """Whether a node's results are exact for all possible weights; their values are not read.

    Raises:
        OperatorError: the official kernel rejects the quantization.
    """
    x, weight, y = call.input(_input(call)), call.input(1), call.output()
    bias = call.optional_input(_input(call, bias=True))
    quantized_activation_range(call.options.fused_activation_function, y)
    outputs = weight.shape[-1 if call.name == "DEPTHWISE_CONV_2D" else 0]
    scaling = _scaling(call, x, weight, bias, y, outputs)
    # The zero point's part of the products is as large as the products at most.
    most = 2.0 * 255 * 255 * (math.prod(weight.shape) // outputs)
    sums = most + np.abs(bias_or_zeros(bias, outputs, np.int64))
    are_bytes = all(-256 < each.zero_point < 256 for each in (x, weight, y))
    return are_bytes and bool(_is_exact(scaling, sums).all())


def _input(call: Call, *, bias: bool = False) -> int:
    """Return the position of the data among the node's inputs, or with *bias*, of the bias."""
    is_transposed = call.name == "TRANSPOSE_CONV"
    return 2 + is_transposed if bias else 2 * is_transposed


def product_of(call: Call) -> Product:
    """Return the weights, bias and scaling of a node's matrix product.

    Raises:
        OperatorError: the official kernel rejects the quantization.
    """
    x, weight, y = call.input(_input(call)), call.input(1), call.output()
    bias = call.optional_input(_input(call, bias=True))
    if not weight.is_constant:
        outputs, depth = weight.shape
        scaling = _scaling(call, x, weight, bias, y, outputs)
        values = bias_or_zeros(bias, outputs, np.int64)
        activation = call.options.fused_activation_function
        return computed_product(x, y, scaling, depth, values, activation)
    values = centred(weight)
    if call.name == "DEPTHWISE_CONV_2D":
        values = values.reshape(-1, values.shape[-1]).T
    scaling = _scaling(call, x, weight, bias, y, len(values))
    values = values.reshape(len(values), -1)
    activation = call.options.fused_activation_function
    return Product.of(x, values, bias, y, scaling, activation)


def _scaling(
    call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, channels: int
) -> Scaling:
    """Return the scaling of accumulators, with the rounding of the operator's official kernel.

    *x*, *weight*, *bias* and *y* are the node's tensors; there are *channels* output channels.
    """
    if call.name == "FULLY_CONNECTED":
        multipliers = per_channel_multipliers(x, weight, y, channels)
        if weight.quantization is not None and len(weight.quantization.scales) == 1:
            multipliers[:] = per_tensor_multiplier(x, weight, bias, y)
        return fixed_point_scaling(multipliers, halves_away=False)
    away: Any = has_groups(call)
    if call.name == "DEPTHWISE_CONV_2D":
        away = is_in_scalar_tail(channels) if x.type.name == "INT8" else True
    elif call.name == "TRANSPOSE_CONV" and x.type.name == "INT8":
        away = is_in_scalar_tail(channels)
    return scaling_of(x, weight, bias, y, channels, "builtin", halves_away=away)


def computed_product(
    x: Tensor, y: Tensor, scaling: Scaling, depth: int, bias: NDArray[np.int64], activation: int
) -> Product:
    """Return the constants of a product whose weights are computed at run time.

    Args:
        x: input tensor.
        y: output tensor.
        scaling: scaling from accumulators to results, ``[O]``.
        depth: length of the rows of matrices.
        bias: numbers that are added to the accumulators, ``[O]``.
        activation: fused activation.
    """
    largest = np.broadcast_to(np.int16(255), (len(bias), depth))
    low, high = quantized_activation_range(activation, y)
    return Product(largest, bias, scaling, y.zero_point, low, high, 128, x.zero_point + 128)
