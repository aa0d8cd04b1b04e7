"""RFFT2D, the Fourier transform of real images; its inverse IRFFT2D, a custom operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.output_shape import size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_shape, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, Scratch
from delegraph.operators.tensor import Shape, Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    x, length, y = _operands(context, node, TensorType.FLOAT32, TensorType.COMPLEX64)
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


@kernel("IRFFT2D")
def prepare_inverse(context: OpContext, node: Node) -> Eval:
    """Prepare IRFFT2D: images of the size in input 1, computed from their frequencies.

    Input 0 has the frequencies, which are cut, or padded with zeros, to the size of the image. In a
    real image's spectrum, some frequencies occur twice, as conjugates; of each pair, the kernel
    reads the same element as the official kernel.

    Source:
        tflite/kernels/irfft2d.cc.
    """
    x, length, y = _operands(context, node, TensorType.COMPLEX64, TensorType.FLOAT32)

    def plan() -> tuple[Shape, Eval]:
        height, width = _lengths(length)

        def run() -> None:
            columns = width // 2 + 1
            frequencies = np.zeros((*x.shape[:-2], height, columns), np.complex128)
            given = x.data[..., :height, :columns]
            frequencies[..., : given.shape[-2], : given.shape[-1]] = given
            _make_hermitian(frequencies)
            y.data[...] = np.fft.irfft2(frequencies, (height, width))

        return (*x.shape[:-2], height, width), run

    return size_output(context, y, plan, shape_inputs=(length,))


def _operands(
    context: OpContext, node: Node, given: TensorType, made: TensorType
) -> tuple[Tensor, Tensor, Tensor]:
    """Return input, lengths and output of a node that transforms from *given* to *made*."""
    x, length, y = tensors_of(context, node, 2)
    require_type(x, {given})
    require_type(length, {TensorType.INT32})
    adopt_type(y, made)
    require_shape(length, (2,))
    if len(x.shape) < 2:
        raise OperatorError(f"input has shape {list(x.shape)}, expected 2 dimensions or more")
    return x, length, y


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


def _make_hermitian(frequencies: NDArray[Any]) -> None:
    """Complete the first and last column of *frequencies*, so that the inverse transform is real.

    The array is changed in place. In these columns, row i and row -i are conjugate. The first
    column is read from its upper half, the last column from its lower half.

    Source:
        rdft2dsort of Ooura's fft2d, which irfft2d.cc calls.
    """
    rows = frequencies.shape[-2]
    upper = slice(1, (rows + 1) // 2)
    lower = slice(rows - 1, rows // 2, -1)
    for column, source, target in ((0, upper, lower), (-1, lower, upper)):
        values = frequencies[..., column]
        values[..., target] = values[..., source].conj()
        for row in {0, rows // 2}:
            values[..., row].imag = 0
