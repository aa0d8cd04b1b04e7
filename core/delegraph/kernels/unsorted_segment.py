"""Kernels of UNSORTED_SEGMENT_SUM, _PROD, _MAX and _MIN."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import INDEX, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, element_count
from delegraph.schema.enums import TensorType

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
FLOAT32_MAX = float(np.finfo(np.float32).max)


_JOINS = {"SUM": np.add, "PROD": np.multiply, "MAX": np.fmax, "MIN": np.fmin}


def _register(name: str, join: np.ufunc) -> None:
    @kernel(f"UNSORTED_SEGMENT_{name}")
    def prepare(context: OpContext, node: Node) -> Eval:
        """Prepare an operator that joins the parts with equal segment ids."""
        return _prepare(context, node, join)


for _name, _join in _JOINS.items():
    _register(_name, _join)


def _prepare(context: OpContext, node: Node, join: np.ufunc) -> Eval:
    """Return the evaluation that joins parts of input 0 with equal segment ids by *join*.

    Input 1 has the ids, input 2 the number of segments. Parts with negative ids are ignored; a
    segment without parts gets the neutral element: 0, 1, or for maximum and minimum the lowest or
    highest finite number of the type. Maximum and minimum ignore NaN.

    Source:
        tflite/kernels/unsorted_segment.cc.
    """
    x, ids_input, count_input, y = tensors_of(context, node, 3)
    check_type(y, x)
    if x.type not in (TensorType.INT32, TensorType.FLOAT32):
        raise OperatorError(f"input is {x.type.name}, expected INT32 or FLOAT32")
    require_type(ids_input, INDEX)
    require_type(count_input, INDEX)
    rank = len(ids_input.shape)
    if x.shape[:rank] != ids_input.shape or element_count(count_input.shape) != 1:
        raise OperatorError(
            f"ids {list(ids_input.shape)} are no prefix of the input {list(x.shape)}, or the "
            f"number of segments {list(count_input.shape)} is not one element"
        )
    neutral = _neutral(join, y.type)

    def plan() -> tuple[Shape, Eval]:
        count, highest = integers(count_input)[0], max(integers(ids_input), default=-1)
        if count < 0 or highest >= count:
            raise OperatorError(f"segment id {highest} for {count} segments")
        shape = (count, *x.shape[rank:])

        def reduce() -> None:
            ids = ids_input.data.reshape(-1)
            parts = x.data.reshape(len(ids), element_count(shape[1:]))
            kept = ids >= 0
            y.data.fill(neutral)
            join.at(y.data.reshape(count, parts.shape[1]), ids[kept], parts[kept])

        return shape, reduce

    return size_output(context, y, plan, shape_inputs=(ids_input, count_input))


def _neutral(join: np.ufunc, type_: TensorType) -> float:
    """Return the neutral element of *join* in *type_*, which is the value of an empty segment."""
    if join is np.add or join is np.multiply:
        return float(join is np.multiply)
    limits = (INT32_MIN, INT32_MAX) if type_ is TensorType.INT32 else (-FLOAT32_MAX, FLOAT32_MAX)
    return limits[join is np.fmin]
