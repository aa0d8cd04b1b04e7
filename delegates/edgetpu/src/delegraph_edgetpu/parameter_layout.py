"""Bytes of parameters on the chip: weights and biases in the layout of real executables.

The array works on up to 64 outputs and on 4 inputs at a time. So the parameters of a matrix product
are tiles of 64 outputs. A tile has a head with the bias of each output, followed by 4 bytes
for each output, group of 4 inputs and filter tap. A depthwise filter has 4 bytes for each channel
and tap.

Source:
    Parameters in public files of the real compiler, compared with the weights of the uncompiled
    models.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from delegraph.graph import TensorSpec
from delegraph.schema.enums import TensorType
from delegraph_edgetpu.call import Call
from delegraph_edgetpu.chip import LANES

_GROUP = 4
"""Number of inputs that are stored together; also the number of bytes of a bias."""

_SMALLEST_TILE = 16
_ALIGNMENT = 64

_WEIGHTS = {
    "CONV_2D": (1,),
    "DEPTHWISE_CONV_2D": (1,),
    "FULLY_CONNECTED": (1,),
    "TRANSPOSE_CONV": (1,),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": range(1, 9),
}
"""Input positions of the weights of each operator with a matrix product."""

_RECURRENT = range(5, 9)
"""Positions of an LSTM's recurrent weights, which share the biases of its input weights."""


def parameter_sizes(calls: Iterable[Call]) -> dict[int, int]:
    """Return the number of bytes on the chip of each parameter buffer, by buffer index.

    Buffers are in order of first use. Weights include the biases of their outputs.

    Parameters are the constants with a scale: weights, biases, quantised operands. Shapes and axes
    are not parameters, but parts of the instructions.
    """
    sizes: dict[int, int] = {}
    for call in calls:
        weights = _WEIGHTS.get(call.operator.name, ())
        for position, tensor in call.inputs():
            if tensor.data is None or tensor.quantization is None:
                continue
            if position in weights:
                sizes.setdefault(tensor.buffer, _stored_bytes(call, position, tensor))
            elif not weights or tensor.type != TensorType.INT32:
                sizes.setdefault(tensor.buffer, len(tensor.data))
    return sizes


def _stored_bytes(call: Call, position: int, weights: TensorSpec) -> int:
    """Return the bytes of *weights*, input *position* of *call*, together with their biases."""
    shape = weights.shape
    if len(shape) < 2:
        return prod(shape)
    head = _head_bytes(call, position, weights)
    if call.operator.name == "DEPTHWISE_CONV_2D":
        return _rounded(shape[-1] * (head + _GROUP * prod(shape[:-1])), _ALIGNMENT)
    groups = prod(shape[1:-1]) * -(-shape[-1] // _GROUP)
    return _padded_outputs(shape[0]) * (head + _GROUP * groups)


def _head_bytes(call: Call, position: int, weights: TensorSpec) -> int:
    """Return the bytes that the head of a tile of weights has for each output.

    A bias has 4 bytes. If weights have a scale for each output, an output has 4 bytes more. The
    size that the real compiler reports for a layer of 256 x 256 shows this.
    """
    if call.operator.name == "UNIDIRECTIONAL_SEQUENCE_LSTM" and position in _RECURRENT:
        return 0
    quantization = weights.quantization
    is_per_channel = quantization is not None and len(quantization.scales) > 1
    return 2 * _GROUP if is_per_channel else _GROUP


def _padded_outputs(outputs: int) -> int:
    """Return the number of outputs with padding: to 16 in a single tile, else to whole tiles.

    >>> _padded_outputs(12), _padded_outputs(72)
    (16, 128)
    """
    return _rounded(outputs, _SMALLEST_TILE if outputs <= LANES else LANES)


def _rounded(count: int, multiple: int) -> int:
    """Return the smallest multiple of *multiple* that is not below *count*."""
    return -(-count // multiple) * multiple
