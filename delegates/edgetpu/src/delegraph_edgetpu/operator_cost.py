"""Cost of operators: multiply-adds, and cycles of the multiplying array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from delegraph_edgetpu.call import Call
from delegraph_edgetpu.chip import LANES


@dataclass(frozen=True)
class Product:
    """A matrix product at many positions: at each, *inputs* values give *outputs* values.

    >>> Product(positions=100, inputs=65, outputs=64).cycles  # 65 inputs need the array twice
    200
    """

    positions: int
    inputs: int
    outputs: int

    @property
    def multiply_adds(self) -> int:
        """Number of multiply-adds of the product."""
        return self.positions * self.inputs * self.outputs

    @property
    def cycles(self) -> int:
        """Number of cycles on an array of 64 x 64 units that never waits for data."""
        return self.positions * _rounds(self.inputs) * _rounds(self.outputs)


def multiply_adds(call: Call) -> int:
    """Return the number of multiply-adds of one call; 0 for operators without a matrix product.

    Args:
        call: an operator of the model, with its tensors.
    """
    return sum(product.multiply_adds for product in _products(call))


def cycles(call: Call) -> int:
    """Return the estimated number of processor cycles of one operator on the Edge TPU.

    These are the cycles of its matrix products, or else a cycle for every 64 results.

    Args:
        call: an operator of the model, with its tensors.
    """
    products = list(_products(call))
    if products:
        return sum(product.cycles for product in products)
    return sum(_rounds(prod(tensor.shape)) for tensor in call.outputs)


def _rounds(count: int) -> int:
    return -(-count // LANES)


def _products(call: Call) -> Iterator[Product]:
    rule = _PRODUCTS.get(call.operator.name)
    if rule is not None and call.outputs:
        yield from rule(call)


def _conv(call: Call) -> Iterator[Product]:
    weight = call.input(1)
    if weight is not None and len(weight.shape) == 4:
        o, kh, kw, i = weight.shape
        yield Product(_pixels(call.output.shape) * kh * kw, i, o)


def _depthwise(call: Call) -> Iterator[Product]:
    weight = call.input(1)
    if weight is not None and len(weight.shape) == 4:
        _, kh, kw, c = weight.shape
        yield Product(_pixels(call.output.shape) * kh * kw, 1, c)


def _transpose_conv(call: Call) -> Iterator[Product]:
    weight, x = call.input(1), call.input(2)
    if weight is not None and x is not None and len(weight.shape) == 4:
        o, kh, kw, i = weight.shape
        yield Product(_pixels(x.shape) * kh * kw, i, o)


def _fully_connected(call: Call) -> Iterator[Product]:
    weight = call.input(1)
    if weight is not None and len(weight.shape) == 2:
        o, i = weight.shape
        yield Product(prod(call.output.shape) // o if o else 0, i, o)


def _sequence_lstm(call: Call) -> Iterator[Product]:
    x = call.input(0)
    steps = 0 if x is None else _pixels(x.shape)
    for position in range(1, 9):  # positions of input and recurrent weights, a pair for each gate
        weight = call.input(position)
        if weight is not None and len(weight.shape) == 2:
            yield Product(steps, weight.shape[1], weight.shape[0])


def _batch_matmul(call: Call) -> Iterator[Product]:
    x = call.input(0)
    if x is not None and len(x.shape) >= 2 and call.output.shape:
        inner = x.shape[-2 if call.option("adj_x", False) else -1]
        yield Product(_pixels(call.output.shape), inner, call.output.shape[-1])


def _pixels(shape: tuple[int, ...]) -> int:
    """Return the number of positions in *shape*: the product of all dimensions except the last."""
    return prod(shape[:-1])


_PRODUCTS: dict[str, Callable[[Call], Iterator[Product]]] = {
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "TRANSPOSE_CONV": _transpose_conv,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _sequence_lstm,
}
