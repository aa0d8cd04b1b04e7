"""STABLEHLO_COMPARE, STABLEHLO_SELECT, STABLEHLO_CLAMP and STABLEHLO_CONVERT.

The official interpreter only parses them; they follow the StableHLO specification.

Source:
    https://openxla.org/stablehlo/spec
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.kernels.cast import saturate
from delegraph.kernels.stablehlo.types import ANY, COMPLEX, FLOAT, INTEGER
from delegraph.operators.checks import (
    option,
    require_counts,
    require_same_type,
    require_shape,
    require_type,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import StablehloComparisonDirection as Direction
from delegraph.schema.enums import StablehloComparisonType as Comparison
from delegraph.schema.enums import TensorType

_COMPARISONS = {
    Direction.STABLEHLO_COMPARISON_DIRECTION_EQ: np.equal,
    Direction.STABLEHLO_COMPARISON_DIRECTION_NE: np.not_equal,
    Direction.STABLEHLO_COMPARISON_DIRECTION_GE: np.greater_equal,
    Direction.STABLEHLO_COMPARISON_DIRECTION_GT: np.greater,
    Direction.STABLEHLO_COMPARISON_DIRECTION_LE: np.less_equal,
    Direction.STABLEHLO_COMPARISON_DIRECTION_LT: np.less,
}
_EQUALITIES = (np.equal, np.not_equal)


@kernel("STABLEHLO_COMPARE")
def prepare_compare(context: OpContext, node: Node) -> Eval:
    """Return the eval of STABLEHLO_COMPARE: whether elements stand in a relation, bool.

    In the total order of floats, -NaN < -inf < -0 < +0 < +inf < NaN.
    """
    require_counts(node, 2)
    a, b = input_tensor(context, node, 0), input_tensor(context, node, 1)
    y = output_tensor(context, node)
    require_type(a, ANY)
    require_same_type(a, b)
    require_type(y, {TensorType.BOOL})
    require_shape(b, a.shape)
    eq, no_type = next(iter(_COMPARISONS)), Comparison.STABLEHLO_COMPARISON_TYPE_NOTYPE
    compare = _COMPARISONS[Direction(option(node, "comparison_direction", eq))]
    kind = Comparison(option(node, "compare_type", no_type))
    if a.type in COMPLEX and compare not in _EQUALITIES:
        raise OperatorError(f"complex numbers compared by {compare.__name__}, expected EQ or NE")
    context.resize_tensor(y, a.shape)

    def run() -> None:
        compare(a.data, b.data, out=y.data)

    def run_in_total_order() -> None:
        compare(total_order(a.data), total_order(b.data), out=y.data)

    is_total = kind == Comparison.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER
    return run_in_total_order if is_total and a.type in FLOAT else run


def total_order(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers that order as *values*, floats, in the total order of IEEE 754.

    >>> total_order(np.array([np.nan, -0.0, 0.0], np.float32)).argsort().tolist()
    [1, 2, 0]
    """
    bits = values.view(f"i{values.dtype.itemsize}")
    # The bits of negative floats grow with their magnitude.
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


@kernel("STABLEHLO_SELECT")
def prepare_select(context: OpContext, node: Node) -> Eval:
    """Return the eval of STABLEHLO_SELECT: input 1 where input 0 holds, else input 2."""
    require_counts(node, 3)
    condition, a, b = (input_tensor(context, node, i) for i in range(3))
    y = output_tensor(context, node)
    require_type(condition, {TensorType.BOOL})
    require_type(a, ANY)
    for tensor in (b, y):
        require_same_type(tensor, a)
    require_shape(b, a.shape)
    _require_shape_or_scalar(condition, a.shape)
    context.resize_tensor(y, a.shape)

    def run() -> None:
        np.copyto(y.data, b.data)
        np.copyto(y.data, a.data, where=condition.data)

    return run


@kernel("STABLEHLO_CLAMP")
def prepare_clamp(context: OpContext, node: Node) -> Eval:
    """Return the eval of STABLEHLO_CLAMP: input 1, at least input 0 and at most input 2."""
    require_counts(node, 3)
    low, x, high = (input_tensor(context, node, i) for i in range(3))
    y = output_tensor(context, node)
    require_type(x, ANY - COMPLEX)
    for tensor in (low, high, y):
        require_same_type(tensor, x)
    _require_shape_or_scalar(low, x.shape)
    _require_shape_or_scalar(high, x.shape)
    context.resize_tensor(y, x.shape)

    def run() -> None:
        np.maximum(x.data, low.data, out=y.data)
        np.minimum(y.data, high.data, out=y.data)

    return run


def _require_shape_or_scalar(tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tensor.shape:
        require_shape(tensor, shape)


@kernel("STABLEHLO_CONVERT")
def prepare_convert(context: OpContext, node: Node) -> Eval:
    """Return the eval of STABLEHLO_CONVERT: elements in the output's type.

    Floats are cut towards zero; what an integer cannot hold becomes the nearest that it can, NaN
    the largest. Complex numbers lose their imaginary part, and bools are what is not zero.
    """
    require_counts(node, 1)
    x, y = input_tensor(context, node, 0), output_tensor(context, node)
    require_type(x, ANY)
    require_type(y, ANY)
    context.resize_tensor(y, x.shape)
    takes_real_part = x.type in COMPLEX and y.type not in COMPLEX | {TensorType.BOOL}
    saturates = x.type in COMPLEX | FLOAT and y.type in INTEGER

    def run() -> None:
        values = x.data.real if takes_real_part else x.data
        if saturates:
            wide = values.astype(np.float32) if values.dtype.itemsize < 4 else values
            saturate(wide, y.data)
        else:
            np.copyto(y.data, values, casting="unsafe")

    return run
