"""Kernel of STABLEHLO_REDUCE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.stablehlo.body import Array, Body
from delegraph.kernels.stablehlo.data_movement import axes
from delegraph.kernels.stablehlo.indices import without
from delegraph.kernels.stablehlo.types import ANY
from delegraph.operators.checks import option, require_same_type, require_shape, require_type
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Tensor

_UFUNCS: dict[str, np.ufunc] = {
    "ADD": np.add,
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MUL": np.multiply,
    "STABLEHLO_ADD": np.add,
    "STABLEHLO_AND": np.bitwise_and,
    "STABLEHLO_MAXIMUM": np.maximum,
    "STABLEHLO_MINIMUM": np.minimum,
    "STABLEHLO_MULTIPLY": np.multiply,
    "STABLEHLO_OR": np.bitwise_or,
}


@kernel("STABLEHLO_REDUCE")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_REDUCE: the first half of the inputs, reduced over axes.

    The second half has the initial values. A subgraph combines two elements of each input into one.
    It is called for all pairs of neighbours at once, so N elements need log2(N) calls. The official
    interpreter only parses this operator; this kernel follows the StableHLO specification.

    Source:
        https://openxla.org/stablehlo/spec#reduce
    """
    count = len(node.outputs)
    if not count or len(node.inputs) != 2 * count:
        raise OperatorError(
            f"{len(node.inputs)} inputs for {count} outputs, expected twice as many"
        )
    inputs = [input_tensor(context, node, i) for i in range(2 * count)]
    outputs = [output_tensor(context, node, i) for i in range(count)]
    operands, inits = inputs[:count], inputs[count:]
    shape = operands[0].shape
    for operand, init, output in zip(operands, inits, outputs, strict=True):
        require_type(operand, ANY)
        require_shape(operand, shape)
        require_shape(init, ())
        require_same_type(operand, init)
        require_same_type(operand, output)
    reduced = axes(node, "dimensions", len(shape))
    kept = without(len(shape), reduced)
    body = Body(context, int(option(node, "body_subgraph_index", 0)), [*operands, *inits], count)
    if body.output_types != [operand.type for operand in operands]:
        raise OperatorError(f"body returns {body.output_types}, expected the inputs' types")
    for output in outputs:
        context.resize_tensor(output, [shape[axis] for axis in kept])
    operation = body.operation
    if operation is not None and operation[0].name in _UFUNCS:
        return _by_ufunc(_UFUNCS[operation[0].name], operands[0], inits[0], outputs[0], reduced)

    def run() -> None:
        lines = [
            operand.data.transpose((*reduced, *kept)).reshape(-1, *output.data.shape)
            for operand, output in zip(operands, outputs, strict=True)
        ]
        starts = [
            np.broadcast_to(init.data, (1, *output.data.shape))
            for init, output in zip(inits, outputs, strict=True)
        ]
        values = _fold(body, lines)
        results = body(*starts, *values) if len(values[0]) else starts
        for output, result in zip(outputs, results, strict=True):
            output.data[...] = result[0]

    return run


def _by_ufunc(
    ufunc: np.ufunc, x: Tensor, init: Tensor, y: Tensor, reduced: tuple[int, ...]
) -> Eval:
    def run() -> None:
        options: dict[str, Any] = {"axis": reduced, "dtype": x.dtype, "out": y.data}
        ufunc.reduce(x.data, **options)
        ufunc(init.data, y.data, out=y.data)

    def run_empty() -> None:
        y.data.fill(init.data)

    return run if all(x.shape[axis] for axis in reduced) else run_empty


def _fold(body: Body, lines: Sequence[Array]) -> Sequence[Array]:
    """Combine *lines* pairwise by *body* along the first axis until at most one element remains."""
    while len(lines[0]) > 1:
        pairs = len(lines[0]) // 2
        firsts = [line[: 2 * pairs : 2] for line in lines]
        seconds = [line[1 : 2 * pairs : 2] for line in lines]
        rest = [line[2 * pairs :] for line in lines]
        folded = body(*firsts, *seconds)
        lines = [np.concatenate(both) for both in zip(folded, rest, strict=True)]
    return lines
