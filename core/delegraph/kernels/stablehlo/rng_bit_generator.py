"""Kernel of STABLEHLO_RNG_BIT_GENERATOR."""

from __future__ import annotations

import math

import numpy as np

from delegraph.arithmetic.counter_random import Words, counters, philox4x32, threefry2x32
from delegraph.errors import OperatorError
from delegraph.operators.checks import option, require_rank, require_shape, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import RngAlgorithm, TensorType

_OUTPUTS = {TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64}


@kernel("STABLEHLO_RNG_BIT_GENERATOR")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_RNG_BIT_GENERATOR: random bits from a state, and the next state.

    The state is input 0 and output 0; the bits are output 1. A third number in a Philox state is
    the high half of the counter; if there is no third number, the key is used as the high half.

    Source:
        tflite/kernels/rng_bit_generator.cc, rng_util.cc.
    """
    state, new_state, y = tensors_of(context, node, 1, 2)
    require_type(state, {TensorType.UINT64})
    require_type(new_state, {TensorType.UINT64})
    require_type(y, _OUTPUTS)
    require_rank(state, 1)
    require_shape(new_state, state.shape)
    algorithm = option(node, "algorithm", None)
    if algorithm is None:
        raise OperatorError("the node has no options, expected an algorithm")
    is_threefry = algorithm == RngAlgorithm.THREEFRY
    sizes = (2,) if is_threefry else (2, 3)
    if state.shape[0] not in sizes:
        raise OperatorError(
            f"{algorithm.name} state has {state.shape[0]} numbers, expected {sizes}"
        )
    context.resize_tensor(new_state, state.shape)
    context.resize_tensor(y, y.shape)
    words = math.prod(y.shape) * y.dtype.itemsize // 4
    calls = -(-words // (2 if is_threefry else 4))

    def draw(key: int, counter: int, high: int) -> Words:
        if is_threefry:
            return threefry2x32(key, counters(counter, calls))
        return philox4x32(key, counters(counter, calls), high)

    def run() -> None:
        key, counter, *high = (int(number) for number in state.data)
        bits = draw(key, counter, high[0] if high else key)
        y.data[...] = bits.reshape(-1)[:words].view(y.dtype).reshape(y.shape)
        new_state.data[...] = state.data
        new_state.data[1] += np.uint64(calls)

    return run
