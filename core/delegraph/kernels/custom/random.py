"""Custom operators RandomUniform, RandomUniformInt, RandomStandardNormal and Multinomial.

These operators are older than the builtin operators of the same names. Every interpreter starts
with the same numbers, and each invoke continues the sequence. The numbers differ from those of the
official kernels, which use the C++ standard library.

Source:
    tflite/kernels/random_uniform_custom.cc, random_standard_normal_custom.cc, multinomial.cc.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from delegraph.arithmetic.output_shape import integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import require_one_element, require_rank, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Shape
from delegraph.schema.enums import TensorType

_FLOATS = {TensorType.FLOAT32, TensorType.FLOAT64}
_SHAPES = {TensorType.INT32, TensorType.INT64}
_INTEGERS = {TensorType.INT8, TensorType.INT32, TensorType.INT64}


@kernel("RandomUniform")
def prepare_uniform(context: OpContext, node: Node) -> Eval:
    """Prepare RandomUniform: floats from 0 to below 1, of the shape in input 0."""
    require_type(output_tensor(context, node), _FLOATS)
    y, generator = output_tensor(context, node), _generator(node)

    def draw() -> None:
        y.data[...] = generator.random(y.data.shape, y.data.dtype)

    return _prepare(context, node, draw)


@kernel("RandomStandardNormal")
def prepare_standard_normal(context: OpContext, node: Node) -> Eval:
    """Prepare RandomStandardNormal: floats, of the shape in input 0."""
    shape, y = tensors_of(context, node, 1)
    require_type(shape, {TensorType.INT32})
    require_type(y, _FLOATS)
    generator = _generator(node)

    def draw() -> None:
        y.data[...] = generator.standard_normal(y.data.shape, y.data.dtype)

    return _prepare(context, node, draw)


@kernel("RandomUniformInt")
def prepare_uniform_int(context: OpContext, node: Node) -> Eval:
    """Prepare RandomUniformInt: random integers in [input 1, input 2]."""
    low, high = input_tensor(context, node, 1), input_tensor(context, node, 2)
    for tensor in (low, high, output_tensor(context, node)):
        require_type(tensor, _INTEGERS)
    require_one_element(low, high)
    y, generator = output_tensor(context, node), _generator(node)

    def draw() -> None:
        first, last = integers(low)[0], integers(high)[0]
        if first >= last:
            raise OperatorError(f"integers from {first} to {last}, expected an ascending range")
        y.data[...] = generator.integers(first, last, y.data.shape, endpoint=True)

    return _prepare(context, node, draw)


def _prepare(context: OpContext, node: Node, draw: Callable[[], None]) -> Eval:
    shape, y = input_tensor(context, node, 0), output_tensor(context, node)
    require_type(shape, _SHAPES)
    require_rank(shape, 1)

    def plan() -> tuple[Shape, Eval]:
        return integers(shape), draw

    return size_output(context, y, plan, shape_inputs=(shape,))


def _generator(node: Node) -> np.random.Generator:
    """Return the node's generator; a second prepare returns the same generator."""
    if node.user_data is None:
        node.user_data = np.random.Generator(np.random.PCG64(1))
    generator: np.random.Generator = node.user_data
    return generator


@kernel("Multinomial")
def prepare_multinomial(context: OpContext, node: Node) -> Eval:
    """Prepare Multinomial: classes drawn by the logits in each row of input 0.

    Input 1, a constant, is the number of draws per row.
    """
    logits, samples, y = tensors_of(context, node, 2)
    generator = _generator(node)
    require_type(logits, _FLOATS)
    require_type(samples, {TensorType.INT32})
    require_type(y, _SHAPES)
    require_rank(logits, 2)
    require_rank(samples, 0)
    if not samples.is_constant or not logits.shape[1]:
        raise OperatorError("the number of samples must be constant, and there must be classes")
    (draws,) = integers(samples)
    context.resize_tensor(y, (logits.shape[0], draws))

    def run() -> None:
        odds = np.exp(logits.data - logits.data.max(axis=1, keepdims=True, initial=-np.inf))
        for row, result in zip(np.cumsum(odds, axis=1, dtype=np.float64), y.data, strict=True):
            points = generator.random(draws) * row[-1]
            result[...] = np.searchsorted(row, points)

    return run
