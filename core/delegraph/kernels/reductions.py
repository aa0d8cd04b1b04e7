"""SUM, MEAN, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY and REDUCE_ALL."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from delegraph.arithmetic.output_shape import integers, normalized_axis, size_output
from delegraph.arithmetic.reduction import Reduction
from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import option, require_same_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from delegraph.operators.numerics import Numerics

_PLAIN = {TensorType.FLOAT32, TensorType.INT32, TensorType.INT64}
_QUANTIZED = {TensorType.UINT8, TensorType.INT8, TensorType.INT16}
_REDUCED = _PLAIN | _QUANTIZED | {TensorType.BOOL}
_BOOL = {TensorType.BOOL}

Build = Callable[[Reduction], Eval]


@kernel("SUM")
def prepare_sum(context: OpContext, node: Node) -> Eval:
    """Prepare SUM: sums over axes, on float32, int32, int64, uint8, int8 and int16.

    Source:
        EvalSum, tflite/kernels/reduce.cc.
    """

    def build(r: Reduction) -> Eval:
        if r.x.type in _PLAIN:
            return _run(np.add, r)
        from delegraph.arithmetic import quantized_reductions as quantized

        return quantized.total(r, context.numerics)

    return _prepare(context, node, _REDUCED, build)


@kernel("MEAN")
def prepare_mean(context: OpContext, node: Node) -> Eval:
    """Prepare MEAN: means over axes, on float32, int32, int64, uint8, int8 and int16.

    Source:
        EvalMean, tflite/kernels/reduce.cc.
    """

    def build(r: Reduction) -> Eval:
        if r.x.type is TensorType.FLOAT32:
            return _float_mean(r)
        if r.x.type in _PLAIN:
            return _integer_mean(r)
        from delegraph.arithmetic import quantized_reductions as quantized

        return quantized.mean(r, context.numerics)

    return _prepare(context, node, _PLAIN | _QUANTIZED, build)


@kernel("REDUCE_PROD")
def prepare_reduce_prod(context: OpContext, node: Node) -> Eval:
    """Prepare REDUCE_PROD: products over axes; constant inputs are reduced during prepare.

    Inputs are float32, int32 or int64, or integers of 8 or 16 bits. The product of int8 and int16
    with scales is requantized; without scales, the stored integers are multiplied.

    Source:
        EvalProd, tflite/kernels/reduce.cc.
    """
    x = input_tensor(context, node, 0)
    is_quantized = x.quantization is not None
    if is_quantized:
        require_type(x, {TensorType.INT8, TensorType.INT16})

    def build(r: Reduction) -> Eval:
        if is_quantized:
            from delegraph.arithmetic import quantized_reductions as quantized

            return quantized.product(r, context.numerics)
        return _run(np.multiply, r)

    return _prepare(context, node, _REDUCED, build, fold=True)


@kernel("REDUCE_MAX")
def prepare_reduce_max(context: OpContext, node: Node) -> Eval:
    """Prepare REDUCE_MAX: the largest element over axes, on float32 and 8- to 64-bit integers.

    Source:
        EvalGeneric, tflite/kernels/reduce.cc.
    """
    largest = _Extreme(np.maximum, np.fmax, "min", context.numerics)
    return _prepare(context, node, _REDUCED, largest.build)


@kernel("REDUCE_MIN")
def prepare_reduce_min(context: OpContext, node: Node) -> Eval:
    """Prepare REDUCE_MIN: the smallest element over axes, on float32 and 8- to 64-bit integers."""
    smallest = _Extreme(np.minimum, np.fmin, "max", context.numerics)
    return _prepare(context, node, _REDUCED, smallest.build)


@kernel("REDUCE_ANY")
def prepare_reduce_any(context: OpContext, node: Node) -> Eval:
    """Prepare REDUCE_ANY: whether any element along axes is true, on bool.

    Source: tflite/kernels/reduce.cc.
    """
    return _prepare(context, node, _BOOL, lambda r: _run(np.logical_or, r))


@kernel("REDUCE_ALL")
def prepare_reduce_all(context: OpContext, node: Node) -> Eval:
    """Prepare REDUCE_ALL: whether all elements along axes are true, on bool.

    Source: tflite/kernels/reduce.cc.
    """
    return _prepare(context, node, _BOOL, lambda r: _run(np.logical_and, r))


def _prepare(
    context: OpContext,
    node: Node,
    allowed: Collection[TensorType],
    build: Build,
    *,
    fold: bool = False,
) -> Eval:
    """Return the evaluation of a reduction whose axes may be known only during invoke.

    *build* returns the evaluation once the axes are known. With *fold*, a constant input is reduced
    while nodes are prepared.
    """
    x, axis, y = tensors_of(context, node, 2)
    require_type(x, allowed)
    require_same_type(x, y)
    require_type(axis, {TensorType.INT32})
    if x.type is TensorType.INT16 and (x.zero_point or y.zero_point):
        raise OperatorError(f"zero points are {x.zero_point} and {y.zero_point}, expected 0")
    keep_dims = bool(option(node, "keep_dims", False))

    def plan() -> tuple[tuple[int, ...], Eval]:
        rank = len(x.shape)
        axes = sorted({normalized_axis(i, rank) for i in integers(axis)}) if rank else []
        count = math.prod(x.shape[i] for i in axes)
        reduction = Reduction(x, y, tuple(axes), count, keep_dims)
        is_moved = x.type is TensorType.BOOL and allowed is not _BOOL
        return reduction.shape, _moved(reduction) if is_moved else build(reduction)

    known = (x, axis) if fold else None
    return size_output(context, y, plan, shape_inputs=(axis,), fold=known)


def _moved(r: Reduction) -> Eval:
    """Return the evaluation of a reduction of numbers (such as SUM) whose input is bool.

    A single bool is copied unchanged.

    Raises:
        OperatorError: there are several bools, which only the reference kernels accept.
    """
    if r.count != 1:
        raise OperatorError(f"{r.count} elements of BOOL to reduce, expected numbers")
    return lambda: np.copyto(r.y.data, r.x.data.reshape(r.y.shape))


def _run(operation: Any, r: Reduction, **initial: Any) -> Eval:
    """Return the evaluation that reduces the input of *r* by *operation*, such as ``np.sum``."""
    x, y, axes, keep_dims = r.x, r.y, r.axes, r.keep_dims
    reduce = operation.reduce

    def run() -> None:
        reduce(x.data, axes, x.dtype, y.data, keep_dims, **initial)

    return run


@dataclass(frozen=True, slots=True)
class _Extreme:
    """Parameters of a reduction to the maximum or the minimum.

    Comparisons with NaN are false. The builtin kernels then continue with the new element, so only
    elements after the last NaN count. The reference kernels continue with the old element, so they
    skip NaN, except for a NaN in the first element if all axes are reduced.

    Attributes:
        operation: the NumPy function that keeps NaN.
        skipping: the NumPy function that skips NaN.
        worst: result if there are no elements: a limit of the type.
        numerics: official kernels whose treatment of NaN is reproduced.
    """

    operation: Any
    skipping: Any
    worst: Literal["min", "max"]
    numerics: Numerics

    def build(self, r: Reduction) -> Eval:
        """Return the evaluation of the reduction *r*, a maximum or minimum."""
        quantization = (r.x.scale, r.x.zero_point), (r.y.scale, r.y.zero_point)
        if r.x.type in _QUANTIZED and quantization[0] != quantization[1]:
            raise OperatorError(
                f"input and output have scale and zero point {quantization[0]} and "
                f"{quantization[1]}, expected the same"
            )
        is_float = r.x.dtype.kind == "f"
        worst = getattr(np.finfo(r.x.dtype) if is_float else np.iinfo(r.x.dtype), self.worst)
        if not r.count:
            return _run(self.operation, r, initial=worst)
        if not is_float:
            return _run(self.operation, r)
        if self.numerics == "builtin":
            return self._after_nan(r)
        return self._without_nan(r, worst)

    def _after_nan(self, r: Reduction) -> Eval:
        run_plain, y = _run(self.operation, r), r.y

        def run() -> None:
            run_plain()
            if np.isnan(y.data).any():
                rows = r.rows()
                passed = np.logical_or.accumulate(np.isnan(rows)[:, ::-1], 1)[:, ::-1]
                rest = self.skipping.reduce(np.where(passed, np.nan, rows), 1)
                y.data[...] = rest.reshape(y.shape)

        return run

    def _without_nan(self, r: Reduction, worst: Any) -> Eval:
        if len(r.axes) < len(r.x.shape):
            return _run(self.skipping, r, initial=worst)
        run_plain, x, y = _run(self.skipping, r), r.x, r.y

        def run() -> None:
            run_plain()
            first = x.data.reshape(-1)[0]
            if np.isnan(first):
                y.data.fill(first)

        return run


def _float_mean(r: Reduction) -> Eval:
    run_sum = _run(np.add, r)
    y, count = r.y, np.float32(r.count)

    def run() -> None:
        run_sum()
        np.divide(y.data, count, y.data)

    return run


def _integer_mean(r: Reduction) -> Eval:
    """Return the evaluation of an integer mean, which is truncated towards zero."""
    x, y, axes, keep_dims, count = r.x, r.y, r.axes, r.keep_dims, r.count

    def run() -> None:
        total = x.data.sum(axes, np.int64, keepdims=keep_dims)
        if count:
            y.data[...] = np.sign(total) * (np.abs(total) // count)
        else:
            y.data[...] = 0

    return run
