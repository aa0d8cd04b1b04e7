"""Kernel of CAST: converts elements to another type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.elements import values_of
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import BITS, pack
from delegraph.operators.checks import require_type, tensor_types, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES = tensor_types(
    "BOOL BFLOAT16 COMPLEX64 FLOAT16 FLOAT32 FLOAT64 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32"
)
_PACKED_LIMITS = {TensorType.INT2: (-2, 1), TensorType.INT4: (-8, 7), TensorType.UINT4: (0, 15)}


@kernel("CAST")
def prepare_cast(context: OpContext, node: Node) -> Eval:
    """Prepare CAST: elements in another type, among bools, integers, floats and complex64.

    Floats outside of an integer's range saturate, and NaN becomes the largest integer. Integers
    wrap. Complex numbers lose their imaginary part. 2- and 4-bit integers can be converted from and
    to float32.

    Source:
        tflite/kernels/cast.cc.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, _TYPES | set(BITS))
    require_type(y, _TYPES | set(BITS))
    if x.is_packed or y.is_packed:
        return _packed(context, x, y)
    context.resize_tensor(y, x.shape)

    def run() -> None:
        np.copyto(y.data, x.data, casting="unsafe")

    def run_saturating() -> None:
        saturate(x.data, y.data)

    def run_real() -> None:
        np.copyto(y.data, x.data.real, casting="unsafe")

    def run_real_saturating() -> None:
        saturate(x.data.real, y.data)

    to_integer = y.dtype.kind in "iu"
    if x.dtype.kind == "c" and y.dtype.kind != "c":
        return run_real_saturating if to_integer else run_real
    is_float = x.dtype.kind == "f" or x.type is TensorType.BFLOAT16
    return run_saturating if is_float and to_integer else run


def saturate(x: NDArray[Any], y: NDArray[Any]) -> None:
    """Set the integers *y* to the floats *x*, truncated towards zero and clamped to *y*'s range.

    Source:
        SaturatingCastFloatingToInteger, tflite/kernels/cast.cc.
    """
    limits = np.iinfo(y.dtype)
    real = np.float32 if x.dtype.itemsize == 2 else x.dtype.type  # float16 lacks the limits
    low, high = real(limits.min), real(limits.max)
    if int(high) > limits.max:
        high = np.nextafter(high, real(0))
    values = x.astype(real, copy=False)
    np.copyto(y, values.clip(low, high), casting="unsafe")
    np.copyto(y, limits.max, where=~(values <= high))


def _packed(context: OpContext, x: Tensor, y: Tensor) -> Eval:
    if TensorType.FLOAT32 not in (x.type, y.type):
        raise OperatorError(f"CAST from {x.type.name} to {y.type.name}, expected FLOAT32 in one")
    context.resize_tensor(y, x.shape)

    def unpack_values() -> None:
        y.data[...] = values_of(x)

    def pack_values() -> None:
        low, high = _PACKED_LIMITS[y.type]
        values = np.where(x.data <= high, x.data, high)  # NaN becomes the largest integer, too
        y.data[...] = pack(values.clip(low).astype(np.int8), y.type)

    return unpack_values if x.is_packed else pack_values
