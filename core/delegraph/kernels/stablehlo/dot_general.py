"""Kernel of STABLEHLO_DOT_GENERAL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.exact_matmul import exact_float, largest_input
from delegraph.errors import OperatorError
from delegraph.kernels.stablehlo.data_movement import axes
from delegraph.kernels.stablehlo.indices import without
from delegraph.kernels.stablehlo.types import ANY
from delegraph.operators.checks import require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel("STABLEHLO_DOT_GENERAL", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_DOT_GENERAL: products summed over contracting axes.

    The result has the batching axes, then the other axes of the left operand, then the other axes
    of the right operand. The official interpreter only parses this operator; this kernel follows
    the StableHLO specification.

    Source:
        https://openxla.org/stablehlo/spec#dot_general
    """
    a, b, y = tensors_of(context, node, 2)
    for tensor in (a, b, y):
        require_type(tensor, ANY)
    left, right = _Side.of(node, "lhs", a), _Side.of(node, "rhs", b)
    for name in ("batching", "contracting"):
        ours, theirs = getattr(left, name), getattr(right, name)
        if ours != theirs:
            raise OperatorError(f"{name} dimensions have lengths {list(ours)} and {list(theirs)}")
    context.resize_tensor(y, (*left.batching, *left.free, *right.free))
    batch, inner = math.prod(left.batching), math.prod(left.contracting)
    dtype = sum_dtype(a, b, y, inner)
    rows = (batch, math.prod(left.free), inner)
    columns = (batch, inner, math.prod(right.free))

    def run() -> None:
        matrices = a.data.transpose(left.order).reshape(rows).astype(dtype, copy=False)
        others = b.data.transpose(right.reverse_order).reshape(columns).astype(dtype, copy=False)
        store((matrices @ others).reshape(y.data.shape), y.data)

    return run


def sum_dtype(a: Tensor, b: Tensor, y: Tensor, terms: int) -> np.dtype[Any]:
    """Return the dtype for sums of *terms* products of *a* and *b*, one sum per element of *y*.

    For integers it is a float type if this represents all sums exactly, because BLAS only adds
    floats. For floats of 16 and 8 bits it is float32. For all other types it is the output's type.
    """
    if {a.dtype.kind, b.dtype.kind} <= {"i", "u"}:
        bound = largest_input(a) * largest_input(b) * terms
        return exact_float(bound) if bound <= 2**53 else y.dtype
    is_small_float = y.dtype.itemsize < 4 and y.dtype.kind not in "iub"
    return np.dtype(np.float32) if is_small_float else y.dtype


def store(sums: NDArray[Any], y: NDArray[Any]) -> None:
    """Convert *sums* to the type of *y* and store them in *y*; integers wrap."""
    is_exact_integer = sums.dtype.kind == "f" and y.dtype.kind in "iu"
    np.copyto(y, sums.astype(np.int64) if is_exact_integer else sums, casting="unsafe")


class _Side:
    """Lengths of an operand's batching, contracting and other axes, and two orders of all axes."""

    def __init__(
        self, shape: Sequence[int], batching: Sequence[int], contracting: Sequence[int]
    ) -> None:
        free = without(len(shape), (*batching, *contracting))
        self.batching = tuple(shape[axis] for axis in batching)
        self.contracting = tuple(shape[axis] for axis in contracting)
        self.free = tuple(shape[axis] for axis in free)
        self.order = (*batching, *free, *contracting)
        self.reverse_order = (*batching, *contracting, *free)

    @classmethod
    def of(cls, node: Node, side: str, tensor: Tensor) -> _Side:
        rank = len(tensor.shape)
        batching = axes(node, f"{side}_batching_dimensions", rank)
        contracting = axes(node, f"{side}_contracting_dimensions", rank)
        if set(batching) & set(contracting):
            raise OperatorError(f"{side} axes {sorted({*batching} & {*contracting})} are both")
        return cls(tensor.shape, batching, contracting)
