"""DENSIFY: expands sparse constants with :mod:`delegraph.graph.sparsity`."""

from __future__ import annotations

from delegraph.arithmetic.output_shape import size_output
from delegraph.errors import OperatorError
from delegraph.graph.sparsity import expand
from delegraph.operators.checks import adopt_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape
from delegraph.schema.enums import TensorType


@kernel("DENSIFY", sparse_inputs=(0,))
def prepare_densify(context: OpContext, node: Node) -> Eval:
    """Prepare DENSIFY: a sparse constant, expanded once during prepare.

    Supported types are float32, float16 and int8.

    Source:
        tflite/kernels/densify.cc. The official kernel computes the result at the first invoke.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, {TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8})
    adopt_type(y, x.type)
    sparsity = x.sparsity
    if sparsity is None:
        raise OperatorError(f"{x.name!r} is dense, expected a sparse constant")

    def plan() -> tuple[Shape, Eval]:
        return x.shape, lambda: expand(x.data, sparsity, y.data)

    return size_output(context, y, plan, fold=(x,))
