"""ADD, SUB and MUL of INT16, in the fixed-point arithmetic of the official kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from delegraph import Rejection, Tensor
from delegraph.arithmetic import power_of_two, quantize_multiplier, quantized_activation_range
from delegraph_numba_cpu.instructions.elementwise import OPERATIONS, Operation
from delegraph_numba_cpu.lowering.checks import (
    activation_of,
    check_multiplier,
    check_one_scale,
    check_positive_scales,
    first_rejection,
)
from delegraph_numba_cpu.lowering.elementwise import elementwise_int8_pairs
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import (
    PAIR_FEATURES,
    Chain,
    operand,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_int8_formulas import PRODUCT, SUMS
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import ProgramBuilder

SUM_LANES = 16
"""Number of elements that the official vector loop of ADD processes at a time."""

LEFT_SHIFT = 15
"""Number of bits by which summands are shifted left before they are multiplied."""

_INT32 = np.iinfo(np.int32)

Steps = Callable[[Call, Chain, Sequence[int]], int]
"""Function that adds a node's steps to a chain, and returns the number of their int32 result."""


def lower_pair(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls of an INT16 ADD, SUB or MUL.

    An ADD may get two calls: LiteRT's vector loop and its loop over the last elements round
    differently.
    """
    size = math.prod(call.output().shape)
    if call.name == PRODUCT:
        _emit(call, builder, _product, 0, size)
    elif _has_powers_of_two(call):
        _emit(call, builder, _sum_of_powers, 0, size)
    else:
        end = size - size % SUM_LANES if _has_vector_loop(call) else 0
        _emit(call, builder, partial(_sum, _shifted_once), 0, end)
        _emit(call, builder, partial(_sum, _shifted_twice), end, size)


def _has_vector_loop(call: Call) -> bool:
    is_builtin = call.context.numerics == "builtin"
    return call.name == "ADD" and is_builtin and call.input(0).shape == call.input(1).shape


def _has_powers_of_two(call: Call) -> bool:
    """Whether an option requests power-of-two scales and all scales are powers of two."""
    tensors = call.input(0), call.input(1), call.output()
    are_powers = all(power_of_two(tensor.scale) is not None for tensor in tensors)
    return bool(call.options.pot_scale_int16) and are_powers


def _emit(call: Call, builder: ProgramBuilder, steps: Steps, start: int, stop: int) -> None:
    """Add a kernel call that computes elements number *start* to *stop* - 1 of a node's output.

    These must be all elements if the operands have different shapes.
    """
    y = call.output()
    tensors = call.input(0), call.input(1)
    if stop - start == math.prod(y.shape):
        chain = Chain(y.shape)
        operands = [operand(builder, chain, x) for x in tensors]
    else:
        chain = Chain((stop - start,))
        places = [builder.tensor(x.index) + 2 * start for x in tensors]
        operands = [chain.source(place, chain.shape, 2) for place in places]
    steps(call, chain, operands)
    chain.emit(builder, builder.tensor(y.index) + 2 * start, 2)


def _product(call: Call, chain: Chain, operands: Sequence[int]) -> int:
    product = chain.step(Operation.PRODUCT_OF_INT16, operands)
    return _stored(call, chain, product, _product_scale(call))


def _product_scale(call: Call) -> float:
    a, b, y = (np.float32(x.scale) for x in (call.input(0), call.input(1), call.output()))
    with np.errstate(all="ignore"):
        return float(a * b / y)


Scale = Callable[[Chain, int, Tensor, float], int]
"""Function that adds a step to convert a tensor to another scale, and returns the result's
number."""


def _sum(scaled: Scale, call: Call, chain: Chain, operands: Sequence[int]) -> int:
    a, b, y = call.input(0), call.input(1), call.output()
    twice = 2 * max(a.scale, b.scale)
    summands = [scaled(chain, x, t, twice) for x, t in zip(operands, (a, b), strict=True)]
    total = _total(call, chain, summands)
    return _stored(call, chain, total, twice / ((1 << LEFT_SHIFT) * y.scale))


def _shifted_once(chain: Chain, x: int, tensor: Tensor, scale: float) -> int:
    multiplier, shift = quantize_multiplier(tensor.scale / scale)
    net = LEFT_SHIFT + shift
    return _rescaled(chain, x, tensor.zero_point, max(net, 0), max(-net, 0), multiplier, 0)


def _shifted_twice(chain: Chain, x: int, tensor: Tensor, scale: float) -> int:
    multiplier, shift = quantize_multiplier(tensor.scale / scale)
    return _rescaled(chain, x, tensor.zero_point, LEFT_SHIFT, 0, multiplier, -shift)


def _rescaled(chain: Chain, x: int, *parameters: int) -> int:
    return chain.step(Operation.RESCALE_INT16, [x], *parameters)


def _total(call: Call, chain: Chain, summands: Sequence[int]) -> int:
    operation = OPERATIONS[f"{call.name}_INT32"]
    return chain.step(operation, summands, int(_INT32.min), int(_INT32.max))


def _sum_of_powers(call: Call, chain: Chain, operands: Sequence[int]) -> int:
    target = power_of_two(call.output().scale)
    assert target is not None
    summands = []
    for x, tensor in zip(operands, (call.input(0), call.input(1)), strict=True):
        exponent = power_of_two(tensor.scale)
        assert exponent is not None
        summands.append(_rescaled(chain, x, 0, 1, 0, 1 << 30, target - exponent))
    return _stored(call, chain, _total(call, chain, summands), 1.0)


def _stored(call: Call, chain: Chain, x: int, factor: float) -> int:
    """Add the last step to a chain: multiply operand *x* by *factor*, round and store as int16."""
    y = call.output()
    multiplier, shift = quantize_multiplier(factor)
    low, high = quantized_activation_range(activation_of(call), y)
    scaling = max(shift, 0), multiplier, max(-shift, 0)
    return chain.step(Operation.STORE_INT16, [x], *scaling, y.zero_point, low, high)


def check_scaled_pair(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's kernel accepts the node, and its scales are positive.

    Each tensor needs a single scale. The multiplier of a product must not be too large.
    """
    rejection = elementwise_int8_pairs.check_pair(call)
    if rejection is not None:
        return rejection
    tensors = (call.input(0), call.input(1), call.output())
    checks = (check_one_scale, check_positive_scales)
    found = first_rejection(*(check(tensor) for tensor in tensors for check in checks))
    if found is None and call.name == PRODUCT:
        found = check_multiplier(_product_scale(call))
    return found


_OPERATOR = Operator(check_scaled_pair, lower_pair, ("INT16",), PAIR_FEATURES)

register_variants(
    "INT16",
    dict.fromkeys((*SUMS, PRODUCT), _OPERATOR),
)
