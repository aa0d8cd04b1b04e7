"""SignalRfft and SignalIrfft: Fourier transforms of frames of sound, and their inverse."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.signal.mixed_radix_fft import RealTransform, is_length
from delegraph.kernels.signal.options import signal_option, type_option
from delegraph.operators.checks import require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

TYPES = (TensorType.INT16, TensorType.INT32, TensorType.FLOAT32)


@kernel("SignalRfft")
def prepare_rfft(context: OpContext, node: Node) -> Eval:
    """Prepare SignalRfft: spectra ``[..., fft_length + 2]`` of ``[..., samples]``.

    In the result, real and imaginary parts alternate. Frames shorter than ``fft_length`` are padded
    with zeros. For fixed-point numbers, the result is divided by ``fft_length``.

    Source:
        tflite-micro/signal/micro/kernels/rfft.cc.
    """
    x, y, length = _operands(context, node)
    samples = x.shape[-1]
    if samples > length:
        raise OperatorError(f"{x!r} has frames longer than the option fft_length, {length}")
    context.resize_tensor(y, (*x.shape[:-1], length + 2))
    transform = RealTransform(length, x.dtype)
    padded = context.scratch((*x.shape[:-1], length), x.dtype)

    def run() -> None:
        padded.data[..., :samples], padded.data[..., samples:] = x.data, 0
        y.data[...] = transform(padded.data)

    return run


@kernel("SignalIrfft")
def prepare_irfft(context: OpContext, node: Node) -> Eval:
    """Prepare SignalIrfft: ``[..., fft_length]`` samples of spectra ``[..., fft_length + 2]``.

    Source:
        tflite-micro/signal/micro/kernels/irfft.cc, src/irfft_float.cc.
    """
    x, y, length = _operands(context, node)
    if x.shape[-1] != length + 2:
        raise OperatorError(f"{x!r} has {x.shape[-1]} numbers a frame, expected {length + 2}")
    context.resize_tensor(y, (*x.shape[:-1], length))
    transform = RealTransform(length, x.dtype, is_inverse=True)
    is_float = x.type == TensorType.FLOAT32  # fixed point divides in its stages

    def run() -> None:
        y.data[...] = transform(x.data)
        if is_float:
            y.data[...] /= np.float32(length)

    return run


def _operands(context: OpContext, node: Node) -> tuple[Tensor, Tensor, int]:
    """Return input, output and the length of frames.

    Raises:
        OperatorError: a type differs from the option ``T``, the length is odd, or an input is a
            scalar.
    """
    x, y = tensors_of(context, node, 1)
    type_ = type_option(node, TYPES)
    for tensor in (x, y):
        require_type(tensor, {type_})
    length = signal_option(node, "fft_length")
    if not is_length(length):
        raise OperatorError(
            f"option 'fft_length' is {length}, expected twice a product of 2, 3 and 5, 4 at least"
        )
    if not x.shape:
        raise OperatorError(f"{x!r} is a scalar, expected frames")
    return x, y, length
