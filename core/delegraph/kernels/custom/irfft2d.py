"""IRFFT2D, a custom operator: the inverse of RFFT2D."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.output_shape import integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_shape, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel("IRFFT2D")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare IRFFT2D: images of the size in input 1, computed from their frequencies.

    Input 0 has the frequencies, which are cut, or padded with zeros, to the size of the image. In a
    real image's spectrum, some frequencies occur twice, as conjugates; of each pair, the kernel
    reads the same element as the official kernel.

    Source:
        tflite/kernels/irfft2d.cc.
    """
    x, length, y = tensors_of(context, node, 2)
    require_type(x, {TensorType.COMPLEX64})
    require_type(length, {TensorType.INT32})
    require_shape(length, (2,))
    adopt_type(y, TensorType.FLOAT32)
    if len(x.shape) < 2:
        raise OperatorError(f"input has shape {list(x.shape)}, expected 2 dimensions or more")

    def plan() -> tuple[Shape, Eval]:
        height, width = integers(length)
        if any(n <= 0 or n & (n - 1) for n in (height, width)):
            raise OperatorError(f"fft_length is {[height, width]}, expected powers of two")

        def run() -> None:
            columns = width // 2 + 1
            frequencies = np.zeros((*x.shape[:-2], height, columns), np.complex128)
            given = x.data[..., :height, :columns]
            frequencies[..., : given.shape[-2], : given.shape[-1]] = given
            _make_hermitian(frequencies)
            y.data[...] = np.fft.irfft2(frequencies, (height, width))

        return (*x.shape[:-2], height, width), run

    return size_output(context, y, plan, shape_inputs=(length,))


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
