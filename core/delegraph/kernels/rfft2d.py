"""RFFT2D: the Fourier transform of real images."""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_shape, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, Scratch
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_TAKES_OUT = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
"""Whether NumPy can write transforms to existing memory, which takes less time."""


@kernel("RFFT2D")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare RFFT2D: the spectrum over the last two axes, each of a power-of-two length.

    Axes are cut, or padded with zeros. The transform is computed in double precision, like the
    official kernel, and rounded to complex64. The last axis keeps its first ``width // 2 + 1``
    frequencies. The official kernel gives wrong numbers for a width of 1; this kernel does not.

    Source:
        tflite/kernels/rfft2d.cc.
    """
    x, length, y = tensors_of(context, node, 2)
    require_type(x, {TensorType.FLOAT32})
    require_type(length, {TensorType.INT32})
    adopt_type(y, TensorType.COMPLEX64)
    require_shape(length, (2,))
    if len(x.shape) < 2:
        raise OperatorError(f"input has shape {list(x.shape)}, expected 2 dimensions or more")
    spectrum: Scratch | None = None
    if length.is_constant_or_persistent:
        *_, height, columns = shape = _output_shape(x, _lengths(length))
        context.resize_tensor(y, shape)
        if _TAKES_OUT:
            rows = (*x.shape[:-2], min(x.shape[-2], height), columns)
            spectrum = context.scratch(rows, np.complex128)
    else:
        context.set_dynamic(y)

    def run() -> None:
        height, width = _lengths(length)
        if y.is_dynamic:
            context.resize_tensor(y, _output_shape(x, (height, width)))
        image = x.data[..., :height, :width].astype(np.float64)
        into: dict[str, Any] = {} if spectrum is None else {"out": spectrum.data}
        found = np.fft.rfft(image, width, **into)
        if image.shape[-2] != 1 or height != 1:
            found = np.fft.fft(found, height, axis=-2)
        y.data[...] = found

    return run


def _lengths(length: Tensor) -> tuple[int, int]:
    """Return height and width of the transform, the two numbers in *length*.

    Raises:
        OperatorError: height or width is no power of two.
    """
    height, width = length.data.tolist()
    if any(n <= 0 or n & (n - 1) for n in (height, width)):
        raise OperatorError(f"fft_length is {[height, width]}, expected powers of two")
    return height, width


def _output_shape(x: Tensor, lengths: tuple[int, int]) -> tuple[int, ...]:
    height, width = lengths
    return (*x.shape[:-2], height, width // 2 + 1)
